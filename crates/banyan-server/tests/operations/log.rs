//! What is written about requests, and what never is.

use banyan_server::{KeyStore, NewKey};

use crate::wire::{Server, log, settings};

const SECRET: &str = "the-cat-is-under-the-stove";

#[tokio::test(flavor = "multi_thread")]
async fn a_request_leaves_a_line_and_no_text_or_key() {
    let log = log();
    let dir = tempfile::tempdir().unwrap();
    let keys = KeyStore::open(dir.path());
    let (key, text) = keys.create(NewKey { name: "one".to_owned(), ..NewKey::default() }, 0).unwrap();
    let server = Server::start_in(dir, settings()).await;
    let bearer = format!("authorization: Bearer {text}\r\n");
    let created =
        server.ask("POST", "/v1/call/session::create", &bearer, &format!(r#"{{"title":"{SECRET}"}}"#)).await;
    let id = created.json()["session_id"].as_str().unwrap().to_owned();
    let message = format!(
        r#"{{"session_id":"{id}","message":{{"role":"user","content":[{{"type":"text","text":"{SECRET}"}}],"timestamp":1}}}}"#
    );
    let named = format!("{bearer}x-request-id: call-17\r\n");
    let appended = server.ask("POST", "/v1/call/session::append", &named, &message).await;
    assert_eq!((appended.status, appended.header("x-request-id")), (200, Some("call-17")));
    // Refused bodies, wrong keys, keys in a query and in the wrong place.
    for (path, headers, body) in [
        (
            "/v1/call/session::append".to_owned(),
            bearer.clone(),
            format!(r#"{{"session_id":"{id}","message":"{SECRET}"}}"#),
        ),
        ("/v1/call/session::append".to_owned(), bearer.clone(), format!(r#"{{"{SECRET}":"#)),
        (
            "/v1/call/session::append".to_owned(),
            format!("authorization: Bearer banyan_1_{SECRET}\r\n"),
            message.clone(),
        ),
        (format!("/v1/call/session::list?access_token={text}&q={SECRET}"), String::new(), "{}".to_owned()),
        (format!("/v1/call/{SECRET}"), bearer.clone(), "{}".to_owned()),
        (format!("/{text}/{SECRET}"), format!("x-request-id: {text}\r\n"), String::new()),
        ("/healthz".to_owned(), format!("host: {SECRET}\r\norigin: http://{SECRET}\r\n"), String::new()),
    ] {
        let answer = server.ask("POST", &path, &headers, &body).await;
        assert!(answer.header("x-request-id").is_some(), "{path}: {answer:?}");
    }
    // One that is cut off in the middle.
    let mut stream = server.connect().await;
    let cut = format!(
        "POST /v1/call/session::append HTTP/1.1\r\nhost: localhost\r\n{bearer}content-length: 999\r\n\r\n{SECRET}"
    );
    tokio::io::AsyncWriteExt::write_all(&mut stream, cut.as_bytes()).await.unwrap();
    drop(stream);
    let data = server.data().to_owned();
    server.stop().await;

    let whole = log.text();
    let line = whole.lines().find(|line| line.contains("call-17")).expect("a line for the request");
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["target"], "banyan::requests");
    for (field, value) in [
        ("method", serde_json::json!("POST")),
        ("route", serde_json::json!("/v1/call/{function_id}")),
        ("function", serde_json::json!("session::append")),
        ("status", serde_json::json!(200)),
        ("key", serde_json::json!(key.id)),
        ("received", serde_json::json!(message.len())),
        ("sent", serde_json::json!(appended.body.len())),
    ] {
        assert_eq!(line[field], value, "{field} in {line}");
    }
    assert!(line["ms"].as_f64().unwrap() > 0.0);
    let secret = text.rsplit('_').next().unwrap();
    for word in [SECRET, secret, &secret[..16]] {
        let found: Vec<&str> = whole.lines().filter(|line| line.contains(word)).collect();
        assert!(found.is_empty(), "{word}: {found:?}");
    }
    drop(data);
}
