//! Whatever is done, search finds what a plain look through all entries finds.

use std::collections::{BTreeMap, BTreeSet};

use banyan::{Banyan, Options};
use banyan_search::words::{Kind, Words};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Seen, all_found_by, answer, entries_of};
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
    Extend { session: usize, at: usize, word: usize },
    Leaf { session: usize, at: usize },
    Label { session: usize, label: usize },
    Fork { session: usize, at: usize },
    Delete { session: usize },
    Look,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let words = || proptest::collection::vec(0..WORDS.len(), 1..5);
    let (session, at) = (0..6_usize, 0..8_usize);
    prop_oneof![
        8 => (session.clone(), words()).prop_map(|(session, words)| Step::Say { session, words }),
        2 => (session.clone(), at.clone(), words())
            .prop_map(|(session, at, words)| Step::Branch { session, at, words }),
        2 => (session.clone(), at.clone(), words())
            .prop_map(|(session, at, words)| Step::Update { session, at, words }),
        1 => (session.clone(), at.clone(), 0..WORDS.len())
            .prop_map(|(session, at, word)| Step::Extend { session, at, word }),
        2 => (session.clone(), at.clone()).prop_map(|(session, at)| Step::Leaf { session, at }),
        1 => (session.clone(), 0..2_usize).prop_map(|(session, label)| Step::Label { session, label }),
        4 => (session.clone(), at).prop_map(|(session, at)| Step::Fork { session, at }),
        1 => session.prop_map(|session| Step::Delete { session }),
        4 => Just(Step::Look),
        1 => Just(Step::Reopen),
    ]
}

fn spoken(words: &[usize]) -> String {
    words.iter().map(|at| WORDS[*at]).collect::<Vec<_>>().join(" ")
}

/// Every session with its entries.
fn sessions(store: &dyn Door) -> Vec<(Value, Vec<Seen>)> {
    let listed = store.ok("list", json!({"limit": 500}))["sessions"].clone();
    let ids = listed.as_array().unwrap().iter().map(|session| session["session_id"].clone());
    ids.map(|id| (id.clone(), entries_of(store, &id))).collect()
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

/// Each session is found as a plain look finds it. Over all sessions, an entry is found in the session that said it or in
/// a fork: each text that is on some active path at least once, and nothing that is on none.
fn check(store: &dyn Door) {
    // Everything is visible from here on.
    answer(store, json!({"query": "alpha"}));
    let sessions = sessions(store);
    for (query, all_branches) in QUERIES.into_iter().flat_map(|query| [(query, false), (query, true)]) {
        let mut texts = BTreeSet::new();
        let mut all = BTreeMap::new();
        for (session, entries) in &sessions {
            let wanted =
                entries.iter().filter(|(_, text, active)| (all_branches || *active) && matches(text, query));
            let mut expected = Vec::new();
            for (entry, text, _) in wanted {
                expected.push((session.clone(), entry.clone()));
                all.insert((session.to_string(), entry.to_string()), text);
                texts.insert(text);
            }
            expected.sort_by_key(|(_, entry)| entry.to_string());
            let request = json!({"query": query, "session_id": session, "all_branches": all_branches});
            assert_eq!(all_found_by(store, request), expected, "{query} in {session} of {sessions:?}");
        }
        let found = all_found_by(store, json!({"query": query, "all_branches": all_branches}));
        let found: Vec<_> = found.into_iter().map(|hit| (hit.0.to_string(), hit.1.to_string())).collect();
        let mut found_texts = BTreeSet::new();
        for hit in &found {
            let text = all.get(hit).unwrap_or_else(|| panic!("{query} finds {hit:?} in {sessions:?}"));
            found_texts.insert(*text);
        }
        assert_eq!(found_texts, texts, "{query} in {sessions:?}");
        let distinct: BTreeSet<_> = found.iter().collect();
        assert_eq!(distinct.len(), found.len(), "{query} finds something twice in {sessions:?}");
    }
}

/// Where the store is.
enum Home {
    Memory(Banyan),
    Disk(OnDisk),
}

impl Home {
    fn store(&self) -> &Banyan {
        match self {
            Self::Memory(store) | Self::Disk(OnDisk { store, .. }) => store,
        }
    }

    fn reopened(self) -> Self {
        match self {
            Self::Memory(store) => Self::Memory(store),
            Self::Disk(store) => Self::Disk(store.reopened()),
        }
    }
}

fn run(mut home: Home, steps: &[Step]) {
    let mut sessions: Vec<Value> = (0..2).map(|_| door(home.store()).session()).collect();
    for step in steps {
        if matches!(step, Step::Reopen) {
            home = home.reopened();
            continue;
        }
        take(door(home.store()), &mut sessions, step);
    }
    check(door(home.store()));
}

fn take(store: &dyn Door, sessions: &mut Vec<Value>, step: &Step) {
    let nodes = |session: &Value| {
        let tree = store.ok("tree", json!({"session_id": session}));
        ids(&tree["entries"])
    };
    let session_at = |at: &usize| sessions[at % sessions.len()].clone();
    match step {
        Step::Reopen => {}
        Step::Say { session, words } => {
            store.say(&session_at(session), &spoken(words));
        }
        Step::Look => {
            answer(store, json!({"query": "alpha"}));
        }
        Step::Delete { session } => {
            let at = session % sessions.len();
            store.ok("delete", json!({"session_id": sessions[at]}));
            sessions.remove(at);
            if sessions.is_empty() {
                sessions.push(store.session());
            }
        }
        Step::Branch { session, at, words } => {
            let session = &session_at(session);
            if let Some(parent) = pick(&nodes(session), *at) {
                store.append(session, json!({"message": user(&spoken(words)), "parent_id": parent}));
            }
        }
        Step::Update { session, at, words } => {
            let session = &session_at(session);
            if let Some(entry) = pick(&nodes(session), *at) {
                let content = text(&spoken(words));
                store.ok("update-message", json!({"session_id": session, "entry_id": entry, "content": content}));
            }
        }
        Step::Extend { session, at, word } => {
            let session = &session_at(session);
            if let Some(entry) = pick(&nodes(session), *at) {
                let text = format!(" {}", WORDS[*word]);
                store.ok("extend-message", json!({"session_id": session, "entry_id": entry, "text": text}));
            }
        }
        Step::Leaf { session, at } => {
            let session = &session_at(session);
            if let Some(entry) = pick(&nodes(session), *at) {
                store.ok("set-active-leaf", json!({"session_id": session, "entry_id": entry}));
            }
        }
        Step::Label { session, label } => {
            let metadata = json!({"label": label});
            store.ok("set-meta", json!({"session_id": session_at(session), "metadata": metadata}));
        }
        Step::Fork { session, at } => {
            let session = session_at(session);
            if let Some(entry) = pick(&nodes(&session), *at) {
                let fork = store.ok("fork", json!({"session_id": session, "entry_id": entry}));
                sessions.push(fork["session_id"].clone());
            }
        }
    }
}

fn pick(nodes: &[Value], at: usize) -> Option<Value> {
    nodes.get(at % nodes.len().max(1)).cloned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn search_finds_what_a_plain_look_finds(steps in proptest::collection::vec(step(), 1..48)) {
        run(Home::Memory(Banyan::in_memory(Options::default()).unwrap()), &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 50, ..ProptestConfig::default() })]

    #[test]
    fn and_so_it_does_after_restarts(steps in proptest::collection::vec(step(), 1..48)) {
        run(Home::Disk(OnDisk::new()), &steps);
    }
}
