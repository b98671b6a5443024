//! A header is never a credential.

use banyan_server::{KeyStore, NewKey};
use serde_json::{Value, json};

use super::stage::{ID, actions, context, creating, lines, told};
use crate::wire::{Server, settings};

struct Stage {
    server: Server,
    a: String,
    b: String,
    reader: String,
}

async fn stage(settings: banyan_server::Settings) -> Stage {
    let dir = tempfile::tempdir().unwrap();
    let keys = KeyStore::open(dir.path());
    let key = |new: Value| {
        let new: NewKey = serde_json::from_value(new).unwrap();
        format!("authorization: Bearer {}\r\n", keys.create(new, 0).unwrap().1)
    };
    let a = key(json!({"name": "a", "scope": {"owner": "a"}}));
    let b = key(json!({"name": "b", "scope": {"owner": "b"}}));
    let reader = key(json!({"name": "reader", "scope": {"owner": "a"}, "read_only": true}));
    Stage { server: Server::start_in(dir, settings).await, a, b, reader }
}

fn secret() -> Value {
    let mut theirs = context(ID, 2);
    theirs["current_goal"] = json!("a secret of tenant a");
    theirs
}

#[tokio::test(flavor = "multi_thread")]
async fn given_another_tenants_context_when_it_is_named_then_one_gets_a_session_of_ones_own() {
    let Stage { server, a, b, reader } = stage(creating()).await;
    let first = server.get("/v1/sessions", &(a.clone() + &lines(&secret()))).await;
    let theirs = first.header("banyan-session-id").unwrap().to_owned();
    let mine = server.get("/v1/sessions", &format!("{b}ocp-context-id: {ID}\r\n")).await;
    assert_ne!(mine.header("banyan-session-id").unwrap(), theirs);
    let seen = told(&mine);
    assert_eq!((actions(&seen), seen["current_goal"].clone()), (vec![], Value::Null));
    // What one adds, the other does not see.
    server.get("/v1/sessions", &(b.clone() + &lines(&context(ID, 5)))).await;
    let still = server.get("/v1/sessions", &(a.clone() + &lines(&secret()))).await;
    assert_eq!(
        (actions(&told(&still)).len(), told(&still)["current_goal"].clone()),
        (2, json!("a secret of tenant a"))
    );
    assert_eq!(still.json()["sessions"].as_array().unwrap().len(), 1);
    // A key that may not write is told of the context and changes nothing.
    let head = server.store.head();
    let read = server.get("/v1/sessions", &(reader + &lines(&context(ID, 9)))).await;
    assert_eq!(read.header("banyan-ocp-ignored"), Some("ocp-session=read-only"));
    assert_eq!(actions(&told(&read)).len(), 2);
    assert_eq!(server.store.head(), head);
    let path = format!("/v1/sessions/{theirs}/ocp-context");
    assert_eq!(server.get(&path, &b).await.status, 404);
    assert_eq!(server.ask("PUT", &path, &b, &context(ID, 1).to_string()).await.status, 404);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_no_key_when_a_context_is_named_then_the_call_is_refused_like_any_other() {
    let Stage { server, a, b, .. } = stage(settings()).await;
    let with = lines(&secret());
    let refused = server.get("/v1/sessions", &with).await;
    assert_eq!(
        (refused.status, refused.header("ocp-session"), refused.header("banyan-ocp-ignored")),
        (401, None, None)
    );
    // A context that is named after a session leads only those there who reach it.
    let made = server.ask("POST", "/v1/sessions", &a, r#"{"title":"of a"}"#).await.json();
    let id = made["session_id"].as_str().unwrap();
    let name = format!("ocp-context-id: ocp-{}\r\n", id.trim_start_matches("s_"));
    let theirs = server.get("/v1/sessions", &(b + &name)).await;
    assert_eq!(
        (theirs.header("banyan-session-id"), theirs.header("banyan-ocp-ignored")),
        (None, Some("ocp-context-id=no-session"))
    );
    assert_eq!(server.get("/v1/sessions", &(a + &name)).await.header("banyan-session-id"), Some(id));
    server.stop().await;
}
