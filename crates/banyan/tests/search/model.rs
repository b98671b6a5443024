//! Whatever is done, search finds what a plain look through all entries finds.

use banyan::{Banyan, Options};
use banyan_search::words::{Kind, Words};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{answer, found_by};
use crate::support::*;

const WORDS: [&str; 8] = ["alpha", "beta", "alphaBeta", "beta_gamma", "src/alpha.rs", "gamma", "数据", "Delta"];
const QUERIES: [&str; 14] = [
    "alpha",
    "beta",
    "alphabeta",
    "alpha beta",
    "\"alpha beta\"",
    "beta_gamma",
    "al*",
    "gamma -alpha",
    "src/alpha.rs",
    "据",
    "数据",
    "delta",
    "\"beta gam*\"",
    "alphaBeta",
];

#[derive(Clone, Debug)]
enum Step {
    Say { session: usize, words: Vec<usize> },
    Branch { session: usize, at: usize, words: Vec<usize> },
    Update { session: usize, at: usize, words: Vec<usize> },
    Leaf { session: usize, at: usize },
    Fork { session: usize, at: usize },
    Delete { session: usize },
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    let words = || proptest::collection::vec(0..WORDS.len(), 1..5);
    let session = 0..3_usize;
    prop_oneof![
        6 => (session.clone(), words()).prop_map(|(session, words)| Step::Say { session, words }),
        2 => (session.clone(), 0..8_usize, words())
            .prop_map(|(session, at, words)| Step::Branch { session, at, words }),
        2 => (session.clone(), 0..8_usize, words())
            .prop_map(|(session, at, words)| Step::Update { session, at, words }),
        2 => (session.clone(), 0..8_usize).prop_map(|(session, at)| Step::Leaf { session, at }),
        1 => (session.clone(), 0..8_usize).prop_map(|(session, at)| Step::Fork { session, at }),
        1 => session.prop_map(|session| Step::Delete { session }),
        2 => Just(Step::Look),
    ]
}

fn spoken(words: &[usize]) -> String {
    words.iter().map(|at| WORDS[*at]).collect::<Vec<_>>().join(" ")
}

/// Every entry of every session: its id, its text, and whether it is on the active path.
fn entries(store: &dyn Door) -> Vec<(Value, String, bool)> {
    let sessions = store.ok("list", json!({"limit": 500}))["sessions"].clone();
    let mut entries = Vec::new();
    for session in sessions.as_array().unwrap() {
        let id = &session["session_id"];
        let path = ids(&store.ok("messages", json!({"session_id": id, "limit": 500}))["messages"]);
        for node in store.ok("tree", json!({"session_id": id}))["entries"].as_array().unwrap() {
            let entry = node["entry_id"].clone();
            let text = said_in(&store.entry(id, &entry)["message"]);
            entries.push((entry.clone(), text, path.contains(&entry)));
        }
    }
    entries
}

/// Whether a text matches what was typed, told by going through it word by word.
fn matches(text: &str, typed: &str) -> bool {
    let words: Vec<_> = Words::of(text).collect();
    let has = |part: &str, place: Option<usize>, prefix: bool| -> Vec<usize> {
        let at = words.iter().filter(|word| place.is_none_or(|place| word.place == place));
        at.filter(|word| if prefix { word.text.starts_with(part) } else { word.text == part })
            .map(|word| word.place)
            .collect()
    };
    let clause = |item: &str| {
        let (item, prefix) = item.strip_suffix('*').map_or((item, false), |item| (item, true));
        let typed: Vec<_> = Words::of(item).collect();
        let parts: Vec<_> = typed.iter().filter(|word| word.kind == Kind::Part).collect();
        let ends = |at: usize| prefix && at + 1 == parts.len();
        let row = has(&parts[0].text, None, ends(0))
            .into_iter()
            .any(|first| (1..parts.len()).all(|at| !has(&parts[at].text, Some(first + at), ends(at)).is_empty()));
        let whole = typed[0].kind == Kind::Whole && typed.iter().all(|word| word.to <= typed[0].to);
        row || (whole && !has(&typed[0].text, None, prefix).is_empty())
    };
    if let Some(phrase) = typed.strip_prefix('"') {
        return clause(phrase.trim_end_matches('"'));
    }
    typed.split(' ').all(|item| match item.strip_prefix('-') {
        Some(item) => !clause(item),
        None => clause(item),
    })
}

fn check(store: &dyn Door) {
    // Everything is visible from here on.
    answer(store, json!({"query": "alpha"}));
    let entries = entries(store);
    for query in QUERIES {
        for all_branches in [false, true] {
            let wanted =
                entries.iter().filter(|(_, text, active)| (all_branches || *active) && matches(text, query));
            let mut expected: Vec<Value> = wanted.map(|(entry, ..)| entry.clone()).collect();
            expected.sort_by_key(Value::to_string);
            let found = found_by(store, json!({"query": query, "all_branches": all_branches, "limit": 100}));
            assert_eq!(found, expected, "{query} in {entries:?}");
        }
    }
}

fn run(steps: &[Step]) {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let store = door(&store);
    let mut sessions: Vec<Value> = (0..3).map(|_| store.session()).collect();
    for step in steps {
        let nodes = |session: &Value| {
            let tree = store.ok("tree", json!({"session_id": session}));
            ids(&tree["entries"])
        };
        match step {
            Step::Say { session, words } => {
                store.say(&sessions[*session], &spoken(words));
            }
            Step::Look => {
                answer(store, json!({"query": "alpha"}));
            }
            Step::Delete { session } => {
                store.ok("delete", json!({"session_id": sessions[*session]}));
                sessions[*session] = store.session();
            }
            Step::Branch { session, at, words } => {
                let session = &sessions[*session];
                if let Some(parent) = pick(&nodes(session), *at) {
                    store.append(session, json!({"message": user(&spoken(words)), "parent_id": parent}));
                }
            }
            Step::Update { session, at, words } => {
                let session = &sessions[*session];
                if let Some(entry) = pick(&nodes(session), *at) {
                    let content = text(&spoken(words));
                    store.ok(
                        "update-message",
                        json!({"session_id": session, "entry_id": entry, "content": content}),
                    );
                }
            }
            Step::Leaf { session, at } => {
                let session = &sessions[*session];
                if let Some(entry) = pick(&nodes(session), *at) {
                    store.ok("set-active-leaf", json!({"session_id": session, "entry_id": entry}));
                }
            }
            Step::Fork { session, at } => {
                if let Some(entry) = pick(&nodes(&sessions[*session]), *at) {
                    let fork = store.ok("fork", json!({"session_id": sessions[*session], "entry_id": entry}));
                    sessions[*session] = fork["session_id"].clone();
                }
            }
        }
    }
    check(store);
}

fn pick(nodes: &[Value], at: usize) -> Option<Value> {
    nodes.get(at % nodes.len().max(1)).cloned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn search_finds_what_a_plain_look_finds(steps in proptest::collection::vec(step(), 1..40)) {
        run(&steps);
    }
}
