//! A worker that stops answers what it has begun.

use std::sync::Arc;

use banyan_iii::link::{Call, Connection, Link, Service, function_frame};
use banyan_iii::wire::{ErrorBody, RegisterTrigger};
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{Worker, engine, hub};

/// Answers when it is told to.
#[derive(Default)]
struct Slow {
    begun: Notify,
    may_answer: Notify,
}

impl Service for Slow {
    fn offers(&self) -> Vec<String> {
        vec![function_frame("slow::f", "takes its time", &json!({}), &json!({}))]
    }

    fn identity(&self) -> String {
        json!({"name": "slow", "runtime": "test", "version": "1"}).to_string()
    }

    fn call(self: Arc<Self>, _: Call) -> BoxFuture<'static, Result<String, ErrorBody<'static>>> {
        Box::pin(async move {
            self.begun.notify_one();
            self.may_answer.notified().await;
            Ok("42".to_owned())
        })
    }

    fn bind(self: Arc<Self>, _: &Arc<Connection>, _: RegisterTrigger<'_>) -> Result<(), ErrorBody<'static>> {
        Ok(())
    }

    fn unbind(self: Arc<Self>, _: &str) {}

    fn connected(self: Arc<Self>, _: &Arc<Connection>) {}

    fn lost(self: Arc<Self>) {}
}

#[tokio::test]
async fn a_call_under_way_is_answered_before_the_worker_leaves() {
    let hub = hub();
    let slow = Arc::new(Slow::default());
    let link = Link::open(engine(&hub), Arc::clone(&slow) as _);
    link.stands().await.unwrap();
    let mut caller = Worker::named(&hub, "caller").await;
    let id = caller.begin("slow::f", json!({})).await;
    slow.begun.notified().await;
    tokio::join!(link.close(), async {
        tokio::task::yield_now().await;
        slow.may_answer.notify_one();
    });
    let answer = caller.hear().await;
    assert_eq!((&answer["invocation_id"], &answer["result"]), (&json!(id), &json!(42)));
}

#[tokio::test]
async fn a_call_that_takes_too_long_does_not_keep_the_worker() {
    let hub = hub();
    let slow = Arc::new(Slow::default());
    let link = Link::open(engine(&hub), Arc::clone(&slow) as _);
    link.stands().await.unwrap();
    let mut caller = Worker::named(&hub, "caller").await;
    caller.begin("slow::f", json!({})).await;
    slow.begun.notified().await;
    link.close().await;
    assert_eq!(caller.hear().await["error"]["code"], "invocation_stopped");
}
