//! `/metrics`.

use banyan_server::{KeyStore, NewKey};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::wire::{Answer, Server, request, settings, until};

#[tokio::test(flavor = "multi_thread")]
async fn what_happened_is_counted() {
    let server = Server::start(settings()).await;
    server.assert_serves().await;
    server.ask("POST", "/v1/call/session%3A%3Alist", "", "{}").await;
    server.ask("POST", "/v1/call/made::up", "", "{}").await;
    server.get("/made/up", "").await;
    let answer = server.get("/metrics", "").await;
    assert_eq!(answer.header("content-type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    let page = answer.text();
    for line in [
        r#"banyan_requests_total{method="POST",route="/v1/call/{function_id}",function="session::create",status="200"} 1"#,
        r#"banyan_requests_total{method="POST",route="/v1/call/{function_id}",function="session::list",status="200"} 1"#,
        r#"banyan_requests_total{method="POST",route="/v1/call/{function_id}",function="(unknown)",status="404"} 1"#,
        r#"banyan_requests_total{method="GET",route="(none)",function="",status="404"} 1"#,
        r#"banyan_request_duration_seconds_count{method="POST",route="/v1/call/{function_id}",function="session::create"} 1"#,
        "banyan_requests_in_flight 1",
        "banyan_received_bytes_total 6",
        "banyan_poisoned 0",
        "banyan_subscriptions 0",
        "banyan_keys 0",
        &format!("banyan_commits {}", server.store.head().0),
        &format!("banyan_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")),
        "# EOF",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\nin\n{page}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_keys_only_an_operator_sees_them() {
    let dir = tempfile::tempdir().unwrap();
    let keys = KeyStore::open(dir.path());
    let key = |new: serde_json::Value| keys.create(serde_json::from_value::<NewKey>(new).unwrap(), 0).unwrap().1;
    let operator = key(json!({"name": "operator"}));
    let scoped = key(json!({"name": "scoped", "scope": {"owner": "u_1"}}));
    let reader = key(json!({"name": "reader", "read_only": true}));
    let server = Server::start_in(dir, settings()).await;
    let status =
        async |path: &str, key: &str| server.get(path, &format!("authorization: Bearer {key}\r\n")).await.status;
    for path in ["/metrics", "/v1/keys"] {
        assert_eq!(server.get(path, "").await.status, 401);
        assert_eq!(status(path, &operator).await, 200);
        assert_eq!(status(path, &scoped).await, 403);
        assert_eq!(status(path, &reader).await, 403);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_counted_while_they_are_open() {
    let server = Server::start(settings()).await;
    let counted = async |most: usize| {
        server.get("/metrics", "").await.text().contains(&format!("banyan_connections {most}\n"))
    };
    // The one that asks is one of them.
    let (one, two) = (server.connect().await, server.connect().await);
    until("two and one are counted", async || counted(3).await).await;
    drop((one, two));
    until("they are gone", async || counted(1).await).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_counted_while_they_are_open() {
    let server = Server::start(settings()).await;
    let counted = async |line: &str| server.get("/metrics", "").await.text().lines().any(|found| found == line);
    let mut stream = server.connect().await;
    stream.write_all(request("GET", "/v1/events", "", "").as_bytes()).await.unwrap();
    assert_eq!(Answer::read(&mut stream).await.unwrap().status, 200);
    assert!(counted("banyan_subscriptions 1").await);
    assert!(counted("banyan_requests_in_flight 2").await);
    drop(stream);
    // The server notices when it has something to send.
    until("it is gone", async || {
        server.assert_serves().await;
        counted("banyan_subscriptions 0").await
    })
    .await;
    assert!(counted("banyan_requests_in_flight 1").await);
    server.stop().await;
}
