use serde_json::json;

use crate::support::{Worker, hub};

#[tokio::test]
async fn a_call_goes_to_whoever_has_the_function_and_the_answer_back() {
    let hub = hub();
    let (mut one, mut two) = (Worker::named(&hub, "one").await, Worker::named(&hub, "two").await);
    two.offer("two::double").await;
    let id = uuid::Uuid::new_v4().to_string();
    one.say(
        json!({"type": "invokefunction", "invocation_id": id, "function_id": "two::double", "data": {"n": 21},
        "traceparent": "00-1-2-01", "metadata": {"why": "test"}, "namespace": "default"}),
    )
    .await;
    let call = two.hear().await;
    assert_eq!(
        call,
        json!({"type": "invokefunction", "invocation_id": id, "function_id": "two::double",
            "data": {"n": 21, "_caller_worker_id": one.id}, "traceparent": "00-1-2-01", "metadata": {"why": "test"}})
    );
    two.answer(&call, json!({"n": 42})).await;
    assert_eq!(
        one.hear().await,
        json!({"type": "invocationresult", "invocation_id": id, "function_id": "two::double", "result": {"n": 42}})
    );
}

#[tokio::test]
async fn errors_and_large_answers_are_passed_on_as_they_are() {
    let hub = hub();
    let (mut one, mut two) = (Worker::named(&hub, "one").await, Worker::named(&hub, "two").await);
    two.offer("two::f").await;
    for result in [
        json!({"error": {"code": "c", "message": "m", "stacktrace": "s"}}),
        json!({"result": "x".repeat(1 << 20)}),
    ] {
        let id = one.begin("two::f", json!([1])).await;
        assert_eq!(two.hear().await["data"], json!([1]));
        let mut answer = json!({"type": "invocationresult", "invocation_id": id, "function_id": "two::f"});
        answer.as_object_mut().unwrap().extend(result.as_object().unwrap().clone());
        two.say(answer.clone()).await;
        assert_eq!(one.hear().await, answer);
    }
}

#[tokio::test]
async fn a_worker_may_call_itself() {
    let hub = hub();
    let mut one = Worker::named(&hub, "one").await;
    one.offer("one::f").await;
    let id = one.begin("one::f", json!(null)).await;
    let call = one.hear().await;
    assert_eq!((&call["invocation_id"], &call["data"]), (&json!(id), &json!(null)));
    one.answer(&call, json!(1)).await;
    assert_eq!(one.hear().await["result"], 1);
}

#[tokio::test]
async fn nobody_is_told_of_a_void_call() {
    let hub = hub();
    let (mut one, mut two) = (Worker::named(&hub, "one").await, Worker::named(&hub, "two").await);
    two.offer("two::f").await;
    for function in ["two::f", "nobody::has-it"] {
        one.say(json!({"type": "invokefunction", "invocation_id": uuid::Uuid::new_v4().to_string(), "function_id": function,
            "data": {}, "action": {"type": "void"}}))
            .await;
    }
    let call = two.hear().await;
    assert_eq!(
        call,
        json!({"type": "invokefunction", "function_id": "two::f", "data": {"_caller_worker_id": one.id}})
    );
    one.settle().await;
}

#[tokio::test]
async fn unknown_functions_are_said_to_be_unknown() {
    let hub = hub();
    let mut one = Worker::named(&hub, "one").await;
    assert_eq!(
        one.call("a::b", json!({})).await,
        Err(json!({"code": "function_not_found", "message": "Function a::b not found in namespace default."}))
    );
    let error = one.call("state::get", json!({})).await.unwrap_err();
    assert_eq!(error["code"], "function_not_found");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("Banyan's own bus") && message.contains("`iii`"), "{message}");
    let id = uuid::Uuid::new_v4().to_string();
    one.say(json!({"type": "invokefunction", "invocation_id": id, "function_id": "a::b", "data": {},
        "action": {"type": "enqueue", "queue": "jobs"}}))
        .await;
    let error = one.hear().await["error"].clone();
    assert_eq!(error["code"], "enqueue_error");
    assert!(error["message"].as_str().unwrap().contains("has no queues"), "{error}");
}

