//! Headers in, headers out.

use serde_json::{Value, json};

use super::stage::{ID, actions, context, creating, lines, told};
use crate::wire::{Server, settings};

const LIST: &str = "/v1/sessions";

#[tokio::test(flavor = "multi_thread")]
async fn given_a_new_context_when_the_server_may_not_create_then_the_call_goes_on_and_nothing_begins() {
    let server = Server::start(settings()).await;
    let answer = server.get(LIST, &lines(&context(ID, 2))).await;
    assert_eq!((answer.status, answer.json()["sessions"].clone()), (200, json!([])));
    assert_eq!(answer.header("banyan-ocp-ignored"), Some("ocp-context-id=no-session"));
    assert_eq!(answer.header("ocp-session"), None);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_new_context_when_the_server_may_create_then_a_session_begins_once() {
    let server = Server::start(creating()).await;
    let given = context(ID, 3);
    let first = server.get(LIST, &lines(&given)).await;
    let session = first.json()["sessions"][0].clone();
    assert_eq!((&session["title"], &session["metadata"]["ocp.context_id"]), (&json!("mend the shop"), &json!(ID)));
    assert_eq!(first.header("banyan-session-id"), session["session_id"].as_str());
    assert_eq!(first.header("ocp-context-id"), Some(ID));
    assert_eq!(first.header("ocp-version"), Some("1.0"));
    assert_eq!(first.header("banyan-ocp-ignored"), None);
    assert_eq!(actions(&told(&first)), ["step_0", "step_1", "step_2"]);
    let head = server.store.head();
    let again = server.get(LIST, &lines(&given)).await;
    assert_eq!(actions(&told(&again)), ["step_0", "step_1", "step_2"]);
    // What an answer carries is sent back by clients that follow it.
    let echoed = server.get(LIST, &lines(&told(&again))).await;
    assert_eq!(told(&echoed), told(&again));
    assert_eq!(server.store.head(), head, "nothing was written");
    let more = server.get(LIST, &lines(&context(ID, 5))).await;
    assert_eq!(actions(&told(&more)).len(), 5);
    let meta = server.get(LIST, "").await.json();
    assert_eq!(meta["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(meta["sessions"][0]["message_count"], 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_many_calls_at_once_when_the_context_is_new_then_one_session_begins() {
    let server = Server::start(creating()).await;
    let given = lines(&context(ID, 4));
    let calls = (0..16).map(|_| server.get("/v1/sessions?limit=1", &given));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(actions(&told(&answer)).len(), 4);
    }
    assert_eq!(server.get(LIST, "").await.json()["sessions"].as_array().unwrap().len(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_conversation_when_calls_bring_contexts_then_its_leaf_stays_and_its_calls_are_actions() {
    let server = Server::start(creating()).await;
    let first = server.get(LIST, &lines(&context(ID, 1))).await;
    let path = format!("/v1/sessions/{}/messages", first.header("banyan-session-id").unwrap());
    let user =
        json!({"message": {"role": "user", "content": [{"type": "text", "text": "hello"}], "timestamp": 1}});
    let answer = server.ask("POST", &path, &lines(&context(ID, 2)), &user.to_string()).await;
    let leaf = answer.json()["entry_id"].clone();
    let call = json!({"expected_leaf": leaf, "message": {"role": "assistant", "model": "m", "provider": "p",
        "stop_reason": "function_call", "timestamp": 1_772_400_000_000_i64, "content": [{"type": "function_call", "id": "c",
        "function_id": "fetch", "arguments": {"password": "hunter2", "page": 7}}]}});
    let answer = server.ask("POST", &path, &lines(&context(ID, 6)), &call.to_string()).await;
    assert!(answer.status < 300, "{answer:?}");
    let context_now = told(&answer);
    assert_eq!(actions(&context_now).last().unwrap(), "tool_call:fetch");
    assert_eq!(actions(&context_now).len(), 7);
    let parameters = &context_now["history"][6]["metadata"]["parameters"];
    assert_eq!(parameters, &json!({"password": "[redacted:named-secret]", "page": 7}));
    // The client's own copy of that action is known for ours.
    let head = server.store.head();
    assert_eq!(actions(&told(&server.get(&path, &lines(&context_now)).await)).len(), 7);
    assert_eq!(server.store.head(), head);
    let page = server.get(&path, "").await.json();
    assert_eq!(page["messages"].as_array().unwrap().len(), 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_more_actions_than_a_header_holds_when_they_are_brought_in_parts_then_all_are_kept_and_counted() {
    let server = Server::start(creating()).await;
    let whole = context(ID, 900);
    let mut last = None;
    for part in whole["history"].as_array().unwrap().chunks(90) {
        let mut given = whole.clone();
        given["history"] = Value::from(part.to_vec());
        last = Some(server.get(LIST, &lines(&given)).await);
    }
    let (answer, now) = (last.as_ref().unwrap(), told(last.as_ref().unwrap()));
    let sent = actions(&now).len();
    assert_eq!(now["session"]["history_total"], 900);
    assert_eq!(now["session"]["history_dropped"], 900 - sent);
    assert_eq!(actions(&now).last().unwrap(), "step_899");
    let path = format!("/v1/sessions/{}/ocp-context", answer.header("banyan-session-id").unwrap());
    let all = server.get(&path, "").await.json();
    assert_eq!(actions(&all).len(), 900);
    assert!(all["session"].get("history_dropped").is_none());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_session_of_its_own_when_a_call_names_the_context_that_it_is_told_as_then_it_is_found() {
    let server = Server::start(settings()).await;
    let made = server.ask("POST", LIST, "", r#"{"title":"Own"}"#).await.json();
    let id = made["session_id"].as_str().unwrap();
    let told_as = server.get(&format!("/v1/sessions/{id}/ocp-context"), "").await.json();
    let name = told_as["context_id"].as_str().unwrap();
    let answer = server.get(LIST, &format!("ocp-context-id: {name}\r\nocp-current-goal: another goal\r\n")).await;
    assert_eq!(answer.header("banyan-session-id"), Some(id));
    assert_eq!(told(&answer)["current_goal"], "another goal");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_pages_of_other_origins_when_they_may_call_then_they_may_send_and_see_contexts() {
    let app = "https://app.example";
    let server = Server::start(banyan_server::Settings { cors_origins: vec![app.to_owned()], ..creating() }).await;
    let asked = format!(
        "origin: {app}\r\naccess-control-request-method: GET\r\naccess-control-request-headers: ocp-session\r\n"
    );
    let preflight = server.ask("OPTIONS", LIST, &asked, "").await;
    let allowed = preflight.header("access-control-allow-headers").unwrap().to_owned();
    assert!(allowed.contains("ocp-context-id") && allowed.contains("ocp-session"), "{allowed}");
    let answer = server.get(LIST, &format!("origin: {app}\r\n{}", lines(&context(ID, 1)))).await;
    let exposed = answer.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("ocp-session") && exposed.contains("banyan-ocp-ignored"), "{exposed}");
    server.stop().await;
}
