//! What there is to ask is taken from `/openapi.json`, so that an address that is added cannot be forgotten here.

use banyan_server::{KeyStore, NewKey};
use serde_json::{Value, json};

use super::examples::{Example, example};
use super::tenants::{Furnished, all_of, furnish, listed, scope};
use crate::support::*;
use crate::wire::{Answer, Server, settings};

/// A server with a key for each of two tenants, and a session of one of them.
struct Stage {
    server: Server,
    /// The header with the key of the one who asks.
    mine: String,
    victim: Furnished,
}

const THEIRS: &str = "their-session";
const NOBODYS: &str = "nobody-at-all";

impl Stage {
    async fn set() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let keys = KeyStore::open(dir.path());
        let key = |name: &str, owner: Value| {
            let new = NewKey { name: name.to_owned(), ..serde_json::from_value(owner).unwrap() };
            format!("authorization: Bearer {}\r\n", keys.create(new, 0).unwrap().1)
        };
        let mine = key("mine", json!({"name": "", "scope": {"owner": "a"}}));
        key("theirs", json!({"name": "", "scope": {"owner": "b"}}));
        let server = Server::start_in(dir, settings()).await;
        let theirs = server.store.with_access(scope(&json!({"owner": "b"})));
        let victim = furnish(&theirs, THEIRS);
        Self { server, mine, victim }
    }

    /// What an answer says, with the session's id left open.
    async fn ask(&self, asked: &Asked, session: &str) -> String {
        let path = asked.path.replace("{session_id}", session);
        let body = asked.body.as_ref().map(Value::to_string).unwrap_or_default();
        let answer = match asked.verb.as_str() {
            "HEAD" => self.server.head(&path, &self.mine).await,
            verb => self.server.ask(verb, &path, &self.mine, &body).await,
        };
        let Answer { status, body, .. } = &answer;
        format!("{status} {}", String::from_utf8_lossy(body)).replace(session, "ID")
    }
}

/// Something to ask about a session.
struct Asked {
    verb: String,
    path: String,
    body: Option<Value>,
}

/// Everything that can be asked about a session, by its id.
async fn questions(stage: &Stage, session: &str) -> Vec<Asked> {
    let document = stage.server.get("/openapi.json", "").await.json();
    let it = Furnished { session: json!(session), ..stage.victim.clone() };
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (verb, operation) in methods.as_object().unwrap() {
            let ask = |path: String, body| Asked { verb: verb.to_uppercase(), path, body };
            if let Some(function) = path.strip_prefix("/v1/call/") {
                if let Example::OfSession(requests) = example(function, &it) {
                    found.extend(requests.into_iter().map(|request| ask(path.clone(), Some(request))));
                }
            } else if path.contains("{session_id}") {
                let name = operation["operationId"].as_str().unwrap();
                if let Some((query, body)) = of_resource(name, &it) {
                    let named = path
                        .replace("{entry_id}", it.message.as_str().unwrap())
                        .replace("{attachment_id}", it.shown.as_str().unwrap());
                    found.push(ask(format!("{named}{query}"), body));
                }
            }
        }
    }
    found
}

