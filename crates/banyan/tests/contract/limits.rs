//! Limits that an operator sets. These need a store of their own, so they are not run through other doors.

use banyan::{Banyan, Options};
use serde_json::{Value, json};

use crate::support::*;

fn store(set: impl FnOnce(&mut Options)) -> Banyan {
    let mut options = Options::default();
    set(&mut options);
    Banyan::in_memory(options).unwrap()
}

fn page_sizes(store: &dyn Door, asked: Value) -> (usize, usize) {
    let session = store.ok("list", json!({"order": "created_asc"}))["sessions"][0]["session_id"].clone();
    let listed = store.ok("list", json!({"limit": asked}));
    let read = store.ok("messages", json!({"session_id": session, "limit": asked}));
    (listed["sessions"].as_array().unwrap().len(), read["messages"].as_array().unwrap().len())
}

#[test]
fn pages_follow_the_limits_that_are_set() {
    let store = store(|options| (options.limits.default_list_limit, options.limits.max_list_limit) = (2, 4));
    let store = door(&store);
    for _ in 0..6 {
        let session = store.session();
        let messages: Vec<Value> = (0..6).map(|n| user(&n.to_string())).collect();
        store.ok("append-many", json!({"session_id": session, "messages": messages}));
        a_later_moment();
    }
    for (asked, size) in
        [(Value::Null, 2), (json!(0), 1), (json!(3), 3), (json!(4), 4), (json!(5), 4), (json!(u64::MAX), 4)]
    {
        assert_eq!(page_sizes(store, asked.clone()), (size, size), "{asked}");
    }
}

#[test]
fn limits_that_make_no_sense_still_give_pages_of_one() {
    let store = store(|options| (options.limits.default_list_limit, options.limits.max_list_limit) = (9, 0));
    let session = door(&store).session();
    door(&store).ok("append-many", json!({"session_id": session, "messages": [user("a"), user("b")]}));
    door(&store).session();
    for asked in [Value::Null, json!(0), json!(7)] {
        assert_eq!(page_sizes(door(&store), asked), (1, 1));
    }
}

#[test]
fn an_attachment_that_is_too_large_is_refused_before_its_session_is_looked_for() {
    let store = store(|options| options.limits.max_attachment_bytes = 8);
    let session = door(&store).session();
    let request = |session: &Value, bytes: &[u8]| json!({"session_id": session, "name": "n", "mime": "m", "data": base64(bytes)});
    assert_eq!(
        door(&store).refused("put-attachment", request(&json!("nobody"), &[0; 9])),
        "session/attachment_too_large"
    );
    assert_eq!(door(&store).refused("put-attachment", request(&session, &[0; 9])), "session/attachment_too_large");
    assert_eq!(door(&store).ok("put-attachment", request(&session, &[0; 8]))["attachment"]["size"], 8);
}

#[test]
fn metadata_beyond_the_limit_is_refused_by_every_function_that_sets_it() {
    let store = store(|options| options.limits.max_metadata_bytes = 1000);
    let door = door(&store);
    let large = json!({"note": "x".repeat(1000)});
    let small = json!({"note": "x".repeat(900)});
    let session = door.ok("create", json!({"metadata": small}))["session_id"].clone();
    let long = "x".repeat(1001);
    let head = store.head();
    for (function, request) in [
        ("create", json!({"metadata": large})),
        ("create", json!({"title": long})),
        ("ensure", json!({"session_id": "new", "metadata": large})),
        ("ensure", json!({"session_id": "new", "description": long})),
        ("set-meta", json!({"session_id": session, "metadata": large})),
        ("set-meta", json!({"session_id": session, "title": long})),
        ("set-status", json!({"session_id": session, "status": "error", "reason": long})),
    ] {
        assert_eq!(door.refused(function, request), "session/too_large", "{function}");
    }
    let entry = door.say(&session, "hi");
    assert_eq!(
        door.refused("fork", json!({"session_id": session, "entry_id": entry, "title": long})),
        "session/too_large"
    );
    let meta = |metadata: &Value| {
        json!({"meta": {"session_id": "put", "title": "", "description": "", "status": "idle", "metadata": metadata,
            "message_count": 0, "created_at": 1, "updated_at": 1}})
    };
    let put = |metadata: &Value| {
        let request = meta(metadata).to_string();
        banyan::block_on(store.store_call("session::store::put-meta", request.as_bytes()))
    };
    assert!(put(&large).is_err());
    assert!(put(&small).is_ok());
    assert_eq!(store.head().0, head.0 + 2, "what is refused leaves nothing");
}

#[test]
fn a_tree_is_read_in_pages_and_one_that_is_too_large_only_so() {
    let store = store(|options| options.durability = banyan::Durability::Buffered);
    let door = door(&store);
    let session = door.session();
    for _ in 0..7 {
        door.say(&session, "one of a few");
    }
    let whole = door.ok("tree", json!({"session_id": session}));
    assert!(whole.get("next_cursor").is_none());
    let mut pages = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = door.ok("tree", json!({"session_id": session, "limit": 3, "cursor": cursor}));
        assert_eq!(page["active_leaf"], whole["active_leaf"]);
        pages.push(page["entries"].as_array().unwrap().clone());
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 1]);
    assert_eq!(json!(pages.concat()), whole["entries"]);
    let refused = door.refused("tree", json!({"session_id": session, "cursor": "nonsense"}));
    assert_eq!(refused, "session/invalid_cursor");

    let large = door.session();
    let messages: Vec<Value> = (0..5_001).map(|_| user("x")).collect();
    for _ in 0..10 {
        door.ok("append-many", json!({"session_id": large, "messages": messages}));
    }
    assert_eq!(door.refused("tree", json!({"session_id": large})), "session/too_large");
    let page = door.ok("tree", json!({"session_id": large, "limit": 1_000_000}));
    assert_eq!(page["entries"].as_array().unwrap().len(), 10_000);
}

#[test]
fn metadata_that_is_there_already_is_no_reason_to_refuse() {
    let dir = tempfile::tempdir().unwrap();
    let limited = |bytes| {
        let mut options = Options::default();
        options.limits.max_metadata_bytes = bytes;
        Banyan::open(dir.path(), options).unwrap()
    };
    let before = limited(1 << 20);
    let metadata = json!({"note": "x".repeat(5000)});
    door(&before).ok("ensure", json!({"session_id": "s", "metadata": metadata}));
    before.close().unwrap();
    drop(before);
    let store = limited(1000);
    let door = door(&store);
    let entry = door.say(&json!("s"), "still written to");
    door.ok("set-meta", json!({"session_id": "s", "title": "and named"}));
    assert_eq!(door.ok("get", json!({"session_id": "s"}))["meta"]["metadata"], metadata);
    assert_eq!(door.refused("fork", json!({"session_id": "s", "entry_id": entry})), "session/too_large");
}
