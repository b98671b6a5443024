use serde_json::{Value, json};

use crate::support::{Worker, hub};

const KIND: &str = "clock::tick";

async fn offering(worker: &mut Worker) {
    worker.say(json!({"type": "registertriggertype", "id": KIND, "description": "ticks"})).await;
}

fn told(id: &str) -> Value {
    json!({"type": "registertrigger", "id": id, "trigger_type": KIND, "function_id": "f", "config": {"every": 1}})
}

#[tokio::test]
async fn a_binding_goes_to_whoever_offers_the_kind_and_the_result_back() {
    let hub = hub();
    let (mut clock, mut user) = (Worker::named(&hub, "clock").await, Worker::named(&hub, "user").await);
    offering(&mut clock).await;
    clock.settle().await;
    user.say(json!({"type": "registertrigger", "id": "t", "trigger_type": KIND, "function_id": "f",
        "config": {"every": 1}, "metadata": {"m": [1]}}))
        .await;
    let mut expected = told("t");
    expected["metadata"] = json!({"m": [1]});
    assert_eq!(clock.hear().await, expected);
    let result = json!({"type": "triggerregistrationresult", "id": "t", "trigger_type": KIND, "function_id": "f"});
    clock.say(result.clone()).await;
    assert_eq!(user.hear().await, result);
    user.say(json!({"type": "unregistertrigger", "id": "t"})).await;
    assert_eq!(clock.hear().await, json!({"type": "unregistertrigger", "id": "t", "trigger_type": KIND}));
}

#[tokio::test]
async fn a_binding_waits_for_its_kind_and_is_told_again_when_that_comes_back() {
    let hub = hub();
    let mut user = Worker::named(&hub, "user").await;
    user.bind("t", KIND, "f", json!({"every": 1})).await;
    user.settle().await;
    let mut clock = Worker::named(&hub, "clock").await;
    offering(&mut clock).await;
    assert_eq!(clock.hear().await, told("t"));
    drop(clock);
    let mut clock = Worker::named(&hub, "clock").await;
    offering(&mut clock).await;
    assert_eq!(clock.hear().await, told("t"));
    // Offered once more by the same worker, as after a lost connection that it did not notice.
    offering(&mut clock).await;
    assert_eq!(clock.hear().await, told("t"));
    clock.say(json!({"type": "unregistertriggertype", "id": KIND})).await;
    clock.settle().await;
    offering(&mut clock).await;
    assert_eq!(clock.hear().await, told("t"));
}

#[tokio::test]
async fn a_worker_that_is_gone_has_no_bindings() {
    let hub = hub();
    let (mut clock, mut user) = (Worker::named(&hub, "clock").await, Worker::named(&hub, "user").await);
    offering(&mut clock).await;
    clock.settle().await;
    for id in ["t1", "t2"] {
        user.bind(id, KIND, "f", json!({"every": 1})).await;
        assert_eq!(clock.hear().await, told(id));
    }
    // The same binding again, by a connection that comes after: it is the newer one that counts.
    let mut again = Worker::named(&hub, "user").await;
    again.bind("t2", KIND, "f", json!({"every": 1})).await;
    assert_eq!(clock.hear().await, told("t2"));
    drop(user);
    assert_eq!(clock.hear().await, json!({"type": "unregistertrigger", "id": "t1", "trigger_type": KIND}));
    clock.settle().await;
}

#[tokio::test]
async fn a_refusal_is_told_and_tried_again_only_when_the_kind_is_offered_anew() {
    let hub = hub();
    let (mut clock, mut user) = (Worker::named(&hub, "clock").await, Worker::named(&hub, "user").await);
    offering(&mut clock).await;
    clock.settle().await;
    user.bind("t", KIND, "f", json!({"every": 1})).await;
    clock.hear().await;
    let refusal = json!({"type": "triggerregistrationresult", "id": "t", "trigger_type": KIND, "function_id": "f",
        "error": {"code": "trigger_registration_failed", "message": "no"}});
    // Nobody else can refuse it.
    user.say(refusal.clone()).await;
    user.settle().await;
    clock.say(refusal.clone()).await;
    assert_eq!(user.hear().await, refusal);
    offering(&mut clock).await;
    assert_eq!(clock.hear().await, told("t"));
}

#[tokio::test]
async fn a_kind_is_looked_for_at_home_and_then_in_the_default_namespace() {
    let hub = hub();
    let mut clock = Worker::named(&hub, "clock").await;
    offering(&mut clock).await;
    clock.settle().await;
    let mut user = Worker::nameless(&hub).await;
    user.bind("t", KIND, "f", json!({"every": 1})).await;
    user.announce(json!({"name": "user", "namespace": "home"})).await;
    assert_eq!(clock.hear().await, told("t"));
    let mut home = Worker::nameless(&hub).await;
    home.announce(json!({"name": "clock", "namespace": "home"})).await;
    offering(&mut home).await;
    let mut at_home = told("t");
    at_home["trigger_namespace"] = json!("home");
    assert_eq!(home.hear().await, at_home);
    assert_eq!(clock.hear().await["type"], "unregistertrigger");
    drop(home);
    assert_eq!(clock.hear().await, told("t"));
}

#[tokio::test]
async fn the_bus_tells_of_workers_and_functions() {
    let hub = hub();
    let mut user = Worker::named(&hub, "user").await;
    user.offer("user::workers").await;
    user.offer("user::functions").await;
    for (id, kind, function) in [
        ("w", "engine::workers-available", "user::workers"),
        ("f", "engine::functions-available", "user::functions"),
    ] {
        user.bind(id, kind, function, json!({})).await;
        let result =
            json!({"type": "triggerregistrationresult", "id": id, "trigger_type": kind, "function_id": function});
        assert_eq!(user.hear().await, result);
    }
    let mut other = Worker::named(&hub, "other").await;
    for event in ["worker_connected", "worker_metadata_updated"] {
        let told = json!({"type": "invokefunction", "function_id": "user::workers",
            "data": {"event": event, "worker_id": other.id}});
        assert_eq!(user.hear().await, told);
    }
    other.offer("other::f").await;
    let call = user.hear().await;
    assert_eq!(call["function_id"], "user::functions");
    assert_eq!(call["data"]["event"], "functions_changed");
    let functions = call["data"]["functions"].as_array().unwrap();
    assert!(functions.iter().any(|it| it["function_id"] == "other::f" && it["worker_name"] == "other"), "{call}");
    let gone = other.id.clone();
    drop(other);
    assert_eq!(user.hear().await["data"], json!({"event": "worker_disconnected", "worker_id": gone}));
}
