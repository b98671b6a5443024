//! Technical details are kept, and nobody but operators is sent them.

use banyan::Options;
use banyan_server::{KeyStore, NewKey};
use serde_json::{Value, json};

use super::samples::samples;
use crate::front_end::*;
use crate::listening::*;

/// A server with a key for everything, one for the tenant's sessions, and one that only reads.
struct Stage {
    server: Server,
    operator: String,
    tenant: String,
    reader: String,
}

impl Stage {
    fn set() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let keys = KeyStore::open(dir.path());
        let key = |new: Value| {
            let new: NewKey = serde_json::from_value(new).unwrap();
            format!("Bearer {}", keys.create(new, 0).unwrap().1)
        };
        let operator = key(json!({"name": "operator"}));
        let tenant = key(json!({"name": "tenant", "scope": {"owner": "a"}}));
        let reader = key(json!({"name": "reader", "read_only": true}));
        let server = Server::on(dir, Options::default(), settings());
        server.call("ensure", json!({"session_id": "s", "metadata": {"owner": "a"}}));
        Self { server, operator, tenant, reader }
    }

    fn get(&self, key: &str, path: &str) -> Answer {
        self.server.ask("GET", path, &[("authorization", key)], "")
    }

    fn open(&self, key: &str, path: &str, last: Option<&str>) -> Stream {
        let mut headers = vec![("authorization", key)];
        headers.extend(last.map(|last| ("last-event-id", last)));
        Stream::open(self.server.at, path, &headers).unwrap()
    }
}

const SECRET: &str = "technical_details";

#[test]
fn given_technical_details_when_anybody_but_an_operator_reads_then_they_are_at_no_address() {
    let stage = Stage::set();
    let written: String = samples().iter().map(Value::to_string).collect();
    assert!(written.contains(SECRET) && written.contains("raw_result"));
    for (who, key) in [("tenant", &stage.tenant), ("reader", &stage.reader)] {
        // Streams that are open when it is written.
        let history = "/sessions/s/history?stream=1";
        let mut live = stage.open(key, history, None);
        let ready = live.until("history::ready").last().unwrap().position().to_owned();
        let mut events = stage.open(key, "/v1/sessions/s/events", None);
        for sample in samples() {
            let headers = [("authorization", stage.tenant.as_str()), ("content-type", "application/json")];
            let posted = stage.server.ask("POST", "/sessions/s/history", &headers, &sample.to_string());
            assert!(matches!(posted.status, 200 | 409), "{posted:?}");
            assert!(!posted.text.contains(SECRET), "{who}");
        }
        stage.server.say("s", user("the end", 1));
        let saw = |stream: &mut Stream, mark: &str| {
            while !String::from_utf8_lossy(&stream.body).contains(mark) {
                stream.some_bytes();
            }
            String::from_utf8(stream.body.clone()).unwrap()
        };
        let mut seen = vec![
            ("live".to_owned(), saw(&mut live, "the end")),
            ("events".to_owned(), saw(&mut events, "the end")),
        ];
        let mut again = stage.open(key, history, Some(&ready));
        seen.push(("resumed".to_owned(), saw(&mut again, "history::ready")));
        let mut past = stage.open(key, "/v1/sessions/s/events?after=0", None);
        seen.push(("past".to_owned(), saw(&mut past, "the end")));
        let mut snapshot = stage.open(key, "/v1/sessions/s/events?snapshot=1", None);
        seen.push(("snapshot".to_owned(), saw(&mut snapshot, "banyan::snapshot-end")));

        let entries = stage.server.call("messages", json!({"session_id": "s", "limit": 500}))["messages"].clone();
        let ids: Vec<&str> =
            entries.as_array().unwrap().iter().map(|it| it["entry_id"].as_str().unwrap()).collect();
        let mut paths: Vec<String> = [
            "/sessions/s/history",
            "/v1/sessions/s/history?limit=500",
            "/v1/sessions/s/history?limit=2",
            "/sessions/s/history?technical_details=0",
            "/v1/sessions/s/messages?limit=500",
            "/v1/sessions/s/messages/tail?limit=500",
        ]
        .map(str::to_owned)
        .to_vec();
        paths.push(format!(
            "/v1/sessions/s/messages/range?from_entry_id={}&to_entry_id={}&limit=500",
            ids[0],
            ids[ids.len() - 1]
        ));
        paths.extend(ids.iter().map(|id| format!("/v1/sessions/s/messages/{id}")));
        for path in paths {
            let answer = stage.get(key, &path);
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            seen.push((path, answer.text));
        }
        for (what, text) in seen {
            assert!(!text.is_empty(), "{who} {what}");
            assert!(!text.contains(SECRET) && !text.contains("raw_result"), "{who} {what}");
        }
        // Nobody gets them by asking.
        for path in ["/sessions/s/history?technical_details=1", "/sessions/s/history?technical_details=1&stream=1"]
        {
            assert_eq!(stage.get(key, path).refused(), (403, "auth/forbidden".to_owned()), "{who} {path}");
        }
        stage.server.call("delete", json!({"session_id": "s"}));
        stage.server.call("ensure", json!({"session_id": "s", "metadata": {"owner": "a"}}));
    }
}

