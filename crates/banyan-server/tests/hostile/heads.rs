//! Heads that are not what they should be, or mean two things.

use banyan_server::{Limits, Settings};
use tokio::io::AsyncWriteExt;

use crate::wire::{Answer, Server, ended, settings, until};

/// Sends bytes and returns the statuses of all answers until the connection ends.
async fn statuses(server: &Server, bytes: &[u8]) -> Vec<u16> {
    let mut stream = server.connect().await;
    // The server may hang up while this is still being sent.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut statuses = Vec::new();
    while let Some(answer) = Answer::read(&mut stream).await {
        statuses.push(answer.status);
    }
    statuses
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_http_is_refused_and_ended() {
    let server = Server::start(settings()).await;
    let garbage: Vec<Vec<u8>> = vec![
        b"\0\0\0\0\0\0\0\0\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"GET /a b HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec(),
        b"GET /\0 HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\nhost: localhost\r\nno colon\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\nhost: localhost\r\na: \0\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\nhost: localhost\r\n folded: yes\r\n\r\n".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense nonsense nonsense nonsense".to_vec(),
        b"PRI * HT".to_vec(),
        vec![b'A'; 300_000],
    ];
    for bytes in &garbage {
        let mut stream = server.connect().await;
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        assert!(ended(&mut stream).await, "{:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(40)]));
    }
    server.assert_serves().await;
    until("all connections are free", async || {
        server.get("/metrics", "").await.text().contains("banyan_connections 1\n")
    })
    .await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_after_a_good_request_ends_the_connection() {
    let server = Server::start(settings()).await;
    let good = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_eq!(statuses(&server, good.repeat(100).as_bytes()).await, vec![200; 100]);
    assert_eq!(
        statuses(&server, format!("{good}{good}\0\x01\x02 garbage\r\n\r\n{good}").as_bytes()).await,
        [200, 200, 400]
    );
    server.assert_serves().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_can_be_read_in_two_ways_is_never_read_as_two() {
    let server = Server::start(settings()).await;
    let before = server.store.head();
    let inner = "POST /v1/call/session::create HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}";
    for headers in [
        "content-length: 0\r\ncontent-length: 5\r\n".to_owned(),
        format!("content-length: {}\r\ntransfer-encoding: chunked\r\n", inner.len()),
        "transfer-encoding: identity\r\n".to_owned(),
        "transfer-encoding: chunked, identity\r\n".to_owned(),
        "transfer-encoding: xchunked\r\n".to_owned(),
        "transfer-encoding : chunked\r\n".to_owned(),
        "content-length: +2\r\n".to_owned(),
        "content-length: -1\r\n".to_owned(),
        "content-length: 0x10\r\n".to_owned(),
        "content-length: 18446744073709551616\r\n".to_owned(),
        "content-length: 1, 2\r\n".to_owned(),
    ] {
        let sent = format!("POST /healthz HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n0\r\n\r\n{inner}");
        let statuses = statuses(&server, sent.as_bytes()).await;
        assert!(statuses.len() <= 1, "{headers:?}: {statuses:?}");
        assert!(statuses.iter().all(|status| *status == 400 || *status == 405), "{headers:?}: {statuses:?}");
    }
    assert_eq!(server.store.head(), before, "nothing was called");
    server.assert_serves().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_is_too_large_is_refused() {
    let limits = Limits { header_bytes: 16 << 10, ..Limits::default() };
    let server = Server::start(Settings { limits, ..settings() }).await;
    let with = |bytes: usize| {
        format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-filler: {}\r\n\r\n", "x".repeat(bytes))
    };
    assert_eq!(server.send(with(15 << 10)).await.status, 200);
    let answer = server.send(with(17 << 10)).await;
    assert_eq!((answer.status, answer.code().as_str()), (431, "http/head_too_large"));
    // Far above the limit it is not even read whole.
    assert_eq!(statuses(&server, with(1 << 20).as_bytes()).await, [431]);
    let many = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "a: b\r\n".repeat(1_000));
    assert_eq!(statuses(&server, many.as_bytes()).await, [431]);
    let long = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(17 << 10));
    let answer = server.send(long).await;
    assert_eq!((answer.status, answer.code().as_str()), (431, "http/head_too_large"));
    server.assert_serves().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_paths_are_answered_with_a_problem() {
    let server = Server::start(settings()).await;
    for path in [
        "/v1/call/%",
        "/v1/call/%zz",
        "/v1/call/%ff%fe",
        "/v1/call/%00",
        "/v1/call/..%2f..%2fetc",
        "/v1/call/",
        "//",
        "/%2e%2e/",
        "*",
    ] {
        let answer = server.ask("POST", path, "", "{}").await;
        assert!([400, 404].contains(&answer.status), "{path}: {answer:?}");
        answer.code();
    }
    let answer = server.ask("GET", "/v1/call/session::list", "", "").await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("post")));
    assert_eq!(answer.code(), "http/method_not_allowed");
    server.assert_serves().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_where_there_is_none_is_an_ordinary_request() {
    let server = Server::start(settings()).await;
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    assert_eq!(server.get("/healthz", upgrade).await.status, 200);
    assert_eq!(server.get("/v1/nowhere", upgrade).await.status, 404);
    assert_eq!(
        server.get("/healthz", "connection: upgrade\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n").await.status,
        200
    );
    assert_eq!(server.ask("CONNECT", "/v1/nowhere", "", "").await.status, 404);
    server.assert_serves().await;
    server.stop().await;
}
