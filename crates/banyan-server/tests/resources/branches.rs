use serde_json::json;

use crate::client::*;

fn refusal(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[test]
fn the_tree_shows_every_branch() {
    let client = Client::new();
    let session = client.session();
    let root = client.say(&session, "root");
    client.say(&session, "left");
    let right = json!({"message": user("right"), "parent_id": root});
    client.post(&format!("/v1/sessions/{session}/messages"), right);
    let tree = client.get(&format!("/v1/sessions/{session}/tree"));
    let on_path: Vec<bool> =
        tree.json()["entries"].as_array().unwrap().iter().map(|it| it["on_active_path"] == true).collect();
    assert_eq!((tree.status, on_path), (200, vec![true, false, true]));
    assert_eq!(client.get("/v1/sessions/nobody/tree").refused(), refusal(404, "session/not_found"));
}

#[test]
fn the_active_leaf_is_moved() {
    let client = Client::new();
    let session = client.session();
    let (first, _) = (client.say(&session, "a"), client.say(&session, "b"));
    let address = format!("/v1/sessions/{session}/leaf");
    let moved = client.put(&address, json!({"entry_id": first}));
    assert_eq!((moved.status, moved.json()), (200, json!({"active_leaf": first})));
    let page = client.get(&format!("/v1/sessions/{session}/messages")).json();
    assert_eq!(page["messages"].as_array().unwrap().len(), 1);
    assert_eq!(
        client.put(&address, json!({"entry_id": "nothing"})).refused(),
        refusal(404, "session/entry_not_found")
    );
    assert_eq!(client.put(&address, json!({})).refused(), refusal(400, "session/invalid_request"));
}

#[test]
fn a_session_is_forked() {
    let client = Client::new();
    let session = client.session();
    let (first, _) = (client.say(&session, "a"), client.say(&session, "b"));
    let address = format!("/v1/sessions/{session}/fork");
    let fork = client.post(&address, json!({"entry_id": first, "title": "F"}));
    let location = fork.header("location").unwrap();
    assert_eq!((fork.status, &fork.json()["meta"]["forked_from"]), (201, &json!(session)));
    assert_eq!(location, format!("/v1/sessions/{}", fork.json()["session_id"].as_str().unwrap()));
    assert_eq!(client.get(location).json()["meta"]["message_count"], 1);
    assert_eq!(
        client.post(&address, json!({"entry_id": "nothing"})).refused(),
        refusal(404, "session/entry_not_found")
    );
}
