//! A fork costs the index what it adds, and is found by all that it shows, whatever happens to its base and to itself.

use banyan::{Banyan, Options};
use serde_json::{Value, json};

use super::{all_found_by, answer, assert_found_as_it_is, entries_of, found_by, marked, sorted};
use crate::support::*;

/// How many documents the index has, once everything is in it: one for each session, and one for each entry.
fn documents(store: &Banyan) -> u64 {
    answer(door(store), json!({"query": "word"}));
    store.search_documents()
}

/// A session of three entries, and a fork of its first two with one of its own.
struct Family {
    store: Banyan,
    base: Value,
    /// The entries of the base.
    entries: [Value; 3],
    fork: Value,
    /// The entries of the fork.
    copies: [Value; 3],
}

/// Two sessions and four entries.
const LIGHT: u64 = 6;

impl Family {
    fn new() -> Self {
        Self::on(Banyan::in_memory(Options::default()).unwrap())
    }

    fn on(store: Banyan) -> Self {
        let all = door(&store);
        let base = all.ok("create", json!({"title": "base", "metadata": {"tenant": "red"}}))["session_id"].clone();
        let entries = ["word one", "word two", "word three"].map(|text| all.say(&base, text));
        let request = json!({"session_id": base, "entry_id": entries[1], "title": "fork"});
        let fork = all.ok("fork", request)["session_id"].clone();
        let own = all.say(&fork, "word four");
        let inherited = ids(&all.ok("messages", json!({"session_id": fork}))["messages"]);
        let copies = [inherited[0].clone(), inherited[1].clone(), own];
        let family = Self { base, entries, fork, copies, store };
        family.must_have(LIGHT);
        family
    }

    fn door(&self) -> &dyn Door {
        door(&self.store)
    }

    /// That the index has so many documents, and finds what the sessions show.
    fn must_have(&self, expected: u64) {
        assert_eq!(documents(&self.store), expected);
        for session in self.door().ok("list", json!({}))["sessions"].as_array().unwrap() {
            for word in ["word", "one", "two", "three", "four", "five"] {
                assert_found_as_it_is(self.door(), &session["session_id"], word);
            }
        }
    }

    fn update(&self, session: &Value, entry: &Value, said: &str) {
        let request = json!({"session_id": session, "entry_id": entry, "content": text(said)});
        self.door().ok("update-message", request);
    }

    fn move_leaf(&self, session: &Value, entry: &Value) {
        self.door().ok("set-active-leaf", json!({"session_id": session, "entry_id": entry}));
    }

    fn relabel(&self, session: &Value, tenant: &str) {
        self.door().ok("set-meta", json!({"session_id": session, "metadata": {"tenant": tenant}}));
    }
}

#[test]
fn a_fork_of_a_long_session_adds_its_own_documents_only() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let all = door(&store);
    let base = all.session();
    let messages: Vec<Value> = (0..5000).map(|n| user(&format!("word number{n}"))).collect();
    let entries = all.ok("append-many", json!({"session_id": base, "messages": messages}))["entry_ids"].clone();
    let before = documents(&store);
    assert_eq!(before, 5001);
    for n in 0..20 {
        let fork =
            all.ok("fork", json!({"session_id": base, "entry_id": entries[4000 + n]}))["session_id"].clone();
        all.say(&fork, "word of its own");
    }
    assert_eq!(documents(&store), before + 40);
}

#[test]
fn what_a_fork_inherits_is_cited_as_its_own() {
    let family = Family::new();
    let store = family.door();
    let hits = answer(store, json!({"query": "one", "session_id": family.fork}))["hits"].clone();
    let [hit] = hits.as_array().unwrap().as_slice() else { panic!("{hits}") };
    assert_eq!((&hit["session_id"], &hit["entry_id"]), (&family.fork, &family.copies[0]));
    assert_eq!((&hit["title"], &hit["active"], &hit["role"]), (&json!("fork"), &json!(true), &json!("user")));
    assert_eq!(marked(hit), "word [one]");
    assert_eq!(said_in(&store.entry(&family.fork, &hit["entry_id"])["message"]), "word one");
    // Over all sessions it is found once, where it was said.
    let everywhere = all_found_by(store, json!({"query": "one"}));
    assert_eq!(everywhere, [(family.base.clone(), family.entries[0].clone())]);
}

