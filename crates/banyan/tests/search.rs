//! Search: what is found, by whom, and that the index follows whatever happens.

mod search {
    mod changes;
    mod filters;
    mod finding;
    mod forks;
    mod lines;
    mod model;
    mod reopening;
    mod tenants;

    use serde_json::{Value, json};

    use crate::support::*;

    /// What a search answers, once everything that was written can be found.
    fn answer(store: &dyn Door, mut request: Value) -> Value {
        request["wait_ms"] = json!(60_000);
        let answer = store.ok("search", request);
        assert_eq!(answer["complete"], true);
        answer
    }

    /// The entries that a search finds, in no order.
    fn found_by(store: &dyn Door, request: Value) -> Vec<Value> {
        let answer = answer(store, request);
        let hits = answer["hits"].as_array().unwrap().iter();
        let mut found: Vec<Value> = hits.map(|hit| hit["entry_id"].clone()).collect();
        found.sort_by_key(Value::to_string);
        found
    }

    fn found(store: &dyn Door, query: &str) -> Vec<Value> {
        found_by(store, json!({"query": query, "limit": 100}))
    }

    /// The same, however many there are: session and entry of each.
    fn all_found_by(store: &dyn Door, mut request: Value) -> Vec<(Value, Value)> {
        request["limit"] = json!(100);
        let mut found = Vec::new();
        loop {
            let page = answer(store, request.clone());
            let hits = page["hits"].as_array().unwrap().iter();
            found.extend(hits.map(|hit| (hit["session_id"].clone(), hit["entry_id"].clone())));
            if page["next_cursor"].is_null() {
                break;
            }
            request["cursor"] = page["next_cursor"].clone();
        }
        found.sort_by_key(|(session, entry)| (session.to_string(), entry.to_string()));
        found
    }

    /// An entry: its id, its text, and whether it is on the active path.
    type Seen = (Value, String, bool);

    /// Every entry of a session.
    fn entries_of(store: &dyn Door, session: &Value) -> Vec<Seen> {
        let page = store.ok("messages", json!({"session_id": session, "limit": 500}));
        let path = ids(&page["messages"]);
        let tree = store.ok("tree", json!({"session_id": session}));
        let read = |entry: Value| {
            let text = said_in(&store.entry(session, &entry)["message"]);
            let is_active = path.contains(&entry);
            (entry, text, is_active)
        };
        ids(&tree["entries"]).into_iter().map(read).collect()
    }

    /// That a session is found by a word as a plain look through it finds it, on its active path and on all branches.
    fn assert_found_as_it_is(store: &dyn Door, session: &Value, word: &str) {
        for all_branches in [false, true] {
            let has_word = |text: &str| text.split(' ').any(|said| said == word);
            let wanted = entries_of(store, session).into_iter();
            let wanted = wanted.filter(|(_, text, is_active)| (all_branches || *is_active) && has_word(text));
            let mut expected: Vec<_> = wanted.map(|(entry, ..)| (session.clone(), entry)).collect();
            expected.sort_by_key(|(_, entry)| entry.to_string());
            let request = json!({"query": word, "session_id": session, "all_branches": all_branches});
            assert_eq!(
                all_found_by(store, request),
                expected,
                "{word} in {session}, all branches: {all_branches}"
            );
        }
    }

    /// Entries in the order of `found`.
    fn sorted<const N: usize>(mut entries: [Value; N]) -> Vec<Value> {
        entries.sort_by_key(Value::to_string);
        entries.to_vec()
    }

    /// A snippet with what matches in brackets.
    fn marked(hit: &Value) -> String {
        let pieces = hit["snippet"].as_array().unwrap().iter();
        pieces
            .map(|piece| match piece["match"].as_bool() {
                Some(true) => format!("[{}]", piece["text"].as_str().unwrap()),
                _ => piece["text"].as_str().unwrap().to_owned(),
            })
            .collect()
    }
}