/// Query and body for an operation on a session. One that makes the session is told of elsewhere.
fn of_resource(operation: &str, it: &Furnished) -> Option<(String, Option<Value>)> {
    let body = match operation {
        "ensureSession" => return None,
        "getSession"
        | "deleteSession"
        | "getTree"
        | "listMessages"
        | "listTurns"
        | "tailMessages"
        | "getMessage"
        | "listAttachments"
        | "getAttachment"
        | "headAttachment"
        | "deleteAttachment"
        | "streamSessionEvents"
        | "getOcpContext"
        | "getHistory" => None,
        "exportSession" => return Some(("?to=session-log".to_owned(), None)),
        "getHistoryAtRoot" => return Some(("?stream=1".to_owned(), None)),
        "postHistory" | "postHistoryAtRoot" => Some(json!([{"role": "user", "interaction_id": "i",
            "timestamp": "2026-01-22T21:47:29.763430", "text_content": "in"}])),
        "rangeOfMessages" => return Some((format!("?entry_ids={}", it.message.as_str().unwrap()), None)),
        "putOcpContext" => Some(json!({"context_id": "ocp-a1b2c3d4"})),
        "updateSession" => Some(json!({"title": "taken"})),
        "setSessionStatus" => Some(json!({"status": "working"})),
        "appendMessages" => Some(json!({"message": user("in")})),
        "updateMessage" => Some(json!({"content": text("changed")})),
        "extendMessage" => Some(json!({"text": "!"})),
        "forkSession" | "setActiveLeaf" => Some(json!({"entry_id": it.message})),
        "putAttachment" => Some(json!({"name": "n", "mime": "text/plain", "data": base64(b"bytes")})),
        unknown => {
            panic!("`{unknown}` has no example here, so nobody knows whether it keeps tenants apart; add one")
        }
    };
    Some((String::new(), body))
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenants_session_is_at_every_address_like_one_that_does_not_exist() {
    let stage = Stage::set().await;
    let store = stage.server.store.clone();
    let before = all_of(&store, &stage.victim.session);
    let mut heard = Ears::open(&store);
    let theirs = questions(&stage, THEIRS).await;
    let nobodys = questions(&stage, NOBODYS).await;
    assert_eq!(theirs.len(), nobodys.len());
    assert!(theirs.len() > 40, "calls and resources are walked: {}", theirs.len());
    for (of_theirs, of_nobody) in theirs.iter().zip(&nobodys) {
        let (to_theirs, missing) = (stage.ask(of_theirs, THEIRS).await, stage.ask(of_nobody, NOBODYS).await);
        assert_eq!(to_theirs, missing, "{} {} {:?}", of_theirs.verb, of_theirs.path, of_theirs.body);
        let found_nothing = to_theirs.starts_with("200 {\"hits\":[],");
        let silent = to_theirs.starts_with("200 null") || to_theirs.contains("\"deleted\":false") || found_nothing;
        assert!(to_theirs.starts_with("404 ") || silent, "{} {}: {to_theirs}", of_theirs.verb, of_theirs.path);
    }
    assert_eq!(all_of(&store, &stage.victim.session), before);
    assert_eq!(heard.heard(), [], "nothing happened at all");
    assert_eq!(listed(&store), [THEIRS]);
    stage.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taken_id_cannot_be_had_and_a_scope_cannot_be_left() {
    let stage = Stage::set().await;
    let ask = async |verb: &str, path: &str, body: Value| {
        stage.server.ask(verb, path, &stage.mine, &body.to_string()).await
    };
    for (verb, path, body) in [
        ("PUT", "/v1/sessions/their-session", json!({})),
        ("POST", "/v1/sessions", json!({"session_id": THEIRS})),
        ("POST", "/v1/call/session::ensure", json!({"session_id": THEIRS})),
    ] {
        let answer = ask(verb, path, body).await;
        assert_eq!((answer.status, answer.code().as_str()), (404, "session/not_found"), "{verb} {path}");
    }
    let made = ask("POST", "/v1/sessions", json!({"metadata": {"x": 1}})).await.json();
    assert_eq!(made["meta"]["metadata"], json!({"x": 1, "owner": "a"}), "{made}");
    let own = format!("/v1/sessions/{}", made["session_id"].as_str().unwrap());
    let refused = ask("PATCH", &own, json!({"metadata": {"owner": "b"}})).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "auth/forbidden"));
    let refused = ask("POST", "/v1/sessions", json!({"metadata": {"owner": "b"}})).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "auth/forbidden"));
    assert_eq!(ask("PATCH", &own, json!({"metadata": {"y": 2}})).await.status, 200);
    let kept = stage.server.get(&own, &stage.mine).await.json();
    assert_eq!(kept["meta"]["metadata"], json!({"y": 2, "owner": "a"}), "{kept}");
    let page = stage.server.get("/v1/sessions", &stage.mine).await.json();
    assert_eq!(page["sessions"].as_array().unwrap().len(), 1);
    stage.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_everything_is_a_stream_of_ones_own() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let stage = Stage::set().await;
    for query in ["?after=0", "?after=0&session_id=their-session"] {
        let mut stream = stage.server.connect().await;
        let head = format!("GET /v1/events{query} HTTP/1.1\r\nhost: localhost\r\n{}\r\n", stage.mine);
        stream.write_all(head.as_bytes()).await.unwrap();
        // Theirs came first. When mine has arrived, so would have theirs.
        let request = json!({"session_id": "their-session-of-mine"}).to_string();
        stage.server.ask("POST", "/v1/call/session::ensure", &stage.mine, &request).await;
        let mut read = Vec::new();
        let seen = |read: &[u8], mark: &str| String::from_utf8_lossy(read).contains(mark);
        // A position of its own ends the past.
        let end = if query.contains("session_id") { "id: " } else { "their-session-of-mine" };
        while !seen(&read, end) {
            let mut some = [0; 4096];
            let count = tokio::time::timeout(crate::wire::SOON, stream.read(&mut some)).await.unwrap().unwrap();
            assert!(count > 0, "the stream ended: {}", String::from_utf8_lossy(&read));
            read.extend_from_slice(&some[..count]);
        }
        assert!(!seen(&read, "\"session_id\":\"their-session\""), "{}", String::from_utf8_lossy(&read));
        assert!(!seen(&read, "first"), "{}", String::from_utf8_lossy(&read));
    }
    stage.server.stop().await;
}
