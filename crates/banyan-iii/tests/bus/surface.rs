//! What the worker offers, and how it says no.

use serde_json::{Value, json};

use crate::contract::compare::{Comparison, compare};
use crate::support::{Bus, Client, InProcess, in_directory, said};

/// The contract, as it was published.
fn contract() -> Value {
    serde_json::from_str(include_str!("../../../banyan-model/tests/contract/session-manager.api.json")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_function_of_the_contract_is_on_the_bus_with_its_schemas() {
    let bus = Bus::start().await;
    let dir = tempfile::tempdir().unwrap();
    let worker = InProcess::join(&bus.url, in_directory(dir.path())).await;
    let client = Client::when_ready(&bus.url).await;
    let contract = contract();
    let published = contract["functions"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str());
    let beyond = ["session::extend-message", "session::tree", "session::messages-tail", "session::put-attachment"];
    for name in published.chain(beyond) {
        let info = client.call("engine::functions::info", json!({"function_id": name})).await;
        assert!(info["request_schema"].is_object() && info["response_schema"].is_object(), "{name}: {info}");
        assert!(info["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}: {info}");
    }
    // Remarks are left out, and nothing else.
    let mut found = Comparison::default();
    for function in contract["functions"].as_array().unwrap() {
        let name = function["name"].as_str().unwrap();
        let info = client.call("engine::functions::info", json!({"function_id": name})).await;
        for schema in ["request_schema", "response_schema"] {
            compare(&info[schema], &function[schema], &format!("{name} {schema}"), &mut found);
        }
    }
    assert_eq!(found.differences, Vec::<String>::new());
    let kinds = client.call("engine::triggers::list", json!({})).await.to_string();
    for kind in contract["triggers"].as_array().unwrap() {
        let name = kind["name"].as_str().unwrap();
        assert!(kinds.contains(&format!("\"{name}\"")), "{name} is not offered: {kinds}");
    }
    worker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_the_contracts_code_where_clients_look_for_it() {
    let bus = Bus::start().await;
    let dir = tempfile::tempdir().unwrap();
    let worker = InProcess::join(&bus.url, in_directory(dir.path())).await;
    let client = Client::when_ready(&bus.url).await;
    let session = client.session(json!({})).await;
    let cases = [
        ("session::append", said("s_nobody", "hi"), "session/not_found"),
        ("session::append", json!({"session_id": session}), "session/invalid_request"),
        ("session::append", json!({"session_id": 7}), "session/invalid_request"),
        ("session::append-many", json!({"session_id": session, "messages": []}), "session/empty_batch"),
        ("session::fork", json!({"session_id": session, "entry_id": "e"}), "session/entry_not_found"),
        ("session::list", json!({"cursor": "?"}), "session/invalid_cursor"),
        ("session::ensure", json!({"session_id": ""}), "session/invalid_request"),
    ];
    for (function, request, code) in cases {
        let said = client.try_call(function, request).await.expect_err(function);
        assert!(said.contains(&format!("{code}: ")), "{function}: {said}");
        assert!(said.starts_with(code), "the code is there for programs, too: {said}");
    }
    assert_eq!(client.call("session::get", json!({"session_id": "s_nobody"})).await, Value::Null);
    worker.leave().await;
}
