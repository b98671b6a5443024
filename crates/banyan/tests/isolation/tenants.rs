//! Two tenants of one store, and a session with something of everything.

use banyan::{Access, Banyan, Options, Scope};
use serde_json::{Value, json};

use crate::support::*;

/// A store with a handle for each of two tenants.
pub(super) struct Tenants {
    /// Reaches everything.
    pub(super) all: Banyan,
    pub(super) mine: Banyan,
    pub(super) theirs: Banyan,
    /// What a session of theirs carries.
    pub(super) their_pairs: Value,
}

/// Pairs of mine and of theirs that are easily taken for each other.
pub(super) fn likenesses() -> Vec<(Value, Value)> {
    vec![
        (json!({"tenant": "a"}), json!({"tenant": "b"})),
        (json!({"tenant": 1}), json!({"tenant": "1"})),
        (json!({"tenant": 1}), json!({"tenant": 1.0})),
        (json!({"tenant": 18_446_744_073_709_551_615_u64}), json!({"tenant": 18_446_744_073_709_551_614_u64})),
        (json!({"tenant": null}), json!({"tenant": false})),
        (json!({"tenant": {"id": 1, "of": ["x"]}}), json!({"tenant": {"id": 1, "of": ["x", null]}})),
        (json!({"tenant": {}}), json!({"tenant": []})),
        (json!({"tenant": "B\u{fc}ro \u{1f333}"}), json!({"tenant": "Bu\u{308}ro \u{1f333}"})),
        (json!({"org": "o", "team": "x"}), json!({"org": "o", "team": "y"})),
        (json!({"Tenant": "a"}), json!({"tenant": "a"})),
    ]
}

pub(super) fn scope(pairs: &Value) -> Access {
    Access { scope: Scope::of(pairs.as_object().expect("pairs").clone()), read_only: false }
}

impl Tenants {
    pub(super) fn of(mine: &Value, theirs: &Value) -> Self {
        Self::on(Banyan::in_memory(Options::default()).expect("a store"), mine, theirs)
    }

    pub(super) fn on(all: Banyan, mine: &Value, theirs: &Value) -> Self {
        let (mine, their_pairs) = (all.with_access(scope(mine)), theirs.clone());
        Self { mine, theirs: all.with_access(scope(theirs)), all, their_pairs }
    }

    pub(super) fn plain() -> Self {
        Self::of(&json!({"tenant": "a"}), &json!({"tenant": "b"}))
    }
}

/// A session with something of everything, and what its parts are called.
#[derive(Clone)]
pub(super) struct Furnished {
    pub(super) session: Value,
    /// A message on the active path, before the last entry.
    pub(super) message: Value,
    pub(super) leaf: Value,
    /// A file that a message shows.
    pub(super) shown: Value,
    /// A file that none does.
    pub(super) unused: Value,
}

/// Makes such a session.
pub(super) fn furnish(store: &dyn Door, id: &str) -> Furnished {
    let session =
        store.ok("ensure", json!({"session_id": id, "title": "T", "metadata": {"n": 1}}))["session_id"].clone();
    let put = |name: &str| {
        let data = base64(format!("{name} of {id}").as_bytes());
        store
            .ok("put-attachment", json!({"session_id": session, "name": name, "mime": "text/plain", "data": data}))
    };
    let (shown, unused) = (put("shown"), put("unused"));
    store.say(&session, "first");
    let showing = json!({"role": "user", "content": [shown["block"]], "timestamp": 1});
    store.append(&session, json!({"message": showing}));
    let message = store.append(&session, json!({"message": assistant("answer")}));
    store.append(&session, json!({"message": user("a branch"), "parent_id": message}));
    store.append(&session, json!({"custom": {"custom_type": "mark", "data": {"x": 1}}, "parent_id": message}));
    let leaf = store.append(&session, json!({"message": assistant("grow")}));
    store.ok("extend-message", json!({"session_id": session, "entry_id": leaf, "text": "ing"}));
    let attachment = |put: &Value| put["attachment"]["attachment_id"].clone();
    Furnished { session, message, leaf, shown: attachment(&shown), unused: attachment(&unused) }
}

/// Everything there is to know of a session.
pub(super) fn all_of(store: &dyn Door, session: &Value) -> Value {
    let about = json!({"session_id": session});
    let tree = store.ok("tree", about.clone());
    let entries: Vec<Value> = ids(&tree["entries"]).iter().map(|entry| store.entry(session, entry)).collect();
    let attachments = store.ok("list-attachments", about);
    let bytes: Vec<Value> = attachments["attachments"]
        .as_array()
        .expect("attachments")
        .iter()
        .map(|it| json!({"session_id": session, "attachment_id": it["attachment_id"]}))
        .map(|request| store.ok("get-attachment", request))
        .collect();
    json!({"meta": store.meta(session), "tree": tree, "entries": entries, "files": bytes, "path": store.path(session)})
}

/// The ids of all sessions that a handle is shown.
pub(super) fn listed(store: &dyn Door) -> Vec<String> {
    let page = store.ok("list", json!({"order": "created_asc"}));
    page["sessions"]
        .as_array()
        .expect("sessions")
        .iter()
        .map(|it| it["session_id"].as_str().expect("an id").to_owned())
        .collect()
}
