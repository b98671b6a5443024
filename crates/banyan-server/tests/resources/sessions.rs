use serde_json::json;

use crate::client::*;

fn refusal(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[test]
fn a_session_is_created_and_found_where_it_says() {
    let client = Client::new();
    let made = client.post("/v1/sessions", json!({"title": "T", "metadata": {"owner": "u"}}));
    assert_eq!(made.status, 201);
    let location = made.header("location").unwrap();
    assert_eq!(location, format!("/v1/sessions/{}", made.json()["session_id"].as_str().unwrap()));
    let found = client.get(location);
    assert_eq!((found.status, found.json()), (200, json!({"meta": made.json()["meta"]})));
    assert_eq!(client.send("POST", "/v1/sessions", &[], b"").status, 201, "an empty body is an empty object");
}

#[test]
fn a_session_with_an_id_of_the_callers_is_created_once() {
    let client = Client::new();
    let id = "a/b c?ä";
    let first = client.post("/v1/sessions", json!({"session_id": id, "title": "T"}));
    assert_eq!((first.status, first.header("location")), (201, Some("/v1/sessions/a%2Fb%20c%3F%C3%A4")));
    let again = client.post("/v1/sessions", json!({"session_id": id, "title": "other"}));
    assert_eq!((again.status, again.header("location")), (200, None));
    assert_eq!((&again.json()["created"], &again.json()["meta"]["title"]), (&json!(false), &json!("T")));
    let put = client.put("/v1/sessions/a%2Fb%20c%3F%C3%A4", json!({}));
    assert_eq!((put.status, put.json()["session_id"].clone()), (200, json!(id)));
    assert_eq!(client.put("/v1/sessions/new", json!({"title": "N"})).status, 201);
    assert_eq!(
        client.post("/v1/sessions", json!({"session_id": ""})).refused(),
        refusal(400, "session/invalid_request")
    );
}

#[test]
fn sessions_are_listed_filtered_and_paged() {
    let client = Client::new();
    for n in 0..3 {
        client.put(&format!("/v1/sessions/s{n}"), json!({"metadata": {"n": n, "owner": "u"}}));
    }
    client.put("/v1/sessions/s1/status", json!({"status": "working"}));
    let ids = |address: &str| {
        let page = client.get(address).json();
        page["sessions"].as_array().unwrap().iter().map(|it| it["session_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids("/v1/sessions?order=created_asc"), ["s0", "s1", "s2"]);
    assert_eq!(ids("/v1/sessions?status=working"), ["s1"]);
    assert_eq!(ids("/v1/sessions?metadata=%7B%22n%22%3A2%7D"), ["s2"]);
    let first = client.get("/v1/sessions?order=created_asc&limit=2").json();
    let cursor = first["next_cursor"].as_str().unwrap().replace('+', "%2B").replace('=', "%3D");
    assert_eq!(ids(&format!("/v1/sessions?order=created_asc&limit=2&cursor={cursor}")), ["s2"]);
}

#[test]
fn a_query_is_read_strictly() {
    let client = Client::new();
    for (query, word) in [
        ("limt=3", "unknown key `limt`"),
        ("limit=three", "`limit` should be a whole number"),
        ("limit=-1", "`limit` should be a whole number"),
        ("limit=+1", "`limit` should be a whole number"),
        ("limit=", "`limit` should be a whole number"),
        ("limit=1&limit=2", "`limit` is given more than once"),
        ("metadata=owner", "`metadata` should be a JSON object"),
        ("metadata=[]", "`metadata` should be a JSON object"),
    ] {
        let answer = client.get(&format!("/v1/sessions?{query}"));
        assert_eq!(answer.refused(), refusal(400, "session/invalid_request"), "{query}");
        let detail = answer.detail();
        assert!(detail.contains(word), "{query}: {detail}");
        assert!(detail.contains("this address takes limit (a whole number), cursor (text)"), "{detail}");
    }
    assert_eq!(client.get("/v1/sessions?status=tired").refused(), refusal(400, "session/invalid_request"));
    assert_eq!(client.get("/v1/sessions?cursor=x").refused(), refusal(400, "session/invalid_cursor"));
    assert_eq!(client.get("/v1/sessions?status=%ff").refused(), refusal(400, "session/invalid_request"));
    let nothing = client.post("/v1/sessions?limit=1", json!({}));
    assert!(nothing.detail().contains("this address takes no query"));
}

#[test]
fn a_session_is_changed() {
    let client = Client::new();
    let address = format!("/v1/sessions/{}", client.session());
    let changed = client.patch(&address, json!({"title": "T"}));
    assert_eq!((changed.status, changed.json()["meta"]["title"].clone()), (200, json!("T")));
    let status = client.put(&format!("{address}/status"), json!({"status": "error", "reason": "why"}));
    assert_eq!((status.status, status.json()), (200, json!({"status": "error", "previous_status": "idle"})));
    assert_eq!(client.patch("/v1/sessions/nobody", json!({})).refused(), refusal(404, "session/not_found"));
    assert_eq!(client.patch(&address, json!({"title": 1})).refused(), refusal(400, "session/invalid_request"));
    let tired = client.put(&format!("{address}/status"), json!({"status": "tired"}));
    assert_eq!(tired.refused(), refusal(400, "session/invalid_request"));
}

#[test]
fn a_session_is_deleted_once() {
    let client = Client::new();
    let address = format!("/v1/sessions/{}", client.session());
    let deleted = client.delete(&address);
    assert_eq!((deleted.status, deleted.json()), (200, json!({"deleted": true})));
    for answer in [client.delete(&address), client.get(&address)] {
        assert_eq!(answer.refused(), refusal(404, "session/not_found"));
    }
}

#[test]
fn the_body_may_repeat_the_address_and_not_contradict_it() {
    let client = Client::new();
    client.put("/v1/sessions/mine", json!({"session_id": "mine"}));
    assert_eq!(client.patch("/v1/sessions/mine", json!({"session_id": "mine", "title": "T"})).status, 200);
    assert_eq!(client.patch("/v1/sessions/mine", json!({"session_id": null, "title": "T"})).status, 200);
    let other = client.patch("/v1/sessions/mine", json!({"session_id": "other", "title": "T"}));
    assert_eq!(other.refused(), refusal(400, "session/invalid_request"));
    for body in ["[]", "1", "{", "{}{}", "null", "{\"title\":\"a\",\"title\":\"b\"}", "\u{feff}{}"] {
        let answer = client.send("PATCH", "/v1/sessions/mine", &[], body.as_bytes());
        assert_eq!(answer.refused(), refusal(400, "session/invalid_request"), "{body}");
    }
    let not_text = client.send("PATCH", "/v1/sessions/mine", &[], b"{\"title\":\"\xff\"}");
    assert_eq!(not_text.refused(), refusal(400, "session/invalid_request"));
}
