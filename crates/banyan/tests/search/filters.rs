//! Where is looked: agent, workspace, role, tool, time, metadata, session, branch.

use banyan::{Banyan, Options};
use serde_json::{Value, json};

use super::{found_by, sorted};
use crate::support::*;

fn session_with(store: &dyn Door, metadata: Value) -> Value {
    store.ok("create", json!({"metadata": metadata}))["session_id"].clone()
}

#[test]
fn sessions_are_chosen_by_their_metadata() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    let codex = session_with(store, json!({"agent": "codex", "cwd": "/home/u/app", "tags": {"b": 1, "a": 2}}));
    let pi = session_with(store, json!({"agent": "pi", "cwd": "/home/u/app/sub/"}));
    let other = session_with(store, json!({"agent": "pi", "cwd": "/home/u/apple"}));
    let bare = store.session();
    let said = |session: &Value| store.say(session, "word");
    let (codex, pi, other, bare) =
        ((said(&codex), codex), (said(&pi), pi), (said(&other), other), (said(&bare), bare));
    let by = |mut request: Value| {
        request["query"] = json!("word");
        found_by(store, request)
    };
    assert_eq!(by(json!({})), sorted([codex.0.clone(), pi.0.clone(), other.0.clone(), bare.0.clone()]));
    assert_eq!(by(json!({"agent": "codex"})), sorted([codex.0.clone()]));
    assert_eq!(by(json!({"agent": "pi"})), sorted([pi.0.clone(), other.0.clone()]));
    assert_eq!(by(json!({"agent": "nobody"})), [] as [Value; 0]);
    assert_eq!(by(json!({"workspace": "/home/u/app"})), sorted([codex.0.clone(), pi.0.clone()]));
    assert_eq!(by(json!({"workspace": "/home/u/app/sub"})), sorted([pi.0.clone()]));
    assert_eq!(by(json!({"workspace": "/"})), sorted([codex.0.clone(), pi.0.clone(), other.0.clone()]));
    assert_eq!(by(json!({"metadata": {"tags": {"a": 2, "b": 1}}})), sorted([codex.0.clone()]));
    assert_eq!(by(json!({"metadata": {"agent": "pi"}, "agent": "codex"})), [] as [Value; 0]);
    assert_eq!(by(json!({"session_id": bare.1})), sorted([bare.0.clone()]));
    assert_eq!(by(json!({"session_id": "nobody"})), [] as [Value; 0]);
    // What a session is about can change; what it says need not be read again for that.
    store.ok("set-meta", json!({"session_id": bare.1, "metadata": {"agent": "codex"}}));
    assert_eq!(by(json!({"agent": "codex"})), sorted([codex.0, bare.0]));
}

#[test]
fn entries_are_chosen_by_who_speaks_which_tool_and_when() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    let session = store.session();
    let asked = store.say(&session, "word");
    let called = store.append(
        &session,
        json!({"message": assistant_with(json!([
            {"type": "text", "text": "word"},
            {"type": "function_call", "id": "c", "function_id": "Shell", "arguments": {}},
        ]))}),
    );
    a_later_moment();
    let resulted = store.append(&session, json!({"message": result("c", "word")}));
    let time = |entry: &Value| store.entry(&session, entry)["timestamp"].clone();
    let by = |mut request: Value| {
        request["query"] = json!("word");
        found_by(store, request)
    };
    assert_eq!(by(json!({"roles": ["user"]})), sorted([asked.clone()]));
    assert_eq!(by(json!({"roles": ["assistant", "function_result"]})), sorted([called.clone(), resulted.clone()]));
    assert_eq!(by(json!({"tool": "shell"})), sorted([called.clone()]));
    assert_eq!(by(json!({"tool": "f"})), sorted([resulted.clone()]));
    assert_eq!(by(json!({"tool": "other"})), [] as [Value; 0]);
    assert_eq!(by(json!({"since": time(&resulted)})), sorted([resulted.clone()]));
    assert_eq!(by(json!({"until": time(&resulted)})), sorted([asked, called]));
    assert_eq!(by(json!({"since": 5, "until": 5})), [] as [Value; 0]);
}

#[test]
fn the_active_path_is_followed_wherever_it_goes() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    let session = store.session();
    let root = store.say(&session, "word root");
    let left = store.say(&session, "word left");
    let deep = store.say(&session, "word deep");
    let right = store.append(&session, json!({"message": user("word right"), "parent_id": root}));
    let active = || found_by(store, json!({"query": "word"}));
    let all = sorted([root.clone(), left.clone(), deep.clone(), right.clone()]);
    assert_eq!(active(), sorted([root.clone(), right.clone()]));
    assert_eq!(found_by(store, json!({"query": "word", "all_branches": true})), all);
    for (leaf, expected) in [
        (&deep, sorted([root.clone(), left.clone(), deep.clone()])),
        (&left, sorted([root.clone(), left.clone()])),
        (&root, vec![root.clone()]),
        (&right, sorted([root.clone(), right.clone()])),
        (&deep, sorted([root.clone(), left.clone(), deep.clone()])),
    ] {
        store.ok("set-active-leaf", json!({"session_id": session, "entry_id": leaf}));
        assert_eq!(active(), expected, "{leaf}");
        assert_eq!(found_by(store, json!({"query": "word", "all_branches": true})), all);
    }
    let beside = super::answer(store, json!({"query": "right", "all_branches": true}));
    assert_eq!(beside["hits"][0]["active"], false);
}
