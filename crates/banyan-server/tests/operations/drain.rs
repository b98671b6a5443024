//! How a server stops: open calls finish, nothing new begins.

use std::time::Duration;

use banyan_server::Settings;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::wire::{Answer, SOON, Server, ended, request, settings, until};

const BODY: &str = r#"{"title":"the last"}"#;

/// A call whose body has begun and not ended.
async fn open_call(server: &Server) -> (TcpStream, &'static str) {
    let mut stream = server.connect().await;
    let whole = request("POST", "/v1/call/session::create", "", BODY);
    stream.write_all(&whole.as_bytes()[..whole.len() - BODY.len()]).await.unwrap();
    // It is open once the server counts it.
    until("the call is open", async || {
        server.get("/metrics", "").await.text().contains("banyan_requests_in_flight 2\n")
    })
    .await;
    (stream, BODY)
}

#[tokio::test(flavor = "multi_thread")]
async fn open_calls_finish_and_idle_connections_end() {
    let server = Server::start(Settings { drain: SOON, ..settings() }).await;
    let (mut calling, rest) = open_call(&server).await;
    let mut idle = server.connect().await;
    idle.write_all(request("GET", "/healthz", "", "").as_bytes()).await.unwrap();
    assert_eq!(Answer::read(&mut idle).await.unwrap().status, 200);
    let mut silent = server.connect().await;
    let mut beginning = server.connect().await;
    beginning.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n").await.unwrap();
    until("all five are taken", async || {
        server.get("/metrics", "").await.text().contains("banyan_connections 5\n")
    })
    .await;

    let (address, Server { running, store, dir }) = (server.address(), server);
    let stopping = tokio::spawn(running.stop());
    assert!(ended(&mut idle).await, "an idle connection ends");
    assert!(ended(&mut silent).await, "a connection that has said nothing ends");
    until("new connections are refused", async || TcpStream::connect(address).await.is_err()).await;
    // What had begun is answered, and the connection ends with it.
    beginning.write_all(b"\r\n").await.unwrap();
    if let Some(answer) = Answer::read(&mut beginning).await {
        assert_eq!((answer.status, answer.code().as_str()), (503, "http/stopping"));
    }
    assert!(!stopping.is_finished(), "the open call is waited for");
    calling.write_all(rest.as_bytes()).await.unwrap();
    let answer = Answer::read(&mut calling).await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert!(ended(&mut calling).await);
    tokio::time::timeout(SOON, stopping).await.unwrap().unwrap();
    store.close().unwrap();
    let files =
        std::fs::read_dir(dir.path()).unwrap().filter_map(|file| file.unwrap().file_name().into_string().ok());
    assert_eq!(files.filter(|name| name.ends_with(".jsonl")).count(), 1, "the last call is on disk");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_take_too_long_are_cut_off() {
    let server = Server::start(Settings { drain: Duration::from_millis(100), ..settings() }).await;
    let (mut calling, _) = open_call(&server).await;
    let Server { running, store, .. } = server;
    tokio::time::timeout(SOON, running.stop()).await.expect("the server does not wait for ever");
    assert!(ended(&mut calling).await, "the connection is cut");
    store.close().unwrap();
}
