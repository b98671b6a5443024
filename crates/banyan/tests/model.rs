//! Random calls, restarts and kills, each answer and each event compared with a plain model of the contract.

use crate::support::model::{Model, Session, Told};
use crate::support::step::{Step, named, steps};
use crate::support::*;
use banyan::model::Position;
use banyan::{Banyan, Options};
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::{Value, json};
use tempfile::TempDir;

proptest! {
    #![proptest_config(Config { cases: cases(20), max_shrink_iters: 4000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_store_behaves_as_the_model_whatever_is_called_and_however_it_is_stopped(habits in habits(), steps in steps(60)) {
        let mut run = Run::new(habits);
        for step in &steps {
            run.take(step);
        }
        run.check_everything();
        run.stop(Stop::Kill);
        run.check_everything();
        run.stop(Stop::Close);
        run.check_everything();
        run.check_replay();
    }
}

/// How many runs: few by default, more when `PROPTEST_CASES` says so.
fn cases(few: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(few)
}

/// How a store is set up, to make rare things common.
#[derive(Clone, Copy, Debug)]
struct Habits {
    background: bool,
    tiny_segments: bool,
    tiny_caches: bool,
    tiny_blobs: bool,
}

fn habits() -> impl Strategy<Value = Habits> {
    any::<[bool; 4]>().prop_map(|[background, tiny_segments, tiny_caches, tiny_blobs]| Habits {
        background,
        tiny_segments,
        tiny_caches,
        tiny_blobs,
    })
}

impl Habits {
    fn options(self) -> Options {
        let mut options = Options::default();
        options.log.background = self.background;
        if self.tiny_segments {
            options.log.first_segment = 8 << 10;
            options.log.largest_segment = 16 << 10;
        }
        if self.tiny_caches {
            options.cached_sessions = 1;
            options.cached_entries = 4;
        }
        if self.tiny_blobs {
            options.blob_threshold = 100;
        }
        options
    }
}

enum Stop {
    Close,
    Kill,
}

struct Run {
    habits: Habits,
    model: Model,
    store: Option<Banyan>,
    dir: TempDir,
    ears: Option<Ears>,
    heard: Vec<Heard>,
}

impl Run {
    fn new(habits: Habits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Banyan::open(dir.path(), habits.options()).unwrap();
        let ears = Some(Ears::after(&store, Position::BEGINNING));
        Self { habits, model: Model::default(), store: Some(store), dir, ears, heard: Vec::new() }
    }

