//! Search: what is found, by whom, and that the index follows whatever happens.

mod search {
    mod changes;
    mod filters;
    mod finding;
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
