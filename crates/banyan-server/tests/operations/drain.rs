//! How a server stops: open calls finish, nothing new begins.

use std::time::Duration;

use banyan_server::{Limits, Settings};
use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

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

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_keeps_its_place_and_is_closed_at_the_end() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let server = Server::start(Settings { limits, drain: SOON, ..settings() }).await;
    let address = format!("ws://{}/v1/ws", server.address());
    let (mut first, _) = tokio_tungstenite::connect_async(&address).await.unwrap();
    assert!(server.get("/metrics", "").await.text().contains("banyan_connections 2\n"));
    // The connection that asked makes room.
    let mut second = None;
    until("there is room for a second", async || {
        second = tokio_tungstenite::connect_async(&address).await.ok();
        second.is_some()
    })
    .await;
    let (mut second, _) = second.unwrap();
    assert_eq!(server.get("/metrics", "").await.code(), "http/too_many_connections");
    let stopping = tokio::spawn(server.running.stop());
    for socket in [&mut first, &mut second] {
        let last = async {
            let mut last = None;
            while let Some(Ok(message)) = socket.next().await {
                last = Some(message);
            }
            last
        };
        let last = tokio::time::timeout(SOON, last).await.unwrap();
        let Some(Message::Close(Some(frame))) = last else { panic!("{last:?}") };
        assert_eq!(frame.code, CloseCode::Away);
    }
    drop((first, second));
    tokio::time::timeout(SOON, stopping).await.unwrap().unwrap();
}
