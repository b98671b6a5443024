use serde_json::{Value, json};

use crate::client::*;

fn refusal(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

fn texts(answer: &Answer) -> Vec<String> {
    let said = |item: &Value| item["message"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    answer.json()["messages"].as_array().unwrap().iter().map(said).collect()
}

#[test]
fn a_message_is_appended_and_found_where_it_says() {
    let client = Client::new();
    let messages = format!("/v1/sessions/{}/messages", client.session());
    let made = client.post(&messages, json!({"message": user("hi"), "entry_id": "e 1"}));
    assert_eq!((made.status, made.header("location").unwrap()), (201, &*format!("{messages}/e%201")));
    let found = client.get(made.header("location").unwrap());
    assert_eq!((found.status, found.json()["entry"]["message"].clone()), (200, user("hi")));
    let again = client.post(&messages, json!({"message": user("hi"), "entry_id": "e 1"}));
    assert_eq!((again.status, again.json()), (201, made.json()));
    assert_eq!(client.get(&format!("{messages}/nothing")).refused(), refusal(404, "session/entry_not_found"));
}

#[test]
fn a_message_with_the_name_of_an_address_is_found_where_it_says() {
    let client = Client::new();
    let messages = format!("/v1/sessions/{}/messages", client.session());
    for name in ["tail", "range"] {
        let made = client.post(&messages, json!({"message": user(name), "entry_id": name}));
        let location = made.header("location").unwrap();
        let found = client.get(location);
        assert_eq!((found.status, found.json()["entry"]["message"].clone()), (200, user(name)), "{location}");
    }
    assert_eq!(texts(&client.get(&format!("{messages}/tail"))), ["tail", "range"]);
}

#[test]
fn several_messages_are_appended_together() {
    let client = Client::new();
    let messages = format!("/v1/sessions/{}/messages", client.session());
    let made = client.post(&messages, json!({"messages": [user("a"), user("b")]}));
    let last = made.json()["last_entry_id"].as_str().unwrap().to_owned();
    assert_eq!((made.status, made.header("location").unwrap()), (201, &*format!("{messages}/{last}")));
    assert_eq!(texts(&client.get(&messages)), ["a", "b"]);
    assert_eq!(client.post(&messages, json!({"messages": []})).refused(), refusal(400, "session/empty_batch"));
}

#[test]
fn appending_is_refused_as_the_function_refuses_it() {
    let client = Client::new();
    let session = client.session();
    let messages = format!("/v1/sessions/{session}/messages");
    let (first, _) = (client.say(&session, "a"), client.say(&session, "b"));
    for (body, refused) in [
        (json!({}), refusal(400, "session/invalid_request")),
        (json!({"message": {"role": "robot"}}), refusal(400, "session/invalid_request")),
        (json!({"message": user("x"), "parent_id": "nothing"}), refusal(404, "session/parent_not_found")),
        (json!({"message": user("x"), "expected_leaf": first}), refusal(409, "session/conflict")),
    ] {
        assert_eq!(client.post(&messages, body.clone()).refused(), refused, "{body}");
    }
    let nowhere = client.post("/v1/sessions/nobody/messages", json!({"message": user("x")}));
    assert_eq!(nowhere.refused(), refusal(404, "session/not_found"));
}

#[test]
fn messages_are_read_in_pages() {
    let client = Client::new();
    let session = client.session();
    let messages = format!("/v1/sessions/{session}/messages");
    let entries: Vec<String> = ["a", "b", "c", "d"].iter().map(|said| client.say(&session, said)).collect();
    client.post(&messages, json!({"custom": {"custom_type": "t", "data": 1}}));
    let page = client.get(&format!("{messages}?limit=3"));
    assert_eq!(texts(&page), ["a", "b", "c"]);
    let cursor = page.json()["next_cursor"].as_str().unwrap().replace('+', "%2B");
    assert_eq!(texts(&client.get(&format!("{messages}?limit=3&cursor={cursor}"))), ["d"]);
    assert_eq!(texts(&client.get(&format!("{messages}?roles=assistant,custom"))), Vec::<String>::new());
    assert_eq!(texts(&client.get(&format!("{messages}?roles=user,custom&include_custom=true"))).len(), 4);
    assert_eq!(texts(&client.get(&format!("{messages}?include_custom=true"))).len(), 5);
    assert_eq!(texts(&client.get(&format!("{messages}?from_entry_id={}", entries[1]))), ["a", "b"]);
    assert_eq!(texts(&client.get(&format!("{messages}/tail?limit=2&include_custom=false"))), ["c", "d"]);
    let between = format!("{messages}/range?from_entry_id={}&to_entry_id={}", entries[1], entries[2]);
    assert_eq!(texts(&client.get(&between)), ["b", "c"]);
    let named = format!("{messages}/range?entry_ids={}&entry_ids={}", entries[0], entries[3]);
    assert_eq!(texts(&client.get(&named)), ["a", "d"]);
    for (query, code) in [
        ("?roles=robot", "session/invalid_request"),
        ("?include_custom=yes", "session/invalid_request"),
        ("?cursor=nonsense", "session/invalid_cursor"),
        ("/range", "session/invalid_request"),
        ("/tail?roles=user", "session/invalid_request"),
    ] {
        assert_eq!(client.get(&format!("{messages}{query}")).refused(), refusal(400, code), "{query}");
    }
}

#[test]
fn a_message_is_replaced_and_extended() {
    let client = Client::new();
    let session = client.session();
    let address = format!("/v1/sessions/{session}/messages/{}", client.say(&session, "a"));
    let replaced = client.put(&address, json!({"content": text("b")}));
    assert_eq!((replaced.status, replaced.json()), (200, json!({"updated": true, "revision": 1})));
    let extended = client.post(&format!("{address}/extend"), json!({"text": "c", "expected_revision": 1}));
    assert_eq!((extended.status, extended.json()), (200, json!({"updated": true, "revision": 2})));
    assert_eq!(client.get(&address).json()["entry"]["message"], user("bc"));
    let late = client.put(&address, json!({"content": text("x"), "expected_revision": 1}));
    assert_eq!((late.status, late.json()), (200, json!({"updated": false, "revision": 2})));
    let details = client.put(&address, json!({"content": [], "details": 1}));
    assert_eq!(details.refused(), refusal(400, "session/details_not_supported"));
    let nothing = client.put(&format!("/v1/sessions/{session}/messages/nothing"), json!({"content": []}));
    assert_eq!(nothing.refused(), refusal(404, "session/entry_not_found"));
}

#[test]
fn what_is_about_one_entry_does_not_go_with_several() {
    let client = Client::new();
    let session = client.session();
    let address = format!("/v1/sessions/{session}/messages");
    for (field, value) in [("message", user("a")), ("entry_id", json!("e")), ("expected_leaf", json!("e"))] {
        let body = json!({"messages": [user("b")], field: value}).to_string();
        let refused = client.send("POST", &address, &[], body.as_bytes());
        assert_eq!(refused.refused(), refusal(400, "session/invalid_request"), "{field}");
    }
    assert_eq!(client.get(&address).json()["messages"], json!([]));
}

#[test]
fn a_message_has_a_tag_that_changes_with_it() {
    let client = Client::new();
    let session = client.session();
    let address = format!("/v1/sessions/{session}/messages/{}", client.say(&session, "a"));
    let tag = client.get(&address).header("etag").unwrap().to_owned();
    let known = client.send("GET", &address, &[("if-none-match", &tag)], b"");
    assert_eq!((known.status, known.header("etag"), known.bytes.len()), (304, Some(&*tag), 0));
    let on_two_lines = [("if-none-match", "\"elsewhere\""), ("if-none-match", &*tag)];
    let head = client.send("HEAD", &address, &on_two_lines, b"");
    assert_eq!((head.status, head.header("content-length")), (304, None));
    let content = json!({"content": text("b")}).to_string();
    let put = |tag: &str| client.send("PUT", &address, &[("if-match", tag)], content.as_bytes());
    assert_eq!(put(&tag).status, 200);
    for tag in [&*tag, "\"elsewhere\"", "nonsense"] {
        assert_eq!(put(tag).refused(), refusal(412, "http/precondition_failed"), "{tag}");
    }
    assert_eq!(client.send("GET", &address, &[("if-none-match", &tag)], b"").status, 200);
    assert_eq!(put("*").status, 200);
    let malformed = client.send("PUT", &address, &[("if-match", "\"elsewhere\"")], b"{}");
    assert_eq!(malformed.refused(), refusal(400, "session/invalid_request"), "it is refused whatever its tag is");
    let not = client.send("PUT", &address, &[("if-none-match", "*")], content.as_bytes());
    assert_eq!(not.refused(), refusal(412, "http/precondition_failed"));
    assert_eq!(client.get(&format!("{address}?include_image_data=false")).header("etag"), None);
    let both = client.send("PUT", &address, &[("if-match", &tag)], br#"{"content":[],"expected_revision":1}"#);
    assert_eq!(both.refused(), refusal(400, "session/invalid_request"));
}

#[test]
fn a_message_is_changed_only_if_one_of_the_tags_is_its_own() {
    let client = Client::new();
    let session = client.session();
    let address = format!("/v1/sessions/{session}/messages/{}", client.say(&session, "a"));
    let put = |address: &str, tags: &[&str], body: Value| {
        let tags: Vec<(&str, &str)> = tags.iter().map(|tag| ("if-match", *tag)).collect();
        client.send("PUT", address, &tags, body.to_string().as_bytes())
    };
    let extend = format!("{address}/extend");
    let tag = || client.get(&address).header("etag").unwrap().to_owned();
    let content = || json!({"content": text("b"), "expected_revision": null});
    let refused = refusal(412, "http/precondition_failed");
    // The right number is not enough.
    let (number, time) = (tag(), tag());
    let (number, time) = (number.split('-').next().unwrap(), time.split('-').next_back().unwrap());
    for wrong in
        [&format!("{number}\""), &format!("{number}-1\""), &format!("\"7-{time}"), &format!("W/{}", tag())]
    {
        assert_eq!(put(&address, &[wrong], content()).refused(), refused, "{wrong}");
    }
    // One of several is.
    assert_eq!(put(&address, &[&format!("\"x\", {} ,\"y\"", tag())], content()).status, 200);
    assert_eq!(put(&address, &["\"x\"", &tag()], content()).status, 200);
    assert_eq!(put(&address, &["\"x\"", "*"], content()).status, 200);
    assert_eq!(put(&address, &["\"x\", \"y\""], content()).refused(), refused);
    let more = json!({"text": "c", "expected_revision": null}).to_string();
    let old = tag();
    assert_eq!(client.send("POST", &extend, &[("if-match", &old)], more.as_bytes()).status, 200);
    assert_eq!(client.send("POST", &extend, &[("if-match", &old)], more.as_bytes()).refused(), refused);
    assert_eq!(client.get(&address).json()["entry"]["message"], user("bc"));
    let nothing = format!("/v1/sessions/{session}/messages/nothing");
    assert_eq!(put(&nothing, &[&old], content()).refused(), refusal(404, "session/entry_not_found"));
}

#[test]
fn a_tag_of_a_session_that_is_gone_is_not_one_of_its_successor() {
    let client = Client::new();
    let append = |said: &str| {
        assert_eq!(client.post("/v1/sessions", json!({"session_id": "s"})).status, 201);
        let made = client.post("/v1/sessions/s/messages", json!({"message": user(said), "entry_id": "e"}));
        assert_eq!(made.status, 201);
        client.get("/v1/sessions/s/messages/e").header("etag").unwrap().to_owned()
    };
    let old = append("first");
    // An entry's tag tells the millisecond that it was made in.
    let mut new = old.clone();
    while new == old {
        assert_eq!(client.delete("/v1/sessions/s").status, 200);
        new = append("second");
    }
    let content = json!({"content": text("late")}).to_string();
    let late = client.send("PUT", "/v1/sessions/s/messages/e", &[("if-match", &old)], content.as_bytes());
    assert_eq!(late.refused(), refusal(412, "http/precondition_failed"));
    assert_eq!(client.get("/v1/sessions/s/messages/e").json()["entry"]["message"], user("second"));
}
