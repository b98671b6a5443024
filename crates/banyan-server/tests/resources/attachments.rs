use serde_json::json;

use crate::client::*;

fn refusal(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

fn upload(client: &Client, query: &str, kind: &str, bytes: &[u8]) -> Answer {
    let address = format!("/v1/sessions/{}/attachments{query}", client.session());
    client.send("POST", &address, &[("content-type", kind)], bytes)
}

#[test]
fn a_file_is_stored_as_its_bytes_and_comes_back_as_they_were() {
    let client = Client::new();
    let bytes: Vec<u8> = (0..=255).collect();
    let made = upload(&client, "?name=all%20bytes.png", "image/png", &bytes);
    let attachment = made.json()["attachment"].clone();
    assert_eq!(
        (made.status, &attachment["name"], &attachment["mime"]),
        (201, &json!("all bytes.png"), &json!("image/png"))
    );
    let location = made.header("location").unwrap();
    let found = client.get(location);
    assert_eq!((found.status, &found.bytes), (200, &bytes));
    for (name, value) in [
        ("content-type", "image/png"),
        ("content-length", "256"),
        ("content-disposition", "inline; filename=\"all bytes.png\""),
        ("etag", &format!("\"{}\"", attachment["sha256"].as_str().unwrap())),
        ("accept-ranges", "bytes"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
        ("cache-control", "private, no-cache"),
    ] {
        assert_eq!(found.header(name), Some(value), "{name}");
    }
    let head = client.send("HEAD", location, &[], b"");
    assert_eq!((head.status, head.bytes.len(), head.header("content-length")), (200, 0, Some("256")));
    assert_eq!(head.header("etag"), found.header("etag"));
    let listed = client.get(location.rsplit_once('/').unwrap().0);
    assert_eq!((listed.status, listed.json()), (200, json!({"attachments": [attachment]})));
}

#[test]
fn a_file_is_stored_from_json() {
    let client = Client::new();
    let body = json!({"name": "n.txt", "mime": "text/plain", "data": "aGVsbG8="}).to_string();
    let made = upload(&client, "", "application/json; charset=utf-8", body.as_bytes());
    assert_eq!(made.status, 201);
    assert_eq!(client.get(made.header("location").unwrap()).bytes, b"hello");
    let named = upload(&client, "?name=n.json", "application/json", body.as_bytes());
    assert_eq!(
        client.get(named.header("location").unwrap()).bytes,
        body.as_bytes(),
        "with a name, the body is the file"
    );
    let bad = json!({"name": "n", "mime": "m", "data": "%"}).to_string();
    assert_eq!(
        upload(&client, "", "application/json", bad.as_bytes()).refused(),
        refusal(400, "session/invalid_request")
    );
}

#[test]
fn what_a_file_is_called_and_what_it_is_may_be_left_out() {
    let client = Client::new();
    let address = format!("/v1/sessions/{}/attachments", client.session());
    let made = client.send("POST", &address, &[("content-type", "application/x-www-form-urlencoded")], b"x");
    let attachment = &made.json()["attachment"];
    assert_eq!(
        (&attachment["name"], &attachment["mime"]),
        (&json!("unnamed"), &json!("application/octet-stream"))
    );
}

#[test]
fn an_upload_is_refused_with_a_reason() {
    let client = Client::new();
    let form = upload(&client, "?name=n", "multipart/form-data; boundary=x", b"--x");
    assert_eq!(form.refused(), refusal(415, "http/unsupported_media_type"));
    assert_eq!(
        upload(&client, "?name=%20", "text/plain", b"x").refused(),
        refusal(400, "session/invalid_request")
    );
    assert_eq!(upload(&client, "?nam=n", "text/plain", b"x").refused(), refusal(400, "session/invalid_request"));
    let nowhere =
        client.send("POST", "/v1/sessions/nobody/attachments?name=n", &[("content-type", "text/plain")], b"x");
    assert_eq!(nowhere.refused(), refusal(404, "session/not_found"));
}

#[test]
fn a_file_is_too_large_for_the_store_or_for_the_server() {
    let mut options = banyan::Options::default();
    options.limits.max_attachment_bytes = 8;
    let client = Client::of(crate::server::Server::with(options, |settings| settings.limits.body_bytes = 32));
    assert_eq!(upload(&client, "?name=n", "text/plain", &[0; 8]).status, 201);
    let store = upload(&client, "?name=n", "text/plain", &[0; 9]);
    assert_eq!(store.refused(), refusal(413, "session/attachment_too_large"));
    assert_eq!(upload(&client, "?name=n", "text/plain", &[0; 33]).refused(), refusal(413, "session/too_large"));
}

#[test]
fn parts_of_a_file_are_read_by_range() {
    let client = Client::new();
    let made = upload(&client, "?name=n.txt", "text/plain", b"0123456789");
    let location = made.header("location").unwrap();
    let tag = client.get(location).header("etag").unwrap().to_owned();
    let part = |headers: &[(&str, &str)]| {
        let answer = client.send("GET", location, headers, b"");
        let range = answer.header("content-range").unwrap_or_default().to_owned();
        (answer.status, range, String::from_utf8(answer.bytes).unwrap())
    };
    let whole = (200, String::new(), "0123456789".to_owned());
    for (range, content_range, bytes) in [
        ("bytes=2-4", "bytes 2-4/10", "234"),
        ("bytes=7-", "bytes 7-9/10", "789"),
        ("bytes=-1", "bytes 9-9/10", "9"),
    ] {
        assert_eq!(part(&[("range", range)]), (206, content_range.to_owned(), bytes.to_owned()));
        assert_eq!(part(&[("range", range), ("if-range", &tag)]).0, 206);
        assert_eq!(part(&[("range", range), ("if-range", "\"old\"")]), whole);
    }
    assert_eq!(part(&[("range", "bytes=0-1,4-5")]), whole, "several ranges are answered with all");
    let beyond = client.send("GET", location, &[("range", "bytes=10-")], b"");
    assert_eq!(beyond.refused(), refusal(416, "http/range_not_satisfiable"));
    assert_eq!(beyond.header("content-range"), Some("bytes */10"));
    let head = client.send("HEAD", location, &[("range", "bytes=0-1")], b"");
    assert_eq!((head.status, head.header("content-length")), (200, Some("10")));
}

#[test]
fn a_file_that_is_known_is_not_sent_again() {
    let client = Client::new();
    let made = upload(&client, "?name=n.txt", "text/plain", b"x");
    let location = made.header("location").unwrap();
    let tag = client.get(location).header("etag").unwrap().to_owned();
    for known in [&*tag, "*", &format!("\"other\", W/{tag}")] {
        let answer = client.send("GET", location, &[("if-none-match", known), ("range", "bytes=0-")], b"");
        assert_eq!((answer.status, answer.bytes.len(), answer.header("etag")), (304, 0, Some(&*tag)), "{known}");
    }
    assert_eq!(client.send("GET", location, &[("if-none-match", "\"other\"")], b"").status, 200);
}

#[test]
fn a_browser_saves_what_it_could_run() {
    let client = Client::new();
    for (kind, how) in [
        ("text/html", "attachment"),
        ("image/svg+xml", "attachment"),
        ("application/pdf", "attachment"),
        ("text/plain; charset=utf-8", "inline"),
        ("audio/ogg", "inline"),
    ] {
        let made = upload(&client, "?name=%C3%A4%22%5C.x", kind, b"x");
        let found = client.get(made.header("location").unwrap());
        assert_eq!(found.header("content-type"), Some(kind));
        let disposition = format!("{how}; filename=\"___.x\"; filename*=UTF-8''%C3%A4%22%5C.x");
        assert_eq!(found.header("content-disposition"), Some(&*disposition));
    }
}

#[test]
fn an_attachment_is_deleted_unless_a_message_uses_it() {
    let client = Client::new();
    let made = upload(&client, "?name=n", "text/plain", b"x");
    let location = made.header("location").unwrap();
    let deleted = client.delete(location);
    assert_eq!((deleted.status, deleted.json()), (200, json!({"deleted": true})));
    for answer in [client.delete(location), client.get(location)] {
        assert_eq!(answer.refused(), refusal(404, "session/attachment_not_found"));
    }
    let made = upload(&client, "?name=n", "text/plain", b"x");
    let location = made.header("location").unwrap();
    let message = json!({"role": "user", "content": [made.json()["block"]], "timestamp": 1});
    let session = location.split("/attachments").next().unwrap();
    client.post(&format!("{session}/messages"), json!({"message": message}));
    assert_eq!(client.delete(location).refused(), refusal(409, "session/attachment_in_use"));
    assert_eq!(client.delete("/v1/sessions/nobody/attachments/a").refused(), refusal(404, "session/not_found"));
}

#[test]
fn a_file_is_read_and_deleted_only_if_it_is_the_one_that_is_meant() {
    let client = Client::new();
    let made = upload(&client, "?name=a.txt", "text/plain", b"hello");
    let address = made.header("location").unwrap();
    let tag = client.get(address).header("etag").unwrap().to_owned();
    let with = |method: &str, tag: &str| client.send(method, address, &[("if-match", tag)], b"");
    for method in ["GET", "DELETE"] {
        assert_eq!(with(method, "\"elsewhere\"").refused(), refusal(412, "http/precondition_failed"), "{method}");
    }
    let head = client.send("HEAD", address, &[("if-none-match", "\"elsewhere\""), ("if-none-match", &tag)], b"");
    assert_eq!((head.status, head.header("content-length")), (304, None));
    assert_eq!(with("GET", &tag).status, 200);
    assert_eq!(with("DELETE", &tag).json(), json!({"deleted": true}));
    assert_eq!(with("DELETE", &tag).status, 404);
}