#[tokio::test]
async fn a_call_to_a_worker_that_goes_away_fails_at_once() {
    let hub = hub();
    let (mut one, mut two) = (Worker::named(&hub, "one").await, Worker::named(&hub, "two").await);
    two.offer("two::f").await;
    one.begin("two::f", json!({})).await;
    two.hear().await;
    drop(two);
    assert_eq!(one.hear().await["error"]["code"], "invocation_stopped");
    assert_eq!(one.call("two::f", json!({})).await.unwrap_err()["code"], "function_not_found");
}

#[tokio::test]
async fn only_the_called_worker_can_answer() {
    let hub = hub();
    let (mut one, mut two) = (Worker::named(&hub, "one").await, Worker::named(&hub, "two").await);
    let mut three = Worker::named(&hub, "three").await;
    two.offer("two::f").await;
    one.begin("two::f", json!({})).await;
    let call = two.hear().await;
    three.answer(&call, json!("forged")).await;
    three.settle().await;
    two.answer(&call, json!("true")).await;
    assert_eq!(one.hear().await["result"], "true");
    // A second answer is to nobody.
    two.answer(&call, json!("again")).await;
    two.settle().await;
    one.settle().await;
}

#[tokio::test]
async fn a_function_has_one_worker_and_another_after_it_is_gone() {
    let hub = hub();
    let (mut one, mut two) = (Worker::named(&hub, "one").await, Worker::named(&hub, "two").await);
    one.offer("f").await;
    one.offer("f").await;
    two.say(json!({"type": "registerfunction", "id": "f"})).await;
    assert_eq!(
        two.hear().await,
        json!({"type": "registrationrejected", "code": "FUNCTION_NAMESPACE_CONFLICT", "namespace": "default",
            "function_id": "f", "owner_worker_id": one.id})
    );
    two.say(json!({"type": "unregisterfunction", "id": "f"})).await;
    two.begin("f", json!({})).await;
    let call = one.hear().await;
    one.answer(&call, json!("one")).await;
    assert_eq!(two.hear().await["result"], "one");
    one.say(json!({"type": "unregisterfunction", "id": "f"})).await;
    one.settle().await;
    two.offer("f").await;
}

#[tokio::test]
async fn namespaces_are_apart_and_known_before_functions_are() {
    let hub = hub();
    // Some SDKs say last where they are.
    let mut far = Worker::nameless(&hub).await;
    far.say(json!({"type": "registerfunction", "id": "f"})).await;
    far.announce(json!({"name": "far", "namespace": "far"})).await;
    let mut near = Worker::named(&hub, "near").await;
    assert_eq!(
        near.call("f", json!({})).await.unwrap_err()["message"],
        "Function f not found in namespace default. It is registered in namespace(s): far."
    );
    near.offer("f").await;
    let id = uuid::Uuid::new_v4().to_string();
    near.say(
        json!({"type": "invokefunction", "invocation_id": id, "function_id": "f", "data": {}, "namespace": "far"}),
    )
    .await;
    let call = far.hear().await;
    far.answer(&call, json!("far")).await;
    assert_eq!(near.hear().await["result"], "far");
    near.say(
        json!({"type": "invokefunction", "invocation_id": id, "function_id": "f", "data": {}, "namespace": " "}),
    )
    .await;
    assert_eq!(near.hear().await["error"]["code"], "INVALID_NAMESPACE");
}

#[tokio::test]
async fn a_worker_that_comes_back_takes_its_own_place() {
    let hub = hub();
    let mut old = Worker::named(&hub, "one").await;
    old.offer("f").await;
    let mut thief = Worker::named(&hub, "thief").await;
    thief.say(json!({"type": "reattach", "previous_worker_id": old.id, "reattach_token": "guess"})).await;
    thief.settle().await;
    old.settle().await;
    let mut new = Worker::nameless(&hub).await;
    new.say(json!({"type": "reattach", "previous_worker_id": old.id, "reattach_token": old.token})).await;
    new.announce(json!({"name": "one"})).await;
    new.offer("f").await;
    assert_eq!(old.hear_end().await.unwrap().reason.as_str(), "the worker has a newer connection");
    thief.begin("f", json!({})).await;
    assert_eq!(new.hear().await["function_id"], "f");
}