#[test]
fn every_filter_works_through_a_fork() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    let base = store.ok("create", json!({"metadata": {"agent": "pi", "cwd": "/code/app"}}))["session_id"].clone();
    store.say(&base, "word asked plainly");
    store.append(
        &base,
        json!({"message": assistant_with(json!([
            {"type": "text", "text": "word"},
            {"type": "function_call", "id": "c", "function_id": "shell", "arguments": {}},
        ]))}),
    );
    a_later_moment();
    let last = store.append(&base, json!({"message": result("c", "word asked")}));
    store.say(&base, "word asked after the fork");
    let fork = store.ok("fork", json!({"session_id": base, "entry_id": last}))["session_id"].clone();
    let own = store.say(&fork, "word of its own");
    let shown = ids(&store.ok("messages", json!({"session_id": fork}))["messages"]);
    let [asked, called, resulted, _] = <[Value; 4]>::try_from(shown).unwrap();
    let by = |query: &str, mut request: Value| {
        request["query"] = json!(query);
        request["session_id"] = fork.clone();
        found_by(store, request)
    };
    let time = store.entry(&fork, &resulted)["timestamp"].clone();
    let (all, nothing) = ([asked.clone(), called.clone(), resulted.clone(), own.clone()], [] as [Value; 0]);
    assert_eq!(by("word", json!({})), sorted(all.clone()));
    assert_eq!(by("word", json!({"roles": ["user"]})), sorted([asked.clone(), own.clone()]));
    assert_eq!(by("word", json!({"tool": "shell"})), sorted([called.clone()]));
    assert_eq!(by("word", json!({"since": time})), sorted([resulted.clone(), own]));
    assert_eq!(by("word", json!({"until": time})), sorted([asked.clone(), called]));
    assert_eq!(by("\"word asked\"", json!({})), sorted([asked.clone(), resulted.clone()]));
    assert_eq!(by("asked -plainly", json!({})), [resulted]);
    assert_eq!(by("pla*", json!({"agent": "pi", "workspace": "/code"})), [asked]);
    assert_eq!(by("word", json!({"agent": "codex"})), nothing);
    // Page by page, each once.
    let mut paged = Vec::new();
    let mut request = json!({"query": "word", "session_id": fork, "limit": 1});
    loop {
        let page = answer(store, request.clone());
        paged.extend(ids(&page["hits"]));
        if page["next_cursor"].is_null() {
            break;
        }
        request["cursor"] = page["next_cursor"].clone();
    }
    paged.sort_by_key(Value::to_string);
    assert_eq!(paged, sorted(all));
}

#[test]
fn whatever_leaves_the_inherited_entries_as_they_are_keeps_a_fork_light() {
    let family = Family::new();
    let store = family.door();
    store.say(&family.base, "word five");
    family.must_have(LIGHT + 1);
    family.update(&family.base, &family.entries[2], "word three changed");
    family.must_have(LIGHT + 1);
    family.move_leaf(&family.base, &family.entries[1]);
    family.must_have(LIGHT + 1);
    store.append(&family.base, json!({"message": user("word two beside"), "parent_id": family.entries[1]}));
    family.must_have(LIGHT + 2);
    family.update(&family.fork, &family.copies[2], "word four changed");
    store.append(&family.fork, json!({"message": user("word four beside"), "parent_id": family.copies[1]}));
    family.must_have(LIGHT + 3);
    family.move_leaf(&family.fork, &family.copies[1]);
    family.must_have(LIGHT + 3);
    for session in [&family.base, &family.fork] {
        store.ok("set-meta", json!({"session_id": session, "title": "another"}));
    }
    family.must_have(LIGHT + 3);
    store.ok("delete", json!({"session_id": family.fork}));
    family.must_have(6);
}

#[test]
fn a_fork_whose_base_is_deleted_has_everything_itself() {
    let family = Family::new();
    family.door().ok("delete", json!({"session_id": family.base}));
    family.must_have(4);
}

#[test]
fn a_fork_whose_base_began_again_has_everything_itself() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let all = door(&store);
    all.ok("ensure", json!({"session_id": "s"}));
    let entry = all.say(&json!("s"), "word one");
    let fork = all.ok("fork", json!({"session_id": "s", "entry_id": entry}))["session_id"].clone();
    assert_eq!(documents(&store), 3);
    all.ok("delete", json!({"session_id": "s"}));
    all.ok("ensure", json!({"session_id": "s"}));
    all.say(&json!("s"), "word two");
    assert_eq!(documents(&store), 4);
    for session in [&json!("s"), &fork] {
        assert_found_as_it_is(all, session, "word");
    }
}

