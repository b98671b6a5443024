//! A worker that says exactly what a test wants it to say.

use std::sync::Arc;
use std::time::Duration;

use banyan_iii::hub::{Hub, HubOptions};
use banyan_iii::link::Engine;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, client_async};

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn hub() -> Hub {
    Hub::new(HubOptions::default())
}

/// The bus as the workers of this crate reach it.
pub(crate) fn engine(hub: &Hub) -> Engine {
    let hub = hub.clone();
    Engine::Here(Arc::new(move || {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let hub = hub.clone();
        tokio::spawn(async move { hub.serve_stream(theirs).await });
        ours
    }))
}

pub(crate) struct Worker {
    socket: WebSocketStream<DuplexStream>,
    pub(crate) id: String,
    pub(crate) token: String,
}

impl Worker {
    /// Connects and says a name.
    pub(crate) async fn named(hub: &Hub, name: &str) -> Self {
        let mut worker = Self::nameless(hub).await;
        worker.announce(json!({"name": name, "runtime": "test", "version": "1", "pid": 7})).await;
        worker
    }

    /// Connects and is greeted.
    pub(crate) async fn nameless(hub: &Hub) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let hub = hub.clone();
        tokio::spawn(async move { hub.serve_stream(theirs).await });
        let (socket, _) = client_async("ws://bus/".into_client_request().unwrap(), ours).await.unwrap();
        let mut worker = Self { socket, id: String::new(), token: String::new() };
        let greeting = worker.hear().await;
        assert_eq!(greeting["type"], "workerregistered");
        worker.id = greeting["worker_id"].as_str().unwrap().to_owned();
        worker.token = greeting["reattach_token"].as_str().unwrap().to_owned();
        worker
    }

    /// Says what it is, the way SDKs do.
    pub(crate) async fn announce(&mut self, about: Value) {
        self.say(json!({"type": "invokefunction", "function_id": "engine::workers::register", "data": about,
            "action": {"type": "void"}}))
            .await;
        self.settle().await;
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.say_text(&message.to_string()).await;
    }

    pub(crate) async fn say_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    /// The next message.
    pub(crate) async fn hear(&mut self) -> Value {
        loop {
            match timeout(PATIENCE, self.socket.next()).await.expect("something is said") {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Whatever is still said, up to the end, and how it ends.
    pub(crate) async fn hear_end(&mut self) -> Option<CloseFrame> {
        loop {
            match timeout(PATIENCE, self.socket.next()).await.expect("the connection ends") {
                Some(Ok(Message::Close(frame))) => return frame,
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }

    /// Everything said so far was taken in, and nothing was said back.
    pub(crate) async fn settle(&mut self) {
        self.say(json!({"type": "ping"})).await;
        assert_eq!(self.hear().await, json!({"type": "pong"}));
    }

    pub(crate) async fn offer(&mut self, function: &str) {
        self.say(json!({"type": "registerfunction", "id": function, "description": format!("is {function}")}))
            .await;
        self.settle().await;
    }

    /// Calls, and says what the call is known by.
    pub(crate) async fn begin(&mut self, function: &str, data: Value) -> String {
        let id = uuid::Uuid::new_v4().to_string();
        self.say(json!({"type": "invokefunction", "invocation_id": id, "function_id": function, "data": data}))
            .await;
        id
    }

    /// Calls and waits for the answer, which is the next thing that it hears.
    pub(crate) async fn call(&mut self, function: &str, data: Value) -> Result<Value, Value> {
        let id = self.begin(function, data).await;
        let answer = self.hear().await;
        assert_eq!((&answer["type"], &answer["invocation_id"]), (&json!("invocationresult"), &json!(id)));
        assert_eq!(answer["function_id"], function);
        match &answer["error"] {
            Value::Null => Ok(answer["result"].clone()),
            error => Err(error.clone()),
        }
    }

    pub(crate) async fn answer(&mut self, call: &Value, result: Value) {
        self.say(json!({"type": "invocationresult", "invocation_id": call["invocation_id"],
            "function_id": call["function_id"], "result": result}))
            .await;
    }

    pub(crate) async fn bind(&mut self, id: &str, kind: &str, function: &str, config: Value) {
        self.say(json!({"type": "registertrigger", "id": id, "trigger_type": kind, "function_id": function,
            "config": config}))
            .await;
    }
}
