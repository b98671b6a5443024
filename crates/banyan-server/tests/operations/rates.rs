//! How often a key may ask.

use banyan_server::{KeyStore, Limits, NewKey, Settings};

use crate::wire::{Server, settings};

fn limited(requests_per_second: u32) -> Settings {
    Settings {
        limits: Limits { requests_per_second: Some(requests_per_second), ..Limits::default() },
        ..settings()
    }
}

/// Asks until it is refused, and returns the refusal.
async fn refused(server: &Server, headers: &str) -> crate::wire::Answer {
    for _ in 0..10_000 {
        let answer = server.ask("POST", "/v1/call/session::list", headers, "{}").await;
        if answer.status != 200 {
            return answer;
        }
    }
    panic!("the limit was never reached");
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests_are_refused_with_the_time_to_wait() {
    let server = Server::start(limited(1)).await;
    let answer = refused(&server, "").await;
    assert_eq!((answer.status, answer.code().as_str()), (429, "rate/limited"));
    assert_eq!(answer.header("retry-after"), Some("1"));
    // Whether the server lives is not a question of rates.
    assert_eq!(server.get("/healthz", "").await.status, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_key_has_its_own_count() {
    let server = Server::start(limited(1_000_000)).await;
    let keys = KeyStore::open(server.data());
    let slow = NewKey { name: "slow".to_owned(), requests_per_second: Some(1), ..NewKey::default() };
    let (_, slow) = keys.create(slow, 1).unwrap();
    let (_, fast) = keys.create(NewKey { name: "fast".to_owned(), ..NewKey::default() }, 2).unwrap();
    let bearer = |key: &str| format!("authorization: Bearer {key}\r\n");
    crate::wire::until("the keys are known", async || server.get("/metrics", "").await.status == 401).await;
    assert_eq!(refused(&server, &bearer(&slow)).await.status, 429);
    let answer = server.ask("POST", "/v1/call/session::list", &bearer(&fast), "{}").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    server.stop().await;
}
