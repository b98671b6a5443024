use serde_json::json;

use crate::client::*;

fn refusal(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[test]
fn a_wrong_method_is_told_which_are_right() {
    let client = Client::new();
    for (method, address, allow) in [
        ("PATCH", "/v1/call/session::get", "POST"),
        ("DELETE", "/v1/sessions", "POST,GET,HEAD"),
        ("POST", "/v1/sessions/s", "GET,HEAD,PUT,PATCH,DELETE"),
        ("PUT", "/openapi.json", "GET,HEAD"),
        ("TRACE", "/v1/sessions/s/tree", "GET,HEAD"),
        ("BREW", "/v1/sessions/s/tree", "GET,HEAD"),
    ] {
        let answer = client.send(method, address, &[], b"");
        assert_eq!(answer.refused(), refusal(405, "http/method_not_allowed"), "{method} {address}");
        assert_eq!(answer.header("allow"), Some(allow), "{method} {address}");
    }
}

#[test]
fn an_unknown_address_is_a_problem_too() {
    let client = Client::new();
    for address in
        ["/v2", "/v1", "/v1/sessions/", "/v1/sessions/s/nothing", "/v1/call/", "/docs/", "//v1/sessions"]
    {
        assert_eq!(client.get(address).refused(), refusal(404, "http/not_found"), "{address}");
    }
}

#[test]
fn an_address_that_cannot_be_read_is_a_problem_too() {
    let client = Client::new();
    assert_eq!(client.get("/v1/sessions/%ff").refused(), refusal(400, "session/invalid_request"));
    let call = client.send("POST", "/v1/call/%ff", &[], b"");
    assert_eq!(call.refused(), refusal(400, "session/invalid_request"));
}

#[test]
fn a_function_id_may_be_percent_encoded() {
    let client = Client::new();
    let answer = client.post("/v1/call/session%3A%3Alist", json!({}));
    assert_eq!((answer.status, answer.json()), (200, json!({"sessions": []})));
    assert_eq!(client.post("/v1/call/session::lst", json!({})).refused(), refusal(404, "call/unknown_function"));
}

#[test]
fn ids_of_any_text_are_addresses() {
    let client = Client::new();
    for id in ["a/b", "%41", "a%2Fb", ".", "..", "ä ö?#&=+", "'\"<>\\", "\u{1}"] {
        let made = client.post("/v1/sessions", json!({"session_id": id}));
        let location = made.header("location").unwrap();
        assert_eq!(client.get(location).json()["meta"]["session_id"], id, "{location}");
    }
}
