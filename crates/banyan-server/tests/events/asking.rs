//! What can be asked for, and what is refused before a stream starts.

use std::time::Duration;

use banyan::Options;
use banyan_server::{KeyStore, Limits, NewKey, Settings};
use serde_json::json;

use crate::listening::*;

#[test]
fn a_stream_is_live_when_its_headers_have_arrived() {
    let server = Server::new();
    server.session("s");
    for path in ["/v1/events", "/v1/sessions/s/events", "/v1/events?after=0"] {
        let mut stream = server.open(path);
        for (name, value) in [
            ("content-type", "text/event-stream"),
            ("cache-control", "no-cache, no-transform"),
            ("x-accel-buffering", "no"),
        ] {
            assert_eq!(stream.header(name), Some(value));
        }
        let entry = server.append("s", "said at once");
        let frames = stream.until("session::message-added");
        let said = frames.iter().find(|frame| frame.json()["entry_id"] == entry.as_str());
        assert!(said.is_some() || path.contains("after"), "{path}: {frames:?}");
    }
}

#[test]
fn what_is_not_understood_is_refused_before_the_stream_starts() {
    let server = Server::new();
    server.session("s");
    for query in [
        "typ=session::created",
        "type=session::create",
        "type=",
        "type=session::created&type=nothing",
        "roles=user,robot",
        "roles=user,,assistant",
        "roles=user&type=session::deleted",
        "metadata=%7B",
        "metadata=%5B%5D",
        "metadata=null",
        "metadata=1",
        "metadata=",
        "deltas=2",
        "deltas=",
        "snapshot=yes",
        "session_id=s&session_id=s",
        "after=0&after=0",
        "Type=session::created",
        "session_id=%ff",
        "%ff=s",
    ] {
        for path in ["/v1/events", "/v1/sessions/s/events", "/v1/sessions/nobody/events"] {
            let refused = server.refused(&format!("{path}?{query}"));
            assert_eq!(refused, (400, "session/invalid_request".to_owned()), "{path}?{query}");
        }
    }
    for path in ["/v1/events?snapshot=1", "/v1/sessions/s/events?session_id=other", "/v1/sessions/%ff/events"] {
        assert_eq!(server.refused(path), (400, "session/invalid_request".to_owned()), "{path}");
    }
    for position in
        ["", "1", "x", "000000000001", "0000000000ff-000000", "000000000001-000009", "00000000000A-000000"]
    {
        for path in ["/v1/events", "/v1/sessions/s/events", "/v1/sessions/nobody/events"] {
            let refused = server.refused(&format!("{path}?after={position}"));
            assert_eq!(refused, (400, "session/invalid_cursor".to_owned()), "{path} after {position:?}");
            if !position.is_empty() {
                let refusal = Stream::open(server.at, path, &[("Last-Event-ID", position)]).err().unwrap();
                assert_eq!((refusal.status, &refusal.problem["code"]), (400, &json!("session/invalid_cursor")));
            }
        }
    }
}

#[test]
fn a_session_that_does_not_exist_has_no_stream() {
    let server = Server::new();
    for path in [
        "/v1/sessions/nobody/events",
        "/v1/sessions/nobody/events?snapshot=1",
        "/v1/sessions/nobody/events?after=0",
    ] {
        let refusal = Stream::open(server.at, path, &[]).err().unwrap();
        assert_eq!(refusal.status, 404, "{path}");
        assert_eq!(
            refusal.problem,
            json!({"type": "urn:banyan:problem:session/not_found", "title": "No such session", "status": 404,
                "detail": "there is no session `nobody`; create or ensure it first", "code": "session/not_found"}),
            "{path}"
        );
    }
}

