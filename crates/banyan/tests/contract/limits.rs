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
