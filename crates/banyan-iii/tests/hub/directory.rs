use serde_json::{Value, json};

use crate::support::{Worker, hub};

#[tokio::test]
async fn workers_functions_and_triggers_are_listed() {
    let hub = hub();
    let mut one = Worker::named(&hub, "one").await;
    one.say(json!({"type": "registerfunction", "id": "one::f", "description": "does f", "request_format": {"type": "object"},
        "metadata": {"a": 1}}))
        .await;
    one.say(json!({"type": "registerfunction", "id": "one::hidden", "metadata": {"internal": true}})).await;
    one.say(json!({"type": "registertriggertype", "id": "one::kind", "description": "is a kind",
        "trigger_request_format": {"type": "object"}}))
        .await;
    one.bind("t", "one::kind", "one::f", json!({"a": 1})).await;
    assert_eq!(one.hear().await["id"], "t");
    let mut two = Worker::named(&hub, "two").await;

    let f = json!({"function_id": "one::f", "namespace": "default", "worker_name": "one", "description": "does f",
        "metadata": {"a": 1}});
    assert_eq!(
        two.call("engine::functions::list", json!({"prefix": "one::"})).await,
        Ok(json!({"functions": [f]}))
    );
    let all = two.call("engine::functions::list", json!({"include_internal": true})).await.unwrap();
    let ids: Vec<&Value> = all["functions"].as_array().unwrap().iter().map(|it| &it["function_id"]).collect();
    assert!(ids.contains(&&json!("one::hidden")) && ids.contains(&&json!("configuration::get")), "{ids:?}");

    let kind =
        json!({"id": "one::kind", "namespace": "default", "worker_name": "one", "description": "is a kind"});
    assert_eq!(
        two.call("engine::triggers::list", json!({"search": "KIND"})).await,
        Ok(json!({"triggers": [kind]}))
    );
    let bound = json!({"id": "t", "trigger_type": "one::kind", "function_id": "one::f", "worker_name": "one",
        "config": {"a": 1}, "config_summary": "{\"a\":1}"});
    assert_eq!(
        two.call("engine::registered-triggers::list", json!(null)).await,
        Ok(json!({"registered_triggers": [bound]}))
    );

    let workers = two.call("engine::workers::list", json!({})).await.unwrap();
    let mut listed = workers["workers"][0].clone();
    assert!(listed["connected_at_ms"].take().as_u64().unwrap() > 0);
    let worker = json!({"name": "one", "description": null, "version": "1", "id": one.id, "namespace": "default",
        "runtime": "test", "os": null, "status": "connected", "function_count": 2, "connected_at_ms": null,
        "active_invocations": 0, "isolation": null, "ip_address": null});
    assert_eq!(listed, worker);
    assert_eq!(workers["workers"].as_array().unwrap().len(), 2);

    let detail = two.call("engine::functions::info", json!({"function_id": "one::f"})).await.unwrap();
    assert_eq!(detail["request_schema"], json!({"type": "object"}));
    assert_eq!(
        detail["registered_triggers"],
        json!([{"id": "t", "trigger_type": "one::kind", "config": {"a": 1}}])
    );
    let detail = two.call("engine::triggers::info", json!({"id": "one::kind"})).await.unwrap();
    assert_eq!(
        (&detail["configuration_schema"], &detail["instance_count"]),
        (&json!({"type": "object"}), &json!(1))
    );
    let detail = two.call("engine::workers::info", json!({"name": "one"})).await.unwrap();
    assert_eq!((&detail["worker"]["pid"], &detail["trigger_types"]), (&json!(7), &json!([kind])));
    for (function, data) in [
        ("engine::functions::info", json!({"function_id": "x"})),
        ("engine::triggers::info", json!({"id": "x"})),
        ("engine::workers::info", json!({"name": "x"})),
    ] {
        assert_eq!(two.call(function, data).await.unwrap_err()["code"], "NOT_FOUND");
    }
}

#[tokio::test]
async fn a_worker_that_asks_for_an_answer_gets_one() {
    let hub = hub();
    let mut one = Worker::nameless(&hub).await;
    let about = json!({"name": "one", "telemetry": {"language": "en"}, "features": ["observe.v1"]});
    assert_eq!(one.call("engine::workers::register", about).await, Ok(json!({"success": true})));
    let blank = one.call("engine::workers::register", json!({"name": "one", "namespace": ""})).await;
    assert_eq!(blank.unwrap_err()["code"], "INVALID_NAMESPACE");
}