#[test]
fn filters_say_which_events_come() {
    let server = Server::new();
    a_busy_life(&server);
    let last = server.append("b", "the last");
    let mut all = server.open("/v1/events?after=0");
    let mut frames = Vec::new();
    while frames.last().is_none_or(|frame: &Frame| frame.json()["entry_id"] != last.as_str()) {
        frames.push(all.next().unwrap());
    }
    let role = |frame: &Frame| frame.json()["message"]["role"].as_str().unwrap_or_default().to_owned();
    let of =
        |keep: &dyn Fn(&Frame) -> bool| -> Vec<Frame> { frames.iter().filter(|it| keep(it)).cloned().collect() };
    let is_message = |frame: &Frame| frame.event.starts_with("session::message");
    for (query, expected) in [
        ("", of(&|_| true)),
        ("&type=session::created", of(&|it| it.event == "session::created")),
        (
            "&type=session%3A%3Amessage-added&type=session::deleted",
            of(&|it| it.event == "session::message-added" || it.event == "session::deleted"),
        ),
        ("&session_id=a", of(&|it| it.json()["session_id"] == "a")),
        (
            "&type=session::created&session_id=a",
            of(&|it| it.event == "session::created" && it.json()["session_id"] == "a"),
        ),
        ("&roles=user", of(&|it| !is_message(it) || role(it) == "user")),
        (
            "&roles=user%2Cassistant&type=session::message-added",
            of(&|it| it.event == "session::message-added" && ["user", "assistant"].contains(&role(it).as_str())),
        ),
        ("&metadata=%7B%22owner%22%3A%20%22a%22%7D&session_id=a", of(&|it| it.json()["session_id"] == "a")),
        ("&metadata={%22owner%22:%22nobody%22}", Vec::new()),
    ] {
        // An event that every filter here lets through ends the reading.
        let mut stream = server.open(&format!("/v1/events?after=0{query}"));
        let told = stream.take(expected.len());
        assert_eq!(told, expected, "{query}");
    }
    let own: Vec<Frame> = of(&|it| it.json()["session_id"] == "a");
    assert_eq!(server.open("/v1/sessions/a/events?after=0").take(own.len()), own);
}

#[test]
fn a_quiet_stream_gets_comments() {
    let quick = Settings { keep_alive: Duration::from_millis(20), ..settings() };
    let server = Server::with(Options::default(), quick);
    server.session("s");
    let mut stream = server.open("/v1/events");
    let blocks =
        |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().split_terminator("\n\n").map(str::to_owned).collect();
    let mut begun: Vec<String> = Vec::new();
    while begun.len() < 5 {
        begun = blocks(stream.some_bytes());
    }
    // The second says where the stream stands.
    assert!(begun[1].starts_with("id: "), "{begun:?}");
    assert!(begun.iter().enumerate().all(|(at, block)| at == 1 || block == ":"), "{begun:?}");
    server.append("s", "still there");
    assert_eq!(types(&stream.take(1)), ["message-added"]);
}

#[test]
fn there_are_only_so_many_subscriptions() {
    let limits = Limits { subscriptions: 2, ..Limits::default() };
    let quick = Settings { limits, keep_alive: Duration::from_millis(10), ..settings() };
    let server = Server::with(Options::default(), quick);
    let first = server.open("/v1/events");
    let _second = server.open("/v1/events");
    let refusal = Stream::open(server.at, "/v1/events", &[]).err().unwrap();
    assert_eq!((refusal.status, &refusal.problem["code"]), (503, &json!("events/too_many_subscriptions")));
    drop(first);
    eventually("a place becomes free", || Stream::open(server.at, "/v1/events", &[]).is_ok());
}

#[test]
fn whoever_went_away_without_a_word_keeps_nobody_out() {
    let limits = Limits { subscriptions: 2, ..Limits::default() };
    let server = Server::with(Options::default(), Settings { limits, keep_alive: PATIENCE * 2, ..settings() });
    drop([server.open("/v1/events"), server.open("/v1/events")]);
    eventually("a place becomes free", || Stream::open(server.at, "/v1/events", &[]).is_ok());
}

#[test]
fn a_stream_needs_a_key_when_there_are_keys_and_ends_with_it() {
    let server = Server::new();
    server.session("s");
    let mut before = server.open("/v1/events");
    let keys = KeyStore::open(server.dir.path());
    let (key, shown) = keys.create(NewKey { name: "one".to_owned(), ..NewKey::default() }, 1).unwrap();
    let (_, other) = keys.create(NewKey { name: "other".to_owned(), ..NewKey::default() }, 1).unwrap();
    assert_eq!(before.rest(), [], "a stream that was open to everyone ends when there is a key");
    assert_eq!(server.refused("/v1/events"), (401, "auth/unauthenticated".to_owned()));
    let bearer = format!("Bearer {shown}");
    let mut streams = [
        Stream::open(server.at, "/v1/events", &[("authorization", bearer.as_str())]).unwrap(),
        server.open(&format!("/v1/events?access_token={shown}")),
    ];
    let mut stays = server.open(&format!("/v1/sessions/s/events?access_token={other}"));
    server.append("s", "before");
    for stream in &mut streams {
        assert_eq!(types(&stream.take(1)), ["message-added"]);
    }
    keys.remove(&key.id).unwrap();
    for stream in &mut streams {
        assert_eq!(stream.rest(), []);
    }
    server.append("s", "after");
    assert_eq!(types(&stays.take(2)), ["message-added", "message-added"]);
}
