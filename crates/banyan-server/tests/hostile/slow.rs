//! Callers that take their time.

use std::time::Duration;

use banyan_server::{Limits, Settings};
use tokio::io::AsyncWriteExt;

use crate::wire::{Answer, Server, ended, request, settings, until};

fn hurried() -> Settings {
    let short = Duration::from_millis(300);
    Settings { limits: Limits { head_timeout: short, body_timeout: short, ..Limits::default() }, ..settings() }
}

async fn one_is_left(server: &Server) {
    until("their connections are free", async || {
        server.get("/metrics", "").await.text().contains("banyan_connections 1\n")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_that_do_not_end_are_not_waited_for() {
    let server = Server::start(hurried()).await;
    for beginning in [
        "",
        "G",
        "P",
        "PR",
        "PRI * HTTP/2.0\r\n\r\nSM",
        "GET /healthz HTTP/1.1\r\n",
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ",
    ] {
        let mut stream = server.connect().await;
        stream.write_all(beginning.as_bytes()).await.unwrap();
        assert!(ended(&mut stream).await, "{beginning:?}");
    }
    // HTTP/2 that never asks for anything.
    let mut stream = server.connect().await;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00").await.unwrap();
    assert!(ended(&mut stream).await);
    // A byte at a time, for as long as the server listens.
    let mut stream = server.connect().await;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nx: ").await.unwrap();
    until("the drip is cut off", async || stream.write_all(b"x").await.is_err()).await;
    server.assert_serves().await;
    one_is_left(&server).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_stop_or_drip_are_not_waited_for() {
    let server = Server::start(hurried()).await;
    let whole = request("POST", "/v1/call/session::create", "", &" ".repeat(100_000));
    let mut stopped = server.connect().await;
    stopped.write_all(&whole.as_bytes()[..whole.len() - 50_000]).await.unwrap();
    let answer = Answer::read(&mut stopped).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (408, "http/timeout"));
    assert!(ended(&mut stopped).await);

    let mut dripping = server.connect().await;
    dripping.write_all(&whole.as_bytes()[..whole.len() - 100_000]).await.unwrap();
    until("the drip is cut off", async || dripping.write_all(b" ").await.is_err()).await;

    // One that arrives in pieces, but arrives, is taken.
    let mut steady = server.connect().await;
    let text = format!("{{{}}}", " ".repeat(100_000));
    let whole = request("POST", "/v1/call/session::create", "", &text);
    for piece in whole.as_bytes().chunks(5_000) {
        steady.write_all(piece).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(Answer::read(&mut steady).await.unwrap().status, 200);
    drop(steady);
    server.assert_serves().await;
    one_is_left(&server).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_end_after_a_while() {
    let server = Server::start(hurried()).await;
    let mut stream = server.connect().await;
    for _ in 0..3 {
        stream.write_all(request("GET", "/healthz", "", "").as_bytes()).await.unwrap();
        assert_eq!(Answer::read(&mut stream).await.unwrap().status, 200);
    }
    assert!(ended(&mut stream).await);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_said_everything_is_answered_though_it_says_no_more() {
    let server = Server::start(settings()).await;
    let mut stream = server.connect().await;
    stream.write_all(request("POST", "/v1/call/session::create", "", "{}").as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(Answer::read(&mut stream).await.unwrap().status, 200);
    assert!(ended(&mut stream).await);
    // And one that leaves without listening harms nobody.
    for _ in 0..50 {
        let mut stream = server.connect().await;
        stream.write_all(request("POST", "/v1/call/session::create", "", "{}").as_bytes()).await.unwrap();
        drop(stream);
    }
    server.assert_serves().await;
    one_is_left(&server).await;
    server.stop().await;
}
