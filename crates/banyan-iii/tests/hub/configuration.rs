use banyan_iii::hub::{Hub, HubOptions};
use serde_json::{Value, json};

use crate::support::{Worker, hub};

fn registration(value: Value) -> Value {
    json!({"id": "thing", "name": "Thing", "description": "is set", "schema": {"type": "object"}, "initial_value": value})
}

fn error(code: &str, message: &str) -> Result<Value, Value> {
    Err(json!({"code": code, "message": message}))
}

#[tokio::test]
async fn a_configuration_is_registered_read_and_changed() {
    let hub = hub();
    let mut one = Worker::named(&hub, "one").await;
    assert_eq!(
        one.call("configuration::get", json!({"id": "thing"})).await,
        error("NOT_FOUND", "configuration 'thing' not found")
    );
    assert_eq!(
        one.call("configuration::set", json!({"id": "thing", "value": 1})).await,
        error("NOT_REGISTERED", "configuration 'thing' is not registered; call configuration::register first")
    );
    let value = json!({"port": "${BANYAN_TEST_UNSET:80}"});
    let entry = json!({"id": "thing", "name": "Thing", "description": "is set", "schema": {"type": "object"},
        "value": value});
    assert_eq!(one.call("configuration::register", registration(value.clone())).await, Ok(entry));
    assert_eq!(
        one.call("configuration::get", json!({"id": "thing"})).await,
        Ok(json!({"id": "thing", "value": {"port": 80}}))
    );
    assert_eq!(
        one.call("configuration::get", json!({"id": "thing", "raw": true})).await,
        Ok(json!({"id": "thing", "value": value}))
    );
    assert_eq!(
        one.call("configuration::set", json!({"id": "thing", "value": "${BANYAN_TEST_UNSET}"})).await,
        Ok(json!({"old_value": value, "new_value": "${BANYAN_TEST_UNSET}"}))
    );
    let unset = one.call("configuration::get", json!({"id": "thing"})).await.unwrap_err();
    assert_eq!(unset["code"], "EXPAND_FAILED");
    // Registered anew without a value, it keeps the one that it has.
    let mut again = registration(json!(null));
    again.as_object_mut().unwrap().remove("initial_value");
    assert_eq!(one.call("configuration::register", again).await.unwrap()["value"], "${BANYAN_TEST_UNSET}");
    let view = json!({"id": "thing", "name": "Thing", "description": "is set", "schema": {"type": "object"}});
    assert_eq!(one.call("configuration::list", json!({})).await, Ok(json!({"configurations": [view]})));
    assert_eq!(one.call("configuration::schema", json!({"id": "thing"})).await, Ok(view));
    assert_eq!(one.call("configuration::delete", json!({"id": "thing"})).await, Ok(json!({"ok": true})));
    assert_eq!(one.call("configuration::get", json!({"id": "thing"})).await.unwrap_err()["code"], "NOT_FOUND");
}

#[tokio::test]
async fn bad_requests_are_refused() {
    let hub = hub();
    let mut one = Worker::named(&hub, "one").await;
    let mut bad = registration(json!(1));
    bad["id"] = json!("../thing");
    assert_eq!(one.call("configuration::register", bad).await.unwrap_err()["code"], "INVALID_ID");
    let missing = one.call("configuration::register", json!({"id": "thing"})).await.unwrap_err();
    assert_eq!(missing["code"], "deserialization_error");
}

#[tokio::test]
async fn whoever_asked_hears_of_changes() {
    let hub = hub();
    let (mut one, mut two) = (Worker::named(&hub, "one").await, Worker::named(&hub, "two").await);
    one.offer("one::changed").await;
    one.bind("bad", "configuration", "one::changed", json!({"event_types": 5})).await;
    assert_eq!(one.hear().await["error"]["code"], "trigger_registration_failed");
    for (id, config) in [
        ("updates", json!({"configuration_id": "thing", "event_types": ["configuration:updated"]})),
        ("other", json!({"configuration_id": "other"})),
    ] {
        one.bind(id, "configuration", "one::changed", config).await;
        assert_eq!((one.hear().await["error"].clone(), id), (json!(null), id));
    }
    two.call("configuration::register", registration(json!({"n": 1}))).await.unwrap();
    two.call("configuration::set", json!({"id": "thing", "value": {"n": "${BANYAN_TEST_UNSET:2}"}}))
        .await
        .unwrap();
    assert_eq!(
        one.hear().await,
        json!({"type": "invokefunction", "function_id": "one::changed", "data": {"type": "configuration",
            "event_type": "configuration:updated", "id": "thing", "name": "Thing", "description": "is set",
            "schema": {"type": "object"}, "old_value": {"n": 1}, "new_value": {"n": 2}}})
    );
    one.say(json!({"type": "unregistertrigger", "id": "updates"})).await;
    one.settle().await;
    two.call("configuration::set", json!({"id": "thing", "value": 3})).await.unwrap();
    one.settle().await;
}

#[tokio::test]
async fn a_workers_own_configuration_is_used_instead() {
    let hub = hub();
    let (mut one, mut two) = (Worker::named(&hub, "one").await, Worker::named(&hub, "two").await);
    two.bind("t", "configuration", "two::changed", json!({})).await;
    assert_eq!(two.hear().await["type"], "triggerregistrationresult");
    one.offer("configuration::get").await;
    one.say(json!({"type": "registertriggertype", "id": "configuration", "description": ""})).await;
    assert_eq!(one.hear().await["id"], "t");
    two.begin("configuration::get", json!({"id": "thing"})).await;
    let call = one.hear().await;
    one.answer(&call, json!("mine")).await;
    assert_eq!(two.hear().await["result"], "mine");
    drop(one);
    // The bus's own takes the binding back.
    assert_eq!(two.hear().await["type"], "triggerregistrationresult");
    assert_eq!(two.call("configuration::get", json!({"id": "thing"})).await.unwrap_err()["code"], "NOT_FOUND");
}

#[tokio::test]
async fn what_is_set_is_still_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("configuration");
    let open = || Hub::new(HubOptions { configuration_dir: Some(place.clone()), ..HubOptions::default() });
    let mut one = Worker::named(&open(), "one").await;
    one.call("configuration::register", registration(json!(1))).await.unwrap();
    one.call("configuration::set", json!({"id": "thing", "value": {"a": "${X:1}"}})).await.unwrap();
    std::fs::write(place.join("broken.json"), "{").unwrap();
    let mut two = Worker::named(&open(), "two").await;
    let stored = two.call("configuration::get", json!({"id": "thing", "raw": true})).await.unwrap();
    assert_eq!(stored["value"], json!({"a": "${X:1}"}));
    let listed = two.call("configuration::list", json!({})).await.unwrap();
    assert_eq!(listed["configurations"].as_array().unwrap().len(), 1);
    two.call("configuration::delete", json!({"id": "thing"})).await.unwrap();
    let mut three = Worker::named(&open(), "three").await;
    assert_eq!(three.call("configuration::get", json!({"id": "thing"})).await.unwrap_err()["code"], "NOT_FOUND");
}
