//! Headers that are wrong. The call is answered as if they were not there, and they are counted.

use banyan_formats::ocp::encode;
use serde_json::{Value, json};

use super::stage::{ID, context, creating, lines, told};
use crate::wire::Server;

const LIST: &str = "/v1/sessions";

/// The samples of the formats' own tests: the headers that others' libraries and hands wrote.
fn sample(name: &str) -> Value {
    let path = format!("{}/../banyan-formats/tests/fixtures/ocp/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn lines_of(sample: &Value) -> String {
    let headers = sample["headers"].as_object().unwrap();
    headers.iter().map(|(name, value)| format!("{name}: {}\r\n", value.as_str().unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn given_wrong_headers_when_a_call_brings_them_then_it_goes_on_and_they_are_named_and_counted() {
    let server = Server::start(creating()).await;
    for (headers, ignored) in [
        (lines_of(&sample("edge_not_base64")), "ocp-session=not-base64"),
        (lines_of(&sample("edge_gzip_prefix_uppercase")), "ocp-session=not-base64"),
        (lines_of(&sample("edge_gzip_bomb_under_8k")), "ocp-session=inflates-too-far"),
        (lines_of(&sample("py_history1000_oversize")), "ocp-session=oversized"),
        (lines_of(&sample("edge_recent_changes_11")), "recent_changes=more-than-10"),
        (lines_of(&sample("edge_bad_date")), "created_at=not-a-time"),
        ("ocp-context-id: ../../etc/passwd\r\n".to_owned(), "ocp-context-id=malformed"),
        ("ocp-context-id: \r\n".to_owned(), "ocp-context-id=malformed"),
        ("ocp-session: e30=\r\n".to_owned(), ""),
        (format!("ocp-context-id: {ID}\r\nocp-session: e30=\r\nocp-session: e30\r\n"), "ocp-session=given-twice"),
        (format!("ocp-context-id: {ID}\r\nocp-user: \u{1}\r\n"), ""),
        (
            format!("ocp-context-id: ocp-ffffffff\r\n{}", &lines(&context(ID, 1))[30..]),
            "ocp-context-id=another-in-session",
        ),
    ] {
        let answer = server.get(LIST, &headers).await;
        if headers.contains('\u{1}') {
            // No header may have this, so there was no request.
            assert_eq!(answer.status, 400);
            continue;
        }
        assert_eq!(answer.status, 200, "{headers}");
        assert_eq!(answer.header("banyan-ocp-ignored").unwrap_or_default(), ignored, "{headers}");
    }
    let metrics = server.get("/metrics", "").await;
    for line in [
        r#"banyan_ocp_ignored_total{what="ocp-session",why="oversized"} 1"#,
        r#"banyan_ocp_ignored_total{what="ocp-session",why="not-base64"} 2"#,
        r#"banyan_ocp_ignored_total{what="ocp-session",why="inflates-too-far"} 1"#,
        r#"banyan_ocp_calls_total{outcome="created"} 1"#,
        r#"banyan_ocp_calls_total{outcome="unreadable"} 3"#,
    ] {
        assert!(metrics.text().lines().any(|found| found == line), "{line}\nin\n{}", metrics.text());
    }
    server.assert_serves().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_wrong_headers_when_the_call_itself_is_wrong_then_its_own_problem_is_the_answer() {
    let server = Server::start(creating()).await;
    let with = lines(&context(ID, 1));
    for (method, path, body) in [
        ("GET", "/v1/sessions/none", ""),
        ("POST", "/v1/call/made::up", "{}"),
        ("POST", "/v1/call/session::append", "{"),
    ] {
        let (plain, carrying) =
            (server.ask(method, path, "", body).await, server.ask(method, path, &with, body).await);
        assert_eq!((plain.status, plain.text()), (carrying.status, carrying.text()));
        assert_eq!(told(&carrying)["context_id"], ID);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_the_call_that_ends_the_session_when_it_is_answered_then_there_is_no_context() {
    let server = Server::start(creating()).await;
    let with = lines(&context(ID, 1));
    let first = server.get(LIST, &with).await;
    let path = format!("/v1/sessions/{}", first.header("banyan-session-id").unwrap());
    let answer = server.ask("DELETE", &path, &with, "").await;
    assert_eq!((answer.status, answer.header("ocp-session")), (200, None));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn given_a_context_of_secrets_when_it_is_told_then_they_stay_here() {
    let server = Server::start(creating()).await;
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let mut given = context(ID, 1);
    given["history"][0]["metadata"] = json!({"parameters": {"api_key": "abc-def-ghi", "note": key}});
    given["error_context"] = json!(format!("refused with {key}"));
    let answer = server.get(LIST, &format!("ocp-session: {}\r\n", encode(&given.to_string()))).await;
    let text = told(&answer).to_string();
    assert!(!text.contains("abc-def-ghi") && !text.contains(&key), "{text}");
    // What comes back without its secrets is still the same action.
    let again = server.get(LIST, &lines(&told(&answer))).await;
    assert_eq!(told(&again)["history"].as_array().unwrap().len(), 1);
    server.stop().await;
}
