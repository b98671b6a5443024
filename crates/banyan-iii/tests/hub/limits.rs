use std::time::Duration;

use banyan_iii::hub::{Hub, HubOptions};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::{PATIENCE, Worker, hub};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

#[tokio::test]
async fn a_worker_that_does_not_read_holds_up_nobody() {
    let hub = Hub::new(HubOptions { queue_bytes: 1 << 20, ..HubOptions::default() });
    let mut deaf = Worker::named(&hub, "deaf").await;
    deaf.offer("deaf::f").await;
    let mut one = Worker::named(&hub, "one").await;
    one.say(json!({"type": "registerfunction", "id": "one::workers"})).await;
    one.bind("t", "engine::workers-available", "one::workers", json!({})).await;
    one.hear().await;
    // It takes what fits in between, and then nothing.
    let data = "x".repeat(100 << 10);
    let call =
        json!({"type": "invokefunction", "function_id": "deaf::f", "data": data, "action": {"type": "void"}});
    for _ in 0..20 {
        one.say(call.clone()).await;
    }
    let gone = json!({"event": "worker_disconnected", "worker_id": deaf.id});
    assert_eq!(one.hear().await["data"], gone);
    assert_eq!(one.call("deaf::f", json!({})).await.unwrap_err()["code"], "function_not_found");
    let end = deaf.hear_end().await.unwrap();
    assert_eq!(end.code, CloseCode::Again);
    assert!(end.reason.as_str().contains("waited for the worker"), "{end:?}");
}

#[tokio::test]
async fn a_caller_is_told_that_a_worker_is_too_far_behind() {
    let hub = Hub::new(HubOptions { queue_bytes: 1 << 20, ..HubOptions::default() });
    let mut slow = Worker::named(&hub, "slow").await;
    slow.offer("slow::f").await;
    let mut one = Worker::named(&hub, "one").await;
    let data = json!("x".repeat(100 << 10));
    let mut begun = Vec::new();
    for _ in 0..20 {
        begun.push(one.begin("slow::f", data.clone()).await);
    }
    let refused = one.hear().await;
    assert_eq!(refused["error"]["code"], "worker_busy");
    // It is still there, and goes on where it was.
    let first = slow.hear().await;
    assert_eq!(first["invocation_id"], begun[0]);
}

