//! Calls and subscriptions on one WebSocket.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::time::Duration;

use banyan::Options;
use banyan_server::{KeyStore, Limits, NewKey, Settings};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::deltas::Screen;
use crate::listening::*;

struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    async fn open(server: &Server, query: &str) -> Self {
        Self(connect_async(format!("ws://{}/v1/ws{query}", server.at)).await.unwrap().0)
    }

    async fn send(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    async fn message(&mut self) -> Message {
        tokio::time::timeout(PATIENCE, self.0.next()).await.expect("in time").expect("an open socket").unwrap()
    }

    async fn next(&mut self) -> Value {
        loop {
            match self.message().await {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn ask(&mut self, frame: Value) -> Value {
        self.send(frame).await;
        self.next().await
    }

    /// The code that the connection is closed with; whatever came before is left out.
    async fn closed(&mut self) -> u16 {
        loop {
            if let Message::Close(close) = self.message().await {
                return close.unwrap().code.into();
            }
        }
    }
}

#[test]
fn calls_and_several_subscriptions_share_a_connection() {
    let server = Server::new();
    server.session("a");
    server.wait(async {
        let mut client = Client::open(&server, "").await;
        let created = client.ask(json!({"id": 1, "call": "session::ensure", "request": {"session_id": "b"}})).await;
        assert_eq!((&created["id"], &created["response"]["created"]), (&json!(1), &json!(true)));
        let subscribed = client.ask(json!({"id": "all", "subscribe": {"after": "0", "types": null, "deltas": null}})).await;
        assert_eq!(subscribed, json!({"id": "all", "subscribed": true}));
        for session in ["a", "b"] {
            let frame = client.next().await;
            assert_eq!((&frame["subscription"], &frame["event"]), (&json!("all"), &json!("session::created")));
            assert_eq!(frame["data"]["session_id"], session);
            assert_eq!(frame["position"].as_str().unwrap().len(), 19);
        }
        let asked = json!({"types": ["session::message-added"], "session_id": "b", "roles": ["assistant"], "metadata": {}});
        assert_eq!(client.ask(json!({"id": 2, "subscribe": asked})).await, json!({"id": 2, "subscribed": true}));
        let append = json!({"session_id": "b", "message": assistant("x")});
        client.send(json!({"id": 3, "call": "session::append", "request": append})).await;
        let mut came = HashMap::new();
        for _ in 0..3 {
            let frame = client.next().await;
            came.insert(frame.get("subscription").or(frame.get("id")).unwrap().to_string(), frame);
        }
        let entry = &came["3"]["response"]["entry_id"];
        assert_eq!(came["2"]["data"]["entry_id"], *entry);
        assert_eq!(came["2"]["data"], came["\"all\""]["data"]);
        assert_eq!(came["2"]["position"], came["\"all\""]["position"]);
        assert_eq!(client.ask(json!({"id": 4, "unsubscribe": 2})).await, json!({"id": 4, "unsubscribed": true}));
        server.append("b", "y");
        server.append("b", "z");
        for _ in 0..2 {
            assert_eq!(client.next().await["subscription"], "all");
        }
        let refused = client.ask(json!({"id": 5, "unsubscribe": 2})).await;
        assert_eq!((&refused["id"], &refused["error"]["status"]), (&json!(5), &json!(400)));
    });
}

#[test]
fn what_is_not_understood_is_refused_and_the_connection_stays() {
    let server = Server::new();
    server.wait(async {
        let mut client = Client::open(&server, "").await;
        let bad = [
            ("{", Value::Null),
            ("[]", Value::Null),
            ("{}", Value::Null),
            (r#"{"id":null,"call":"session::list"}"#, Value::Null),
            (r#"{"id":{},"call":"session::list"}"#, Value::Null),
            (r#"{"id":1}"#, json!(1)),
            (r#"{"id":1,"call":7}"#, json!(1)),
            (r#"{"id":1,"cal":"session::list"}"#, json!(1)),
            (r#"{"id":1,"call":"session::list","unsubscribe":1}"#, json!(1)),
            (r#"{"id":1,"call":"session::list","request":[]}"#, json!(1)),
            (r#"{"id":"x","subscribe":{"typ":[]}}"#, json!("x")),
            (r#"{"id":"x","subscribe":[]}"#, json!("x")),
            (r#"{"id":"x","subscribe":{"types":["nothing"]}}"#, json!("x")),
            (r#"{"id":"x","subscribe":{"roles":["robot"]}}"#, json!("x")),
            (r#"{"id":"x","subscribe":{"snapshot":true}}"#, json!("x")),
            (r#"{"id":"x","unsubscribe":"y"}"#, json!("x")),
        ];
        for (text, id) in bad {
            client.0.send(Message::text(text)).await.unwrap();
            let answer = client.next().await;
            assert_eq!(
                (&answer["id"], &answer["error"]["code"]),
                (&id, &json!("session/invalid_request")),
                "{text}"
            );
        }
        client.0.send(Message::binary(vec![1, 2])).await.unwrap();
        assert_eq!(client.next().await["error"]["status"], 400);
        let refused = client.ask(json!({"id": 1, "call": "session::nothing"})).await;
        assert_eq!(refused["error"]["code"], "call/unknown_function");
        let refused = client.ask(json!({"id": 1, "subscribe": {"after": "0000000000ff-000000"}})).await;
        assert_eq!(refused["error"]["code"], "session/invalid_cursor");
        let refused = client.ask(json!({"id": 1, "subscribe": {"session_id": "nobody", "snapshot": true}})).await;
        assert_eq!(refused["error"]["code"], "session/not_found");
        assert_eq!(client.ask(json!({"id": 1, "subscribe": {}})).await, json!({"id": 1, "subscribed": true}));
        assert_eq!(client.ask(json!({"id": 1, "subscribe": {}})).await["error"]["status"], 400);
        let listed = client.ask(json!({"id": 9, "call": "session::list"})).await;
        assert_eq!((&listed["id"], &listed["response"]["sessions"]), (&json!(9), &json!([])));
    });
}

#[test]
fn many_calls_at_once_are_all_answered() {
    let server = Server::new();
    server.session("s");
    server.wait(async {
        let (mut out, mut back) = Client::open(&server, "").await.0.split();
        const CALLS: usize = 500;
        let sending = tokio::spawn(async move {
            for id in 0..CALLS {
                let request = json!({"session_id": "s", "message": assistant(&id.to_string())});
                let frame = json!({"id": id, "call": "session::append", "request": request});
                out.send(Message::text(frame.to_string())).await.unwrap();
            }
            out
        });
        let mut answered = Vec::new();
        while answered.len() < CALLS {
            let Message::Text(text) = back.next().await.unwrap().unwrap() else { continue };
            let answer: Value = serde_json::from_str(&text).unwrap();
            assert!(answer["response"]["entry_id"].is_string(), "{answer}");
            answered.push(answer["id"].as_u64().unwrap());
        }
        answered.sort_unstable();
        assert_eq!(answered, (0..CALLS as u64).collect::<Vec<_>>());
        drop(sending.await.unwrap());
    });
}

#[test]
fn a_subscription_has_snapshot_deltas_and_resume() {
    let server = Server::new();
    server.session("s");
    let entry = server.append("s", "one ");
    server.wait(async {
        let mut client = Client::open(&server, "").await;
        let asked = json!({"session_id": "s", "snapshot": true, "deltas": true});
        client.ask(json!({"id": 1, "subscribe": asked})).await;
        let mut screen = Screen::default();
        let mut events = Vec::new();
        let mut last = Value::Null;
        for word in ["", "two ", "three "] {
            if !word.is_empty() {
                server.extend("s", &entry, word);
            }
            loop {
                let frame = client.next().await;
                let event = frame["event"].as_str().unwrap().to_owned();
                screen.take(&event, &frame["data"]);
                let over = ["banyan::snapshot-end", "banyan::delta"].contains(&event.as_str());
                assert_eq!(frame.get("position").is_some(), over, "{frame}");
                last = frame["position"].clone();
                events.push(event);
                if over {
                    break;
                }
            }
        }
        assert_eq!(
            events,
            [
                "session::created",
                "session::message-added",
                "banyan::snapshot-end",
                "banyan::delta",
                "banyan::delta"
            ]
        );
        let (_, message) = screen.messages.values().next().unwrap();
        assert_eq!(message["content"][0]["text"], "one two three ");
        server.extend("s", &entry, "four");
        client.ask(json!({"id": 2, "unsubscribe": 1})).await;
        let mut back = Client::open(&server, "").await;
        back.ask(json!({"id": 1, "subscribe": {"session_id": "s", "after": last, "deltas": true}})).await;
        let frame = back.next().await;
        assert_eq!(frame["event"], "session::message-updated", "the whole message comes first on a connection");
        assert_eq!(frame["data"]["message"]["content"][0]["text"], "one two three four");
    });
}

#[test]
fn a_socket_that_does_not_read_lags_and_others_go_on() {
    let server = Server::with(Options { subscriber_events: 16, ..Options::default() }, settings());
    server.session("s");
    let large = "x".repeat(1 << 20);
    const WRITES: usize = 40;
    server.wait(async {
        let mut slow = Client::open(&server, "").await;
        let mut quick = Client::open(&server, "").await;
        for client in [&mut slow, &mut quick] {
            client.ask(json!({"id": 1, "subscribe": {}})).await;
        }
        for _ in 0..WRITES {
            server.append("s", &large);
            assert_eq!(quick.next().await["event"], "session::message-added");
        }
        let mut heard = 0;
        let last = loop {
            let frame = slow.next().await;
            if frame["event"] != "session::message-added" {
                break frame;
            }
            heard += 1;
        };
        assert_eq!(last, json!({"subscription": 1, "event": "banyan::lagged", "data": {}}));
        assert!((16..WRITES).contains(&heard), "{heard}");
        assert_eq!(slow.ask(json!({"id": 1, "subscribe": {}})).await["subscribed"], true, "its id is free again");
    });
}

#[test]
fn a_subscription_can_end_before_it_has_begun() {
    let server = Server::new();
    server.session("s");
    server.wait(async {
        let mut client = Client::open(&server, "").await;
        for round in 0..50 {
            let asked = json!({"after": "0", "session_id": "s"});
            // Both arrive together.
            for frame in [json!({"id": "s", "subscribe": asked}), json!({"id": round, "unsubscribe": "s"})] {
                client.0.feed(Message::text(frame.to_string())).await.unwrap();
            }
            client.0.flush().await.unwrap();
            assert_eq!(client.next().await, json!({"id": "s", "subscribed": true}));
            // What came between is told when both were far enough apart.
            let mut answer = client.next().await;
            while answer.get("subscription").is_some() {
                answer = client.next().await;
            }
            assert_eq!(answer, json!({"id": round, "unsubscribed": true}));
        }
        // One that cannot be opened is refused, and then it is not there either.
        client.send(json!({"id": "n", "subscribe": {"session_id": "nobody", "snapshot": true}})).await;
        client.send(json!({"id": 1, "unsubscribe": "n"})).await;
        assert_eq!(client.next().await["error"]["code"], "session/not_found");
        assert_eq!(client.next().await["id"], 1);
        server.append("s", "x");
        let listed = client.ask(json!({"id": 9, "call": "session::list"})).await;
        assert_eq!(listed["id"], 9, "nobody is told any more");
    });
}

#[test]
fn an_id_is_free_at_once_when_its_subscription_has_lagged() {
    let server = Server::with(Options { subscriber_events: 1, ..Options::default() }, settings());
    server.session("s");
    server.wait(async {
        let mut client = Client::open(&server, "").await;
        // Commits with more events than the queue holds.
        let many: Vec<Value> = (0..64).map(|_| assistant("x")).collect();
        let append = json!({"session_id": "s", "messages": many});
        let append = json!({"id": 2, "call": "session::append-many", "request": append});
        for _ in 0..30 {
            client.send(json!({"id": 1, "subscribe": {}})).await;
            let mut answer = client.next().await;
            while answer["id"] == 2 {
                answer = client.next().await;
            }
            assert_eq!(answer, json!({"id": 1, "subscribed": true}));
            client.send(append.clone()).await;
            loop {
                let frame = client.next().await;
                if frame["event"] == "banyan::lagged" {
                    break;
                }
                // It may have kept up.
                if frame["id"] == 2 {
                    client.send(append.clone()).await;
                }
            }
        }
    });
}

#[test]
fn subscribing_counts_as_asking() {
    let limits = Limits { requests_per_second: Some(1), ..Limits::default() };
    let server = Server::with(Options::default(), Settings { limits, ..settings() });
    server.wait(async {
        let mut client = Client::open(&server, "").await;
        for id in 0.. {
            let answer =
                client.ask(json!({"id": id, "subscribe": {"session_id": "nobody", "snapshot": true}})).await;
            match answer["error"]["code"].as_str().unwrap() {
                "rate/limited" => break,
                code => assert_eq!((code, id < 10_000), ("session/not_found", true)),
            }
        }
    });
}

#[test]
fn limits_are_said_clearly() {
    let limits =
        Limits { subscriptions: 3, subscriptions_per_socket: 2, body_bytes: 1 << 16, ..Limits::default() };
    let server = Server::with(Options::default(), Settings { limits, ..settings() });
    server.wait(async {
        let mut client = Client::open(&server, "").await;
        for id in [1, 2] {
            assert_eq!(client.ask(json!({"id": id, "subscribe": {}})).await["subscribed"], true);
        }
        let refused = client.ask(json!({"id": 3, "subscribe": {}})).await;
        assert_eq!(refused["error"]["code"], "events/too_many_subscriptions");
        let mut other = Client::open(&server, "").await;
        assert_eq!(other.ask(json!({"id": 1, "subscribe": {}})).await["subscribed"], true);
        assert_eq!(other.ask(json!({"id": 2, "subscribe": {}})).await["error"]["status"], 503);
        client.ask(json!({"id": 4, "unsubscribe": 1})).await;
        while other.ask(json!({"id": 2, "subscribe": {}})).await.get("error").is_some() {}
        let large = json!({"id": 1, "call": "session::create", "request": {"title": "x".repeat(1 << 16)}});
        client.send(large).await;
        assert_eq!(client.closed().await, 1009);
        assert!(server.store.head().0 == 0, "nothing was created");
    });
}

#[test]
fn a_quiet_socket_is_pinged() {
    let server =
        Server::with(Options::default(), Settings { keep_alive: Duration::from_millis(20), ..settings() });
    server.wait(async {
        let mut client = Client::open(&server, "").await;
        for _ in 0..3 {
            assert!(matches!(client.message().await, Message::Ping(_)));
        }
    });
}

#[test]
fn a_socket_is_closed_with_1008_when_its_key_is_removed() {
    let server = Server::new();
    let keys = KeyStore::open(server.dir.path());
    let (key, shown) = keys.create(NewKey { name: "one".to_owned(), ..NewKey::default() }, 1).unwrap();
    keys.create(NewKey { name: "other".to_owned(), ..NewKey::default() }, 1).unwrap();
    server.wait(async {
        // The server looks for new keys now and then.
        let refused = loop {
            if let Err(refused) = connect_async(format!("ws://{}/v1/ws", server.at)).await {
                break refused;
            }
        };
        assert!(matches!(refused, Error::Http(answer) if answer.status() == 401));
        let mut client = Client::open(&server, &format!("?access_token={shown}")).await;
        client.ask(json!({"id": 1, "subscribe": {}})).await;
        keys.remove(&key.id).unwrap();
        assert_eq!(client.closed().await, 1008);
    });
}

#[test]
fn a_socket_is_closed_with_1001_when_the_server_stops() {
    // Nothing else wakes the socket in the meantime.
    let mut server = Server::with(Options::default(), Settings { keep_alive: PATIENCE * 2, ..settings() });
    server.session("s");
    let mut client = server.wait(Client::open(&server, ""));
    server.wait(client.ask(json!({"id": 1, "subscribe": {}})));
    for _ in 0..5 {
        server.append("s", "x");
    }
    let stopped = server.begin_to_stop();
    server.wait(async {
        for _ in 0..5 {
            assert_eq!(client.next().await["event"], "session::message-added");
        }
        assert_eq!(client.closed().await, 1001);
        stopped.await.unwrap();
    });
    assert!(std::net::TcpStream::connect(server.at).is_err(), "nobody is let in any more");
}

#[test]
fn a_client_that_closes_is_told_that_the_server_closes_too() {
    let server = Server::new();
    server.wait(async {
        let mut client = Client::open(&server, "").await;
        client.ask(json!({"id": 1, "subscribe": {}})).await;
        let close = CloseFrame { code: 1000.into(), reason: "done".into() };
        client.0.send(Message::Close(Some(close))).await.unwrap();
        assert_eq!(client.closed().await, 1000);
        assert!(!matches!(client.0.next().await, Some(Ok(_))));
    });
}

#[test]
fn whoever_does_not_speak_the_protocol_is_told_so() {
    // Text that is not UTF-8; a reserved opcode; a frame without a mask.
    let cases: [(&[u8], u16); 3] =
        [(&[0x81, 0x81, 0, 0, 0, 0, 0xff], 1007), (&[0x83, 0x80, 0, 0, 0, 0], 1002), (&[0x81, 0x01, b'x'], 1002)];
    let server = Server::new();
    for (frame, code) in cases {
        let mut stream = std::net::TcpStream::connect(server.at).unwrap();
        let head = format!(
            "GET /v1/ws HTTP/1.1\r\nhost: {}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            server.at
        );
        stream.write_all(&[head.as_bytes(), frame].concat()).unwrap();
        let mut told = Vec::new();
        stream.read_to_end(&mut told).unwrap();
        let end = told.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        assert_eq!((told[end], u16::from_be_bytes([told[end + 2], told[end + 3]])), (0x88, code));
    }
}

#[test]
fn an_ordinary_request_is_told_to_upgrade() {
    let server = Server::new();
    assert_eq!(server.refused("/v1/ws"), (426, "http/not_a_websocket".to_owned()));
}
