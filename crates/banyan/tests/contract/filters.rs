//! Which events a subscription asks for, and which subscriptions are refused.

use serde_json::{Value, json};

use crate::support::*;

scenarios! {
    a_subscription_hears_its_types_only
    null_is_an_empty_config
    a_session_id_is_matched_exactly
    roles_match_the_messages_role
    no_roles_match_nothing
    custom_entries_have_no_role
    metadata_is_matched_key_by_key_and_value_by_value
    everything_supplied_must_match
    metadata_is_what_the_session_has_at_the_time
    an_event_is_delivered_once_however_many_filters_match
    a_config_with_an_unknown_key_is_refused
    a_config_with_a_wrong_value_is_refused
    a_closed_subscription_hears_nothing_and_others_go_on
}

const MESSAGES: [&str; 2] = ["session::message-added", "session::message-updated"];
const SESSIONS: [&str; 3] = ["session::status-changed", "session::meta-updated", "session::deleted"];
const ALL: [&str; 6] = ["session::created", MESSAGES[0], MESSAGES[1], SESSIONS[0], SESSIONS[1], SESSIONS[2]];

/// Everything that can happen to a session; returns its id.
fn a_life(store: &dyn Door, metadata: Value) -> Value {
    let id = store.ok("create", json!({"metadata": metadata}))["session_id"].clone();
    let entry = store.say(&id, "hi");
    store.ok("update-message", json!({"session_id": id, "entry_id": entry, "content": text("ho")}));
    store.ok("set-status", json!({"session_id": id, "status": "done"}));
    store.ok("set-meta", json!({"session_id": id, "title": "T"}));
    store.ok("delete", json!({"session_id": id}));
    id
}

fn a_subscription_hears_its_types_only(store: &dyn Door) {
    let mut listeners = ALL.map(|event_type| (event_type, store.listen(&[(event_type, json!({}))]).unwrap()));
    let mut two = store.listen(&[(ALL[0], json!({})), (ALL[5], json!({}))]).unwrap();
    a_life(store, json!({}));
    for (event_type, listener) in &mut listeners {
        assert_eq!(
            said(&listener.heard()).iter().map(|(heard, _)| heard.as_str()).collect::<Vec<_>>(),
            [*event_type]
        );
    }
    assert_eq!(types(&two.heard()), ["created", "deleted"]);
}

fn null_is_an_empty_config(store: &dyn Door) {
    for event_type in ALL {
        let keys: &[&str] = match event_type {
            "session::created" => &["metadata"],
            _ if MESSAGES.contains(&event_type) => &["session_id", "roles", "metadata"],
            _ => &["session_id", "metadata"],
        };
        let nulls: Value =
            keys.iter().map(|key| ((*key).to_owned(), Value::Null)).collect::<serde_json::Map<_, _>>().into();
        for config in [Value::Null, json!({}), nulls] {
            let mut listener = store.listen(&[(event_type, config)]).unwrap();
            a_life(store, json!({}));
            assert_eq!(listener.heard().len(), 1, "{event_type}");
        }
    }
}

fn a_session_id_is_matched_exactly(store: &dyn Door) {
    store.ok("ensure", json!({"session_id": "mine"}));
    store.ok("ensure", json!({"session_id": "mine2"}));
    let mut listener = store.listen(&[(MESSAGES[0], json!({"session_id": "mine"}))]).unwrap();
    let mut nobody = store.listen(&[(MESSAGES[0], json!({"session_id": "min"}))]).unwrap();
    store.say(&json!("mine2"), "other");
    store.say(&json!("mine"), "hi");
    let heard = listener.heard();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].payload["session_id"], "mine");
    assert_eq!(nobody.heard(), []);
    for event_type in SESSIONS {
        let mut listener = store.listen(&[(event_type, json!({"session_id": "later"}))]).unwrap();
        store.ok("ensure", json!({"session_id": "later"}));
        store.ok("set-status", json!({"session_id": "later", "status": "done"}));
        store.ok("set-meta", json!({"session_id": "later", "title": "T"}));
        store.ok("delete", json!({"session_id": "later"}));
        a_life(store, json!({}));
        assert_eq!(listener.heard().len(), 1, "{event_type}");
    }
}

