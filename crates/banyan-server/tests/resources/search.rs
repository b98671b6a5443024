use serde_json::json;

use crate::client::*;

#[test]
fn what_was_said_is_found() {
    let client = Client::new();
    let session = client.session();
    let entry = client.say(&session, "the roots of a banyan");
    client.say(&session, "something else");
    let found = client.get("/v1/search?q=banyan+roots&roles=user,assistant&wait_ms=30000");
    let answer = found.json();
    assert_eq!((found.status, &answer["complete"]), (200, &json!(true)));
    let hits = answer["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 1);
    assert_eq!((&hits[0]["session_id"], &hits[0]["entry_id"]), (&json!(session), &json!(entry)));
    let none = client.get("/v1/search?q=banyan&metadata=%7B%22agent%22%3A%22nobody%22%7D&wait_ms=30000");
    assert_eq!(none.json()["hits"], json!([]));
}

#[test]
fn a_time_may_be_before_1970() {
    let client = Client::new();
    let session = client.session();
    client.say(&session, "the roots of a banyan");
    let found = client.get("/v1/search?q=banyan&since=-1&wait_ms=30000").json();
    assert_eq!(found["hits"].as_array().unwrap().len(), 1);
    assert_eq!(client.get("/v1/search?q=banyan&until=-1&wait_ms=30000").json()["hits"], json!([]));
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let client = Client::new();
    for query in [
        "",
        "?q=",
        "?q=%3A%3A",
        "?q=a&limit=x",
        "?q=a&limit=-1",
        "?q=a&since=+1",
        "?q=a&since=1.5",
        "?q=a&nonsense=1",
        "?q=a&roles=nobody",
        "?q=a&roles=",
        "?q=a&query=a",
    ] {
        let (status, code) = client.get(&format!("/v1/search{query}")).refused();
        assert_eq!((status, code.as_str()), (400, "session/invalid_request"), "{query}");
    }
}