#[test]
fn a_fork_and_a_base_that_are_found_by_other_metadata_have_everything_themselves() {
    let family = Family::new();
    family.relabel(&family.base, "blue");
    family.must_have(LIGHT + 2);
    let family = Family::new();
    family.relabel(&family.fork, "blue");
    family.must_have(LIGHT + 2);
    // And so it stays.
    family.relabel(&family.fork, "red");
    family.must_have(LIGHT + 2);
}

#[test]
fn a_fork_that_is_off_its_bases_path_has_everything_itself() {
    let family = Family::new();
    family.move_leaf(&family.base, &family.entries[0]);
    family.must_have(LIGHT + 2);
    let family = Family::new();
    let request = json!({"message": user("word five"), "parent_id": family.entries[0]});
    family.door().append(&family.base, request);
    family.must_have(LIGHT + 3);
    // A fork of a branch that is not active never was light.
    let aside = family.door().ok("fork", json!({"session_id": family.base, "entry_id": family.entries[2]}));
    assert_eq!(entries_of(family.door(), &aside["session_id"]).len(), 3);
    family.must_have(LIGHT + 3 + 4);
}

#[test]
fn a_fork_whose_base_says_something_else_now_says_what_it_said() {
    let family = Family::new();
    family.update(&family.base, &family.entries[0], "word five");
    family.must_have(LIGHT + 2);
    let family = Family::new();
    let longer = json!({"session_id": family.base, "entry_id": family.entries[1], "text": " five"});
    family.door().ok("extend-message", longer);
    family.must_have(LIGHT + 2);
    // One that is made now has it as it is now.
    let fork = family.door().ok("fork", json!({"session_id": family.base, "entry_id": family.entries[1]}));
    family.must_have(LIGHT + 3);
    let by = json!({"query": "five", "session_id": fork["session_id"]});
    assert_eq!(found_by(family.door(), by).len(), 1);
}

#[test]
fn a_fork_that_changes_what_it_inherited_has_everything_itself() {
    let family = Family::new();
    family.update(&family.fork, &family.copies[1], "word five");
    family.must_have(LIGHT + 2);
    let family = Family::new();
    let longer = json!({"session_id": family.fork, "entry_id": family.copies[0], "text": " five"});
    family.door().ok("extend-message", longer);
    family.must_have(LIGHT + 2);
    let family = Family::new();
    family.move_leaf(&family.fork, &family.copies[0]);
    family.must_have(LIGHT + 2);
    let family = Family::new();
    let beside = json!({"message": user("word five"), "parent_id": family.copies[0]});
    family.door().append(&family.fork, beside);
    family.must_have(LIGHT + 3);
}

#[test]
fn tenants_find_through_a_fork_what_is_theirs() {
    use banyan::{Access, Scope};
    let family = Family::new();
    let tenant = |name: &str| {
        let Value::Object(pairs) = json!({"tenant": name}) else { unreachable!() };
        family.store.with_access(Access { scope: Scope::of(pairs), read_only: false })
    };
    let (red, blue) = (tenant("red"), tenant("blue"));
    let (red, blue) = (door(&red), door(&blue));
    let in_fork = json!({"query": "one", "session_id": family.fork});
    let nothing = [] as [Value; 0];
    assert_eq!(found_by(red, in_fork.clone()), sorted([family.copies[0].clone()]));
    assert_eq!(found_by(blue, in_fork.clone()), nothing);
    assert_eq!(found_by(blue, json!({"query": "word"})), nothing);
    // The base changes hands; what the fork has of it stays with the fork.
    family.relabel(&family.base, "blue");
    assert_eq!(red.ok("search", json!({"query": "one", "session_id": family.base}))["hits"], json!([]));
    assert_eq!(found_by(red, json!({"query": "one"})), sorted([family.copies[0].clone()]));
    assert_eq!(found_by(red, in_fork.clone()), sorted([family.copies[0].clone()]));
    assert_eq!(found_by(blue, in_fork.clone()), nothing);
    assert_eq!(found_by(blue, json!({"query": "one"})), sorted([family.entries[0].clone()]));
    family.relabel(&family.fork, "green");
    assert_eq!(red.ok("search", in_fork)["hits"], json!([]));
    family.must_have(LIGHT + 2);
}