fn roles_match_the_messages_role(store: &dyn Door) {
    let id = store.session();
    let roles = [json!(["user"]), json!(["assistant", "function_result"]), json!(["custom"])];
    let mut listeners = roles.map(|roles| {
        let config = json!({"roles": roles});
        store.listen(&[(MESSAGES[0], config.clone()), (MESSAGES[1], config)]).unwrap()
    });
    for message in [user("user"), assistant("assistant"), result("c", "result"), note("t", "custom")] {
        let entry = store.append(&id, json!({"message": message}));
        let said = format!("{}!", said_in(&message));
        store.ok("update-message", json!({"session_id": id, "entry_id": entry, "content": text(&said)}));
        store.ok("extend-message", json!({"session_id": id, "entry_id": entry, "text": "?"}));
    }
    let mut heard = listeners.iter_mut().map(|listener| {
        listener.heard().iter().map(|heard| said_in(&heard.payload["message"])).collect::<Vec<_>>()
    });
    assert_eq!(heard.next().unwrap(), ["user", "user!", "user!?"]);
    assert_eq!(heard.next().unwrap(), ["assistant", "assistant!", "assistant!?", "result", "result!", "result!?"]);
    assert_eq!(heard.next().unwrap(), ["custom", "custom!", "custom!?"]);
}

fn no_roles_match_nothing(store: &dyn Door) {
    let config = json!({"roles": []});
    let mut listener = store.listen(&[(MESSAGES[0], config.clone()), (MESSAGES[1], config)]).unwrap();
    a_life(store, json!({}));
    assert_eq!(listener.heard(), []);
}

fn custom_entries_have_no_role(store: &dyn Door) {
    let id = store.session();
    let mut listener = store
        .listen(&[(MESSAGES[0], json!({"roles": ["custom", "user", "assistant", "function_result"]}))])
        .unwrap();
    store.append(&id, json!({"custom": {"custom_type": "t", "data": 1}}));
    assert_eq!(listener.heard(), []);
}

fn metadata_is_matched_key_by_key_and_value_by_value(store: &dyn Door) {
    let metadata = json!({"owner": "u", "tags": ["a", "b"], "deep": {"x": 1, "y": 2}, "none": null});
    for (wanted, matches) in [
        (json!({}), true),
        (json!({"owner": "u"}), true),
        (json!({"deep": {"y": 2, "x": 1}}), true),
        (json!({"none": null, "owner": "u"}), true),
        (json!({"owner": "v"}), false),
        (json!({"deep": {"x": 1}}), false),
        (json!({"tags": ["a"]}), false),
        (json!({"missing": null}), false),
    ] {
        let configs = ALL.map(|event_type| (event_type, json!({"metadata": wanted})));
        let mut listener = store.listen(&configs).unwrap();
        a_life(store, metadata.clone());
        assert_eq!(listener.heard().len(), if matches { 6 } else { 0 }, "{wanted}");
    }
    let mut with = store.listen(&[(ALL[0], json!({"metadata": {"a": null}}))]).unwrap();
    let mut vacuous = store.listen(&[(ALL[0], json!({"metadata": {}}))]).unwrap();
    store.session();
    assert_eq!((with.heard().len(), vacuous.heard().len()), (0, 1), "absent metadata");
}