#[tokio::test]
async fn a_worker_that_is_silent_is_disconnected() {
    let short = Duration::from_millis(50);
    let hub = Hub::new(HubOptions { ping_every: short, silence: 4 * short, ..HubOptions::default() });
    let mut one = Worker::named(&hub, "one").await;
    // Nothing reads, so no ping is answered.
    let workers = || async {
        let mut asks = Worker::nameless(&hub).await;
        asks.call("engine::workers::list", json!({})).await.unwrap()["workers"].as_array().unwrap().len()
    };
    timeout(PATIENCE, async { while workers().await > 0 {} }).await.unwrap();
    assert_eq!(one.hear_end().await.unwrap().code, CloseCode::Again);
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_with_a_reason() {
    let hub = Hub::new(HubOptions { frame_bytes: 1000, ..HubOptions::default() });
    let server = Server::start(hub).await;
    let mut socket = server.connect().await;
    // More than the connection takes in on the way.
    let sent = socket.send(Message::text("x".repeat(8 << 20))).await;
    let end = timeout(PATIENCE, async {
        loop {
            if let Message::Close(frame) = socket.next().await.unwrap().unwrap() {
                break frame.unwrap();
            }
        }
    });
    let end = end.await.unwrap();
    assert_eq!((end.code, end.reason.as_str()), (CloseCode::Size, "a message may have 1000 bytes at most"));
    drop(sent);
}

#[tokio::test]
async fn what_makes_no_sense_is_answered_or_passed_over() {
    let hub = hub();
    let (mut one, mut two) = (Worker::named(&hub, "one").await, Worker::named(&hub, "two").await);
    two.offer("two::f").await;
    for text in
        ["", "{", "[]", "{}", r#"{"type":"nothing-known"}"#, r#"{"type":"registerfunction"}"#, r#"{"type":5}"#]
    {
        one.say_text(text).await;
        one.settle().await;
    }
    let id = uuid::Uuid::new_v4().to_string();
    one.say(json!({"type": "invokefunction", "invocation_id": id, "function_id": "two::f", "data": {},
        "action": {"type": "someday"}}))
        .await;
    let answer = one.hear().await;
    assert_eq!((&answer["invocation_id"], &answer["error"]["code"]), (&json!(id), &json!("invalid_message")));
    one.say(json!({"type": "invokefunction", "invocation_id": "5", "function_id": "two::f", "data": {}})).await;
    assert_eq!(one.hear().await["error"]["code"], "invalid_message");
    // An answer that nobody can read is an answer all the same.
    one.begin("two::f", json!({})).await;
    let call = two.hear().await;
    two.say(json!({"type": "invocationresult", "invocation_id": call["invocation_id"], "function_id": "two::f",
        "error": "just a string"}))
        .await;
    assert_eq!(one.hear().await["error"]["code"], "invalid_message");
    one.begin("two::f", json!({})).await;
    assert_eq!(two.hear().await["function_id"], "two::f");
}

#[tokio::test]
async fn pages_on_other_sites_do_not_reach_it() {
    let server = Server::start(hub()).await;
    for (origin, status) in [("https://evil.example", 403), ("null", 403), ("http://localhost:3000", 101)] {
        let mut request = server.url("/").into_client_request().unwrap();
        request.headers_mut().insert("origin", origin.parse().unwrap());
        let got = match connect_async(request).await {
            Ok((_, response)) => response.status(),
            Err(tokio_tungstenite::tungstenite::Error::Http(response)) => response.status(),
            Err(error) => panic!("{error}"),
        };
        assert_eq!((origin, got.as_u16()), (origin, status));
    }
}

#[tokio::test]
async fn telemetry_has_a_connection_of_its_own_that_is_no_worker() {
    let server = Server::start(hub()).await;
    let (mut telemetry, _) = connect_async(server.url("/otel")).await.unwrap();
    telemetry.send(Message::binary(b"OTLP{}".to_vec())).await.unwrap();
    telemetry.send(Message::Ping("x".into())).await.unwrap();
    let heard = timeout(PATIENCE, telemetry.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(heard, Message::Pong("x".into()));
    // On a worker's own connection it is taken too.
    let mut worker = server.connect().await;
    worker.send(Message::binary(b"MTRC{}".to_vec())).await.unwrap();
    worker.send(Message::binary(br#"{"type":"ping"}"#.to_vec())).await.unwrap();
    assert_eq!(text(&mut worker).await["type"], "workerregistered");
    assert_eq!(text(&mut worker).await["type"], "pong");
}

#[tokio::test]
async fn there_are_only_so_many_connections() {
    let server = Server::start(Hub::new(HubOptions { connections: 1, ..HubOptions::default() })).await;
    let mut first = server.connect().await;
    assert_eq!(text(&mut first).await["type"], "workerregistered");
    let Err(tokio_tungstenite::tungstenite::Error::Http(refused)) = connect_async(server.url("/")).await else {
        panic!("a second one was let in");
    };
    assert_eq!(refused.status().as_u16(), 503);
    drop(first);
    let again = async { while connect_async(server.url("/")).await.is_err() {} };
    timeout(PATIENCE, again).await.unwrap();
}

#[tokio::test]
async fn when_it_ends_it_says_so() {
    let server = Server::start(hub()).await;
    let mut socket = server.connect().await;
    assert_eq!(text(&mut socket).await["type"], "workerregistered");
    let ended = tokio::spawn(server.end());
    let Message::Close(Some(frame)) = timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap() else {
        panic!("something else was said");
    };
    assert_eq!(frame.code, CloseCode::Restart);
    assert!(timeout(PATIENCE, socket.next()).await.unwrap().is_none());
    timeout(PATIENCE, ended).await.unwrap().unwrap();
}

async fn text(socket: &mut Socket) -> Value {
    serde_json::from_str(timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap().to_text().unwrap())
        .unwrap()
}

/// A bus on a port.
struct Server {
    port: u16,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    async fn start(hub: Hub) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move { hub.serve(listener, async { drop(stopped.await) }).await });
        Self { port, stop, task }
    }

    fn url(&self, path: &str) -> String {
        format!("ws://127.0.0.1:{}{path}", self.port)
    }

    async fn connect(&self) -> Socket {
        connect_async(self.url("/")).await.unwrap().0
    }

    async fn end(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap();
    }
}
