//! Bodies that are not what they should be.

use banyan_server::{Limits, Settings};
use tokio::io::AsyncWriteExt;

use crate::wire::{Answer, Server, ended, request, settings, until};

const APPEND: &str = "/v1/call/session::append";

async fn refused(server: &Server, path: &str, body: &[u8]) -> Answer {
    let mut whole = request("POST", path, "", "")
        .replace("content-length: 0", &format!("content-length: {}", body.len()))
        .into_bytes();
    whole.extend_from_slice(body);
    server.send(whole).await
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_json_is_refused_with_a_reason() {
    let server = Server::start(settings()).await;
    let text = |text: &str| {
        format!(
            r#"{{"session_id":"s","message":{{"role":"user","content":[{{"type":"text","text":{text}}}],"timestamp":1}}}}"#
        )
    };
    let bodies: Vec<Vec<u8>> = vec![
        b"{".to_vec(),
        b"{\"session_id\":".to_vec(),
        b"\xff\xfe{}".to_vec(),
        b"\xef\xbb\xbf{}".to_vec(),
        b"{\"title\":\"\xc3\x28\"}".to_vec(),
        b"{\"title\":\"\xed\xa0\x80\"}".to_vec(),
        b"\0\0\0\0".to_vec(),
        b"{}{}".to_vec(),
        b"{\"a\":1,}".to_vec(),
        b"NaN".to_vec(),
        b"[]".to_vec(),
        b"\"text\"".to_vec(),
        vec![b'['; 10_000],
        [vec![b'['; 10_000], vec![b']'; 10_000]].concat(),
        "{\"a\":".repeat(10_000).into_bytes(),
        format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000)).into_bytes(),
    ];
    for body in &bodies {
        for path in [APPEND, "/v1/call/session::create", "/v1/call/session::set-meta"] {
            let answer = refused(&server, path, body).await;
            let shown = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (400, "session/invalid_request"),
                "{path} {shown:?}"
            );
        }
    }
    // What is wrong inside a message.
    for wrong in ["1e999", r#""\ud800""#, "\"\0\"", "null", "{}"] {
        let answer = refused(&server, APPEND, text(wrong).as_bytes()).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "session/invalid_request"), "{wrong:?}");
    }
    server.assert_serves().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nested_and_huge_values_inside_a_good_request() {
    let server = Server::start(settings()).await;
    let deep =
        |levels: usize| format!(r#"{{"metadata":{{"deep":{}1{}}}}}"#, "[".repeat(levels), "]".repeat(levels));
    assert_eq!(refused(&server, "/v1/call/session::create", deep(50).as_bytes()).await.status, 200);
    for levels in [130, 10_000, 100_000] {
        let answer = refused(&server, "/v1/call/session::create", deep(levels).as_bytes()).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "session/invalid_request"), "{levels}");
    }
    // A number that does not fit is refused or kept as it is, but never breaks anything.
    for number in ["1e308", "-1e308", "1e400", "-0", &"9".repeat(5_000), &format!("0.{}", "1".repeat(5_000))] {
        let body = format!(r#"{{"metadata":{{"number":{number}}}}}"#);
        let answer = refused(&server, "/v1/call/session::create", body.as_bytes()).await;
        assert!(answer.status == 200 || answer.code() == "session/invalid_request", "{number:.20}: {answer:?}");
        let limit = format!(r#"{{"limit":{number}}}"#);
        let answer = refused(&server, "/v1/call/session::list", limit.as_bytes()).await;
        assert!(answer.status == 200 || answer.code() == "session/invalid_request", "{number:.20}: {answer:?}");
    }
    server.assert_serves().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_refused_before_it_is_taken() {
    let limits = Limits { body_bytes: 10_000, ..Limits::default() };
    let server = Server::start(Settings { limits, ..settings() }).await;
    let announced =
        "POST /v1/call/session::create HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n";
    let answer = server.send(announced).await;
    assert_eq!((answer.status, answer.code().as_str()), (413, "session/too_large"));
    // One that does not say how long it is.
    let mut stream = server.connect().await;
    stream
        .write_all(
            b"POST /v1/call/session::create HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n",
        )
        .await
        .unwrap();
    for _ in 0..11 {
        stream.write_all(b"3e8\r\n").await.unwrap();
        stream.write_all(&[b' '; 1_000]).await.unwrap();
        stream.write_all(b"\r\n").await.unwrap();
    }
    let answer = Answer::read(&mut stream).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (413, "session/too_large"));
    let fits = format!("{{{}}}", " ".repeat(9_998));
    assert_eq!(refused(&server, "/v1/call/session::create", fits.as_bytes()).await.status, 200);
    server.assert_serves().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_whose_body_nobody_read_leaves_the_connection_open() {
    let limits = Limits { body_bytes: 10_000, ..Limits::default() };
    let server = Server::start(Settings { limits, ..settings() }).await;
    let mut stream = server.connect().await;
    let body = " ".repeat(200_000);
    for (method, path, headers, status) in [
        ("POST", "/nowhere", "", 404),
        ("PUT", "/v1/sessions/s/tree", "", 405),
        ("POST", "/v1/call/session::create", "", 413),
        ("POST", "/v1/call/session::create", "origin: http://elsewhere.example\r\n", 403),
        ("DELETE", "/v1/sessions/s", "", 404),
        ("GET", "/healthz", "", 200),
    ] {
        // The body is still under way when it is refused.
        let whole = request(method, path, headers, &body);
        let (head, rest) = whole.split_at(whole.len() - body.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        tokio::task::yield_now().await;
        stream.write_all(rest.as_bytes()).await.unwrap();
        let answer = Answer::read(&mut stream).await.unwrap();
        assert_eq!((answer.status, answer.header("connection")), (status, None), "{method} {path}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_too_much_to_be_read_away_is_told_that_the_connection_ends() {
    let server = Server::start(settings()).await;
    // All of it is sent before the answer is looked at.
    let mut stream = server.connect().await;
    let whole = request("POST", "/nowhere", "", &" ".repeat(20 << 20));
    stream.write_all(whole.as_bytes()).await.unwrap();
    let answer = Answer::read(&mut stream).await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (404, Some("close")));
    assert!(ended(&mut stream).await);
    // One that asks first is not told to go on.
    let mut stream = server.connect().await;
    let asks = request("POST", "/nowhere", "expect: 100-continue\r\n", "").replace("length: 0", "length: 9");
    stream.write_all(asks.as_bytes()).await.unwrap();
    let answer = Answer::read(&mut stream).await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (404, Some("close")));
    assert!(ended(&mut stream).await);
    server.assert_serves().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_ends_too_early_changes_nothing() {
    let server = Server::start(settings()).await;
    let before = server.store.head();
    for sent in [
        "POST /v1/call/session::create HTTP/1.1\r\nhost: localhost\r\ncontent-length: 20\r\n\r\n{}",
        "POST /v1/call/session::create HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n",
        "POST /v1/call/session::create HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        "POST /v1/call/session::create HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
        "POST /v1/call/session::create HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
        "POST /v1/call/session::create HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n",
    ] {
        let mut stream = server.connect().await;
        stream.write_all(sent.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        if let Some(answer) = Answer::read(&mut stream).await {
            assert_eq!(answer.status, 400, "{sent}");
        }
        assert!(ended(&mut stream).await, "{sent}");
    }
    assert_eq!(server.store.head(), before);
    server.assert_serves().await;
    until("all connections are free", async || {
        server.get("/metrics", "").await.text().contains("banyan_connections 1\n")
    })
    .await;
    server.stop().await;
}
