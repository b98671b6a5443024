//! What the worker offers, and how it says no.

use serde_json::{Value, json};

use crate::contract::compare::{Comparison, compare};
use crate::support::{Bus, Client, InProcess, eventually, in_directory, said};

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
async fn a_function_has_its_schemas_as_text_while_it_is_called_often() {
    let bus = Bus::start().await;
    let dir = tempfile::tempdir().unwrap();
    let worker = InProcess::join(&bus.url, in_directory(dir.path())).await;
    let client = Client::when_ready(&bus.url).await;
    let session = client.session(json!({})).await;
    let told = async |function: &str| {
        let info = client.call("engine::functions::info", json!({"function_id": function})).await;
        ["request_schema", "response_schema"].map(|schema| info[schema].clone())
    };
    let plainly = told("session::append").await;
    assert_eq!(plainly[0]["properties"]["message"]["description"], "The message to append.");

    let as_text = eventually("schemas are told as text", async || {
        let calls = (0..50).map(|n| client.call("session::append", said(&session, &n.to_string())));
        futures_util::future::join_all(calls).await;
        Some(told("session::append").await).filter(|now| *now != plainly)
    })
    .await;
    for (text, plain) in as_text.iter().zip(&plainly) {
        assert_eq!(text["type"], plain["type"]);
        assert!(text["description"].as_str().is_some_and(|text| text.contains("$comment")), "{text}");
        let schema: Value = serde_json::from_str(text["$comment"].as_str().unwrap()).unwrap();
        assert_eq!(schema, *plain, "nothing is left out");
    }
    assert!(told("session::list").await[0]["properties"].is_object(), "others are told as before");

    let again = async || (told("session::append").await == plainly).then_some(());
    eventually("everything is told plainly again", again).await;
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
