//! What a worker that cannot start is told.

use std::sync::Arc;

use banyan::{Banyan, Options};
use banyan_iii::link::Engine;
use banyan_iii::worker::{StartError, Storage, Worker as SessionManager, WorkerOptions};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::watch;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

use crate::support::{Worker, engine, hub};

/// Why session-manager does not start.
async fn refused(engine: Engine, seed: Value) -> StartError {
    let (_stop, stopped) = watch::channel(false);
    let storage =
        Storage::Configured { open: Arc::new(|_| Banyan::in_memory(Options::default())), bridges_in: None };
    let options = WorkerOptions { engine, storage, seed: Some(seed) };
    SessionManager::start(options, stopped).await.err().expect("it does not start")
}

/// An engine that has such a worker already, and says so when it is asked something.
async fn has_another(stream: DuplexStream) {
    let mut socket = accept_async(stream).await.unwrap();
    while let Some(Ok(frame)) = socket.next().await {
        let Ok(text) = frame.to_text() else { continue };
        if text.contains("configuration::get") {
            let rejected = json!({"type": "registrationrejected", "code": "WORKER_NAMESPACE_CONFLICT",
                "namespace": "default", "worker_name": "session-manager", "owner_worker_id": "w_1"});
            socket.send(Message::text(rejected.to_string())).await.unwrap();
            return;
        }
    }
}

#[tokio::test]
async fn a_second_worker_on_an_engine_is_told_that_there_is_one_already() {
    let engine = Engine::Here(Arc::new(|| {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        tokio::spawn(has_another(theirs));
        ours
    }));
    let refused = refused(engine, json!({})).await;
    assert!(matches!(refused, StartError::Rejected { .. }), "{refused}");
    let told = refused.to_string();
    assert!(told.contains("another worker (w_1) is `session-manager` there already"), "{told}");
    assert!(told.contains("Stop that one first"), "{told}");
}

#[tokio::test]
async fn settings_to_begin_with_that_make_no_sense_are_told_and_not_stored() {
    let hub = hub();
    let refused = refused(engine(&hub), json!({"adapter": {"name": "s3", "config": {}}})).await;
    assert!(matches!(refused, StartError::Seed(_)), "{refused}");
    assert!(refused.to_string().contains("unknown variant `s3`"), "{refused}");
    let mut client = Worker::named(&hub, "client").await;
    let stored = client.call("configuration::get", json!({"id": "session-manager"})).await;
    assert_eq!(stored.unwrap_err()["code"], "NOT_FOUND");
}
