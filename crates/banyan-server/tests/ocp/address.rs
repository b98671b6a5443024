//! `/v1/sessions/{session_id}/ocp-context`, and what `/openapi.json` says of contexts.

use serde_json::json;

use super::stage::{ID, actions, context};
use crate::wire::{Server, settings};

#[tokio::test(flavor = "multi_thread")]
async fn given_a_session_when_contexts_are_put_into_it_then_they_are_merged() {
    let server = Server::start(settings()).await;
    server.ask("PUT", "/v1/sessions/mine", "", "{}").await;
    let path = "/v1/sessions/mine/ocp-context";
    let answer = server.ask("PUT", path, "", &context(ID, 3).to_string()).await;
    assert_eq!((answer.status, actions(&answer.json()).len()), (200, 3), "{answer:?}");
    let head = server.store.head();
    let again = server.ask("PUT", path, "", &context(ID, 3).to_string()).await;
    assert_eq!((again.json(), server.store.head()), (answer.json(), head));
    let mut newer = context(ID, 5);
    newer["last_updated"] = json!("2026-03-02T00:00:00Z");
    newer["current_goal"] = json!("sell the shop");
    newer["recent_changes"] = (0..12).map(|at| json!(at.to_string())).collect();
    let answer = server.ask("PUT", path, "", &newer.to_string()).await;
    assert_eq!(answer.header("banyan-ocp-ignored"), Some("recent_changes=more-than-10"));
    let now = answer.json();
    assert_eq!(
        (actions(&now).len(), &now["current_goal"], now["recent_changes"].as_array().unwrap().len()),
        (5, &json!("sell the shop"), 10)
    );
    assert_eq!(server.get(path, "").await.json(), now);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_what_cannot_be_put_when_it_is_tried_then_it_is_refused_with_the_reason() {
    let server = Server::start(settings()).await;
    server.ask("PUT", "/v1/sessions/one", "", "{}").await;
    server.ask("PUT", "/v1/sessions/two", "", "{}").await;
    let put = async |session: &str, body: &str| {
        server.ask("PUT", &format!("/v1/sessions/{session}/ocp-context"), "", body).await
    };
    for wrong in ["", "{", "[]", "{}", r#"{"context_id":7}"#] {
        assert_eq!(put("one", wrong).await.code(), "session/invalid_request", "{wrong}");
    }
    let first = context(ID, 1).to_string();
    assert_eq!(put("none", &first).await.code(), "session/not_found");
    assert_eq!(server.get("/v1/sessions/none/ocp-context", "").await.code(), "session/not_found");
    assert_eq!(put("one", &first).await.status, 200);
    assert_eq!(put("two", &first).await.code(), "session/conflict");
    assert_eq!(put("one", &context("ocp-ffffffff", 1).to_string()).await.code(), "session/conflict");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_the_document_when_it_is_read_then_it_advertises_contexts() {
    let server = Server::start(settings()).await;
    let document = server.get("/openapi.json", "").await.json();
    let info = &document["info"];
    assert_eq!((&info["x-ocp-enabled"], &info["x-ocp-context-aware"]), (&json!(true), &json!(true)));
    assert_eq!(info["x-ocp-version"], "1.0");
    assert!(info["x-ocp-agent-types"].as_array().is_some_and(|types| !types.is_empty()));
    let list = &document["paths"]["/v1/sessions"]["get"];
    assert_eq!(list["x-ocp-context"]["requires_context"], false);
    assert_eq!(list["responses"]["200"]["x-ocp-context-updated"], true);
    assert!(document["paths"]["/healthz"]["get"].get("x-ocp-context").is_none());
    assert!(
        document["paths"]["/v1/sessions/{session_id}/ocp-context"]["put"]["x-ocp-enhanced-response"].is_object()
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_session_when_it_is_exported_as_a_context_then_the_file_comes_back_as_nothing_new() {
    let server = Server::start(settings()).await;
    let mut file = context(ID, 4);
    file["session_id"] = json!("my-agent");
    let pretty = serde_json::to_string_pretty(&file).unwrap();
    let imported = server.ask("POST", "/v1/import", "", &pretty).await.json();
    assert_eq!(
        (&imported["format"], &imported["sessions"][0]["added"]),
        (&json!("ocp-context"), &json!(4)),
        "{imported}"
    );
    let head = server.store.head();
    let again = server.ask("POST", "/v1/import", "", &pretty).await.json();
    assert_eq!((&again["sessions"][0]["added"], &again["sessions"][0]["unchanged"]), (&json!(0), &json!(4)));
    assert_eq!((server.store.head(), &again["sessions"][0]["created"]), (head, &json!(false)));
    let id = again["sessions"][0]["session_id"].as_str().unwrap();
    let path = format!("/v1/sessions/{id}/export?to=ocp-context");
    let exported = Export::read(&server, &path).await;
    let mut plain = file.clone();
    plain.as_object_mut().unwrap().remove("session_id");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&exported).unwrap(), plain);
    let back = server.ask("POST", "/v1/import", "", &exported).await.json();
    assert_eq!((server.store.head(), &back["sessions"][0]["added"]), (head, &json!(0)));
    server.stop().await;
}

/// An export, which is sent in chunks.
struct Export;

impl Export {
    async fn read(server: &Server, path: &str) -> String {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = server.connect().await;
        stream.write_all(crate::wire::request("GET", path, "connection: close\r\n", "").as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let (begin, end) = (text.find("\r\n{").unwrap() + 2, text.rfind('}').unwrap() + 1);
        text[begin..end].to_owned()
    }
}