#[test]
fn given_an_operators_key_when_it_asks_for_technical_details_then_it_gets_them_and_otherwise_not() {
    let stage = Stage::set();
    let headers = [("authorization", stage.operator.as_str()), ("content-type", "application/json")];
    stage.server.ask("POST", "/sessions/s/history", &headers, &samples()[4].to_string());

    let asked = stage.get(&stage.operator, "/sessions/s/history?technical_details=1&limit=500");
    assert!(asked.text.contains(SECRET) && asked.text.contains("raw_result"));
    let link = stage.get(&stage.operator, "/sessions/s/history?technical_details=1&limit=1").link("prev").unwrap();
    assert!(link.ends_with("&technical_details=1"), "{link}");
    let mut stream = stage.open(&stage.operator, "/sessions/s/history?technical_details=1&stream=1", None);
    let frames = stream.until("history::ready");
    assert!(frames.iter().any(|frame| frame.data.contains(SECRET)));

    assert!(!stage.get(&stage.operator, "/sessions/s/history").text.contains(SECRET));
}

#[test]
fn given_a_foreign_session_when_its_history_is_asked_for_then_it_is_like_one_that_does_not_exist() {
    let stage = Stage::set();
    stage.server.call("ensure", json!({"session_id": "theirs", "metadata": {"owner": "b"}}));
    stage.server.say("theirs", user("hello", 1));
    for query in [
        "",
        "?limit=1",
        "?stream=1",
        "?stream=1&after=0",
        "?limit=1&cursor=eyJiZWZvcmUiOiJlIn0",
        "?since=2026-01-01T00:00:00Z",
    ] {
        for prefix in ["", "/v1"] {
            let ask = |id: &str| {
                let answer = stage.get(&stage.tenant, &format!("{prefix}/sessions/{id}/history{query}"));
                (answer.status, answer.text.replace(id, "ID"))
            };
            let theirs = ask("theirs");
            assert_eq!(theirs, ask("nobody"), "{prefix} {query}");
            assert_eq!(theirs.0, 404, "{prefix} {query}");
        }
    }
    let headers = [("authorization", stage.tenant.as_str()), ("if-none-match", "*")];
    assert_eq!(stage.server.ask("GET", "/sessions/theirs/history", &headers, "").status, 404);
    let post = |id: &str, query: &str| {
        let path = format!("/sessions/{id}/history{query}");
        let posted = stage.server.ask("POST", &path, &[("authorization", stage.tenant.as_str())], "[]");
        (posted.status, posted.text.replace(id, "ID"))
    };
    assert_eq!(post("theirs", ""), post("nobody", ""));
    // A taken id cannot be had.
    assert_eq!(post("theirs", "?create=1"), post("theirs", ""));
}