    fn store(&self) -> &dyn Door {
        self.store.as_ref().unwrap()
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Reopen => self.stop(Stop::Close),
            Step::Kill => self.stop(Stop::Kill),
            Step::Check { session, limit } => {
                if let (_, Some(session)) = named(&self.model, *session) {
                    self.check_session(session, usize::from(*limit));
                }
            }
            call => {
                let (function, request) = call.request(&self.model).unwrap();
                let got = self.store().call(function, request.clone());
                let store = self.store.as_ref().unwrap();
                let expected = self.model.answer(function, &request, got.as_ref().unwrap_or(&Value::Null), store);
                let got = got.as_ref().map_err(|refusal| refusal.code.as_str());
                assert_eq!(got, expected.as_ref().map_err(|code| *code), "{function} {request}");
                self.listen();
            }
        }
    }

    fn listen(&mut self) {
        self.heard.extend(self.ears.as_mut().unwrap().heard());
        let since = self.heard.len().saturating_sub(8);
        let expected: Vec<(String, Value)> = self.model.events[since..].iter().map(as_heard).collect();
        let heard: Vec<(String, Value)> = self.heard[since..].iter().map(without_deletion_time).collect();
        assert_eq!(heard, expected);
        assert!(self.heard[since..].windows(2).all(|two| two[0].position < two[1].position));
    }

    /// Stops the store and opens it again; the subscriber comes back with the last position that it saw.
    fn stop(&mut self, how: Stop) {
        let store = self.store.take().unwrap();
        match how {
            Stop::Close => store.close().unwrap(),
            Stop::Kill => self.dir = copied(self.dir.path()),
        }
        self.ears = None;
        drop(store);
        let store = Banyan::open(self.dir.path(), self.habits.options()).unwrap();
        let last = self.heard.last().map_or(Position::BEGINNING, |heard| heard.position);
        self.ears = Some(Ears::after(&store, last));
        self.store = Some(store);
        self.listen();
    }

    fn check_everything(&mut self) {
        for session in self.model.sessions.values() {
            self.check_session(session, 3);
        }
        self.check_lists();
        self.listen();
    }

    fn check_session(&self, session: &Session, limit: usize) {
        let store = self.store();
        let id = &session.meta["session_id"];
        assert_eq!(&store.meta(id), &session.meta);
        for entry in &session.entries {
            assert_eq!(&store.entry(id, &entry["id"]), entry);
            let from =
                json!({"session_id": id, "from_entry_id": entry["id"], "include_custom": true, "limit": 500});
            let chain: Vec<Value> =
                session.chain(entry["id"].as_str().unwrap()).into_iter().map(as_item).collect();
            assert_eq!(store.ok("messages", from)["messages"], json!(chain));
        }
        assert_eq!(self.pages(id, limit), session.path().into_iter().map(as_item).collect::<Vec<_>>());
        let mut shown = store.ok("tree", json!({"session_id": id}));
        if self.habits.tiny_blobs {
            // What is stored elsewhere is counted as it is there, without escapes.
            measure(&mut shown, session);
        }
        assert_eq!(shown, tree(session));
        let listed = store.ok("list-attachments", json!({"session_id": id}));
        let metas: Vec<&Value> = session.attachments.iter().map(|(meta, _)| meta).collect();
        assert_eq!(sorted(&listed["attachments"]), sorted(&json!(metas)));
        for (meta, data) in &session.attachments {
            let got =
                store.ok("get-attachment", json!({"session_id": id, "attachment_id": meta["attachment_id"]}));
            assert_eq!(got, json!({"attachment": meta, "data": data}));
        }
    }

    fn pages(&self, id: &Value, limit: usize) -> Vec<Value> {
        let mut request = json!({"session_id": id, "include_custom": true, "limit": limit});
        let mut all = Vec::new();
        loop {
            let page = self.store().ok("messages", request.clone());
            all.extend(page["messages"].as_array().unwrap().clone());
            match page.get("next_cursor") {
                Some(cursor) => request["cursor"] = cursor.clone(),
                None => return all,
            }
        }
    }

    fn check_lists(&self) {
        let key =
            |meta: &Value, field: &str| (meta[field].as_i64(), meta["session_id"].as_str().unwrap().to_owned());
        let mut metas: Vec<Value> = self.model.sessions.values().map(|session| session.meta.clone()).collect();
        let listed = |order: &str| self.store().ok("list", json!({"order": order, "limit": 500}));
        metas.sort_by_key(|meta| key(meta, "created_at"));
        assert_eq!(listed("created_asc"), json!({"sessions": metas}));
        metas.reverse();
        assert_eq!(listed("created_desc"), json!({"sessions": metas}));
        metas.sort_by_key(|meta| std::cmp::Reverse(key(meta, "updated_at")));
        assert_eq!(listed("updated_desc"), json!({"sessions": metas}));
        for owner in 0..4 {
            let wanted: Vec<&Value> = metas.iter().filter(|meta| meta["metadata"]["owner"] == owner).collect();
            let found = self.store().ok("list", json!({"limit": 500, "metadata": {"owner": owner}}));
            assert_eq!(found, json!({"sessions": wanted}));
        }
    }

    /// From the beginning, all that was heard is told again, but for sessions that were deleted since.
    fn check_replay(&self) {
        let told = Ears::after(self.store.as_ref().unwrap(), Position::BEGINNING).heard();
        let ended = |life: usize| {
            let deletion = |told: &&Told| told.event_type == "session::deleted" && told.life == life;
            self.model.events.iter().any(|told| deletion(&told))
        };
        let kept = self
            .heard
            .iter()
            .zip(&self.model.events)
            .filter(|(_, told)| told.event_type == "session::deleted" || !ended(told.life));
        let kept: Vec<&Heard> = kept.map(|(heard, _)| heard).collect();
        let left_out = |heard: &&Heard| self.heard.contains(heard) && !kept.contains(heard);
        let told: Vec<&Heard> = told.iter().filter(|heard| !left_out(heard)).collect();
        assert_eq!(told, kept);
    }
}

fn as_heard(told: &Told) -> (String, Value) {
    (told.event_type.to_owned(), told.payload.clone())
}

fn without_deletion_time(heard: &Heard) -> (String, Value) {
    let (event_type, mut payload) = heard.said();
    if event_type == "session::deleted" {
        assert!(payload["timestamp"].is_i64());
        payload["timestamp"] = Value::Null;
    }
    (event_type, payload)
}

fn as_item(entry: &Value) -> Value {
    let mut item = json!({"entry_id": entry["id"]});
    if entry["kind"] == "custom" {
        item["custom"] = json!({"custom_type": entry["custom_type"], "data": entry["data"]});
    } else {
        item["message"] = entry["message"].clone();
        if let Some(origin) = entry.get("origin") {
            item["origin"] = origin.clone();
        }
    }
    item
}

fn tree(session: &Session) -> Value {
    let path: Vec<&Value> = session.path().iter().map(|entry| &entry["id"]).collect();
    let node = |entry: &Value| {
        let mut node = json!({"entry_id": entry["id"], "parent_id": entry["parent_id"], "kind": entry["kind"],
            "revision": entry["revision"], "timestamp": entry["timestamp"], "on_active_path": path.contains(&&entry["id"])});
        node["bytes"] = json!(size(entry));
        for (field, value) in [("role", &entry["message"]["role"]), ("custom_type", &entry["custom_type"])] {
            if !value.is_null() {
                node[field] = value.clone();
            }
        }
        node
    };
    let entries: Vec<Value> = session.entries.iter().map(node).collect();
    let mut tree = json!({"session_id": session.meta["session_id"], "entries": entries});
    if let Some(leaf) = &session.leaf {
        tree["active_leaf"] = json!(leaf);
    }
    tree
}

fn size(entry: &Value) -> usize {
    let body = if entry["kind"] == "custom" { &entry["data"] } else { &entry["message"] };
    body.to_string().len()
}

fn measure(tree: &mut Value, session: &Session) {
    for (node, entry) in tree["entries"].as_array_mut().unwrap().iter_mut().zip(&session.entries) {
        node["bytes"] = json!(size(entry));
    }
}

fn sorted(attachments: &Value) -> Vec<Value> {
    let mut all = attachments.as_array().unwrap().clone();
    all.sort_by_key(|meta| meta["attachment_id"].to_string());
    all
}