fn everything_supplied_must_match(store: &dyn Door) {
    store.ok("ensure", json!({"session_id": "mine", "metadata": {"owner": "u"}}));
    let base = json!({"session_id": "mine", "roles": ["user"], "metadata": {"owner": "u"}});
    let mut listeners = Vec::new();
    for (key, wrong) in [
        ("-", json!(null)),
        ("session_id", json!("other")),
        ("roles", json!(["assistant"])),
        ("metadata", json!({"owner": "v"})),
    ] {
        let mut config = base.clone();
        if key != "-" {
            config[key] = wrong;
        }
        listeners.push(store.listen(&[(MESSAGES[0], config)]).unwrap());
    }
    store.say(&json!("mine"), "hi");
    let heard: Vec<usize> = listeners.iter_mut().map(|listener| listener.heard().len()).collect();
    assert_eq!(heard, [1, 0, 0, 0]);
}

fn metadata_is_what_the_session_has_at_the_time(store: &dyn Door) {
    let id = store.ok("create", json!({"metadata": {"owner": "old"}}))["session_id"].clone();
    let listen = |owner: &str| {
        store.listen(&ALL.map(|event_type| (event_type, json!({"metadata": {"owner": owner}})))).unwrap()
    };
    let (mut old, mut new) = (listen("old"), listen("new"));
    store.say(&id, "hi");
    store.ok("set-meta", json!({"session_id": id, "metadata": {"owner": "new"}}));
    store.ok("set-status", json!({"session_id": id, "status": "done"}));
    store.ok("delete", json!({"session_id": id}));
    assert_eq!(types(&old.heard()), ["message-added"]);
    assert_eq!(types(&new.heard()), ["meta-updated", "status-changed", "deleted"]);
}

fn an_event_is_delivered_once_however_many_filters_match(store: &dyn Door) {
    let id = store.session();
    let filters = [
        (MESSAGES[0], json!({})),
        (MESSAGES[0], json!({"session_id": id})),
        (MESSAGES[0], json!({"roles": ["user"]})),
    ];
    let mut listener = store.listen(&filters).unwrap();
    store.say(&id, "hi");
    assert_eq!(listener.heard().len(), 1);
}

fn refusal(store: &dyn Door, event_type: &str, config: Value) -> String {
    match store.listen(&[(event_type, config.clone())]) {
        Ok(_) => panic!("{event_type} {config} should be refused"),
        Err(refusal) => {
            assert_eq!(refusal.code, "session/invalid_request");
            refusal.message
        }
    }
}

fn a_config_with_an_unknown_key_is_refused(store: &dyn Door) {
    for event_type in ALL {
        let mut unknown = vec![json!({"sesion_id": "s"}), json!({"metadata": {}, "kind": "user"})];
        if event_type == "session::created" {
            unknown.push(json!({"session_id": "s"}));
        }
        if !MESSAGES.contains(&event_type) {
            unknown.push(json!({"roles": ["user"]}));
        }
        for config in unknown {
            let message = refusal(store, event_type, config);
            assert!(message.contains(&format!("invalid {event_type} config")), "{message}");
            assert!(message.contains("unknown field"), "{message}");
        }
    }
}

fn a_config_with_a_wrong_value_is_refused(store: &dyn Door) {
    for (event_type, config) in [
        (MESSAGES[0], json!({"roles": ["system"]})),
        (MESSAGES[1], json!({"roles": "user"})),
        (MESSAGES[0], json!({"session_id": 5})),
        (SESSIONS[0], json!({"session_id": ["s"]})),
        (SESSIONS[2], json!({"metadata": "owner"})),
        (ALL[0], json!({"metadata": [1]})),
        (ALL[0], json!([])),
        (ALL[0], json!("text")),
        (ALL[0], json!(1)),
    ] {
        let message = refusal(store, event_type, config);
        assert!(message.contains(&format!("invalid {event_type} config")), "{message}");
    }
    assert!(store.listen(&[("session::renamed", json!({}))]).is_err());
}

fn a_closed_subscription_hears_nothing_and_others_go_on(store: &dyn Door) {
    let id = store.session();
    let (closed, mut open) = (store.listen_to_all(), store.listen_to_all());
    drop(closed);
    store.say(&id, "hi");
    assert_eq!(types(&open.heard()), ["message-added"]);
}
