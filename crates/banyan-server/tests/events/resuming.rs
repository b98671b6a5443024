//! Positions: a subscriber that comes back misses nothing and sees nothing twice.

use banyan::Options;
use serde_json::json;

use crate::listening::*;

#[test]
fn a_subscriber_resumes_at_every_position_and_over_a_restart() {
    let server = Server::new();
    let mut live = server.open("/v1/events");
    let mut of_a = server.open("/v1/events?session_id=a");
    a_busy_life(&server);
    let last = server.append("a", "the end");
    let mut all = Vec::new();
    while all.last().is_none_or(|frame: &Frame| frame.json()["entry_id"] != last.as_str()) {
        all.extend(live.next());
    }
    assert!(all.len() > 25, "{}", all.len());
    assert!(ids(&all).windows(2).all(|two| two[0] < two[1]), "ids sort as strings, as events happened");
    let end = all.last().unwrap().position().to_owned();
    let own: Vec<Frame> = all.iter().filter(|frame| frame.json()["session_id"] == "a").cloned().collect();
    assert_eq!(of_a.up_to(&end), own);
    let gone = all.iter().position(|frame| frame.event == "session::deleted").unwrap();
    let mut server = server;
    for restarted in [false, true] {
        if restarted {
            server = server.restarted(Options::default());
        }
        for at in 0..=all.len() {
            let position = if at == 0 { "0" } else { all[at - 1].position() };
            // A life that has ended since is told by its end alone.
            let missed: Vec<Frame> = all[at..]
                .iter()
                .enumerate()
                .filter(|(n, frame)| frame.json()["session_id"] != "b" || at + n >= gone)
                .map(|(_, frame)| frame.clone())
                .collect();
            assert_eq!(server.after("/v1/events", position, &end), missed, "{restarted} after {position}");
            let missed: Vec<Frame> = own.iter().filter(|frame| frame.position() > position).cloned().collect();
            assert_eq!(
                server.after("/v1/sessions/a/events", position, &end),
                missed,
                "{restarted} after {position}"
            );
        }
    }
    let next = server.append("a", "after the restart");
    let mut back = Stream::open(server.at, "/v1/events", &[("Last-Event-ID", &end)]).unwrap();
    let frame = back.next().unwrap();
    assert_eq!(frame.json()["entry_id"], next.as_str());
    assert!(frame.position() > end.as_str(), "positions are not given twice");
}

#[test]
fn the_header_of_a_browser_is_newer_than_the_address() {
    let server = Server::new();
    server.session("s");
    for n in 0..5 {
        server.append("s", &n.to_string());
    }
    let all = server.open("/v1/sessions/s/events?after=0").take(6);
    let headers = [("Last-Event-ID", all[3].position())];
    for query in ["after=0", "snapshot=1", "snapshot=1&after=0"] {
        let path = format!("/v1/sessions/s/events?{query}");
        assert_eq!(Stream::open(server.at, &path, &headers).unwrap().take(2), all[4..], "{query}");
    }
}

#[test]
fn all_subscribers_of_the_same_are_sent_the_same_bytes() {
    let server = Server::new();
    server.session("s");
    let mut streams: Vec<Stream> = (0..2).map(|_| server.open("/v1/sessions/s/events")).collect();
    let large = "large ".repeat(2000);
    server.append("s", &large);
    let entry = server.append("s", "");
    for n in 0..30 {
        server.extend("s", &entry, &format!("{n} {}", &large[..n * 200]));
    }
    for stream in &mut streams {
        stream.take(32);
    }
    let replayed = &mut server.open("/v1/sessions/s/events?after=0");
    replayed.take(33);
    assert_eq!(streams[0].body, streams[1].body);
    // A replay has the session's creation before the same bytes. Where the past ends is another place.
    let frames = |stream: &Stream| {
        let text = String::from_utf8(stream.body.clone()).unwrap();
        text.split("\n\n").filter(|block| block.contains("data: ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(frames(replayed)[1..], frames(&streams[0]));
}

#[test]
fn a_position_alone_says_that_the_past_is_told_and_can_be_resumed_from() {
    let server = Server::new();
    server.session("s");
    server.append("s", "past");
    for path in ["/v1/events", "/v1/events?after=0", "/v1/sessions/s/events?type=session::deleted&after=0"] {
        let mut stream = server.open(path);
        while !String::from_utf8_lossy(&stream.body).lines().any(|line| line.starts_with("id: ")) {
            stream.some_bytes();
        }
        let past = if path == "/v1/events?after=0" { 2 } else { 0 };
        assert_eq!(stream.take(past).len(), past, "{path}");
        drop(stream);
    }
    let mut stream = server.open("/v1/events");
    let said = server.append("s", "heard");
    let heard = stream.next().unwrap();
    let upto = stream.told_upto.clone().unwrap();
    assert!(*upto < *heard.position());
    drop(stream);
    // Who comes back with it hears what came after, and nothing else.
    let again = Stream::open(server.at, "/v1/events", &[("Last-Event-ID", &upto)]).unwrap().take(1);
    assert_eq!((&again[0], &again[0].json()["entry_id"]), (&heard, &json!(said)));
}

#[test]
fn a_payload_is_one_line_however_it_was_sent() {
    let server = Server::new();
    server.session("s");
    let mut stream = server.open("/v1/sessions/s/events");
    let pretty =
        json!({"session_id": "s", "custom": {"custom_type": "note", "data": {"deep": [1, {"er": "\n"}]}}});
    let pretty = serde_json::to_string_pretty(&pretty).unwrap().replace('\n', "\r\n");
    banyan::block_on(server.store.call("session::append", pretty.as_bytes())).unwrap();
    let frame = stream.next().unwrap();
    assert_eq!(frame.json()["custom"]["data"], json!({"deep": [1, {"er": "\n"}]}));
    assert_eq!(server.open("/v1/sessions/s/events?after=0").take(2)[1], frame);
}

#[test]
fn who_comes_back_to_a_deleted_session_is_told() {
    let server = Server::new();
    server.session("gone");
    server.append("gone", "a");
    let seen = server.open("/v1/sessions/gone/events?after=0").take(2);
    server.append("gone", "b");
    server.call("delete", json!({"session_id": "gone"}));
    for position in ["0", seen[0].position(), seen[1].position()] {
        let mut back =
            Stream::open(server.at, "/v1/sessions/gone/events", &[("Last-Event-ID", position)]).unwrap();
        let told = back.until("session::deleted");
        assert_eq!(told.last().unwrap().json()["session_id"], "gone");
        let refused =
            server.refused(&format!("/v1/sessions/gone/events?after={}", told.last().unwrap().position()));
        assert_eq!(refused, (404, "session/not_found".to_owned()), "it was told already");
    }
    assert_eq!(server.refused("/v1/sessions/gone/events"), (404, "session/not_found".to_owned()));
    server.session("gone");
    let mut back = server.open(&format!("/v1/sessions/gone/events?after={}", seen[1].position()));
    assert_eq!(types(&back.take(2)), ["deleted", "created"]);
}

#[test]
fn a_position_older_than_what_is_kept_gets_resync_and_goes_on_from_there() {
    let server = Server::new();
    for id in ["a", "b"] {
        server.session(id);
        server.append(id, "early");
    }
    let early = server.open("/v1/events?after=0").take(4);
    let dir = server.stop();
    std::fs::remove_dir_all(dir.path().join(".banyan/journal")).unwrap();
    let server = Server::on(dir, Options::default(), settings());
    server.append("b", "what must be read again");
    let mut back = Stream::open(server.at, "/v1/events", &[("Last-Event-ID", early[0].position())]).unwrap();
    let told = back.rest();
    assert_eq!((types(&told), told[0].data.as_str()), (vec!["banyan::resync"], "{}"));
    let next = server.append("a", "after reading again");
    let mut back = Stream::open(server.at, "/v1/events", &[("Last-Event-ID", told[0].position())]).unwrap();
    assert_eq!(back.next().unwrap().json()["entry_id"], next.as_str());
    let path = format!("/v1/sessions/a/events?after={}", early[0].position());
    let own = server.open(&path).take(2);
    assert_eq!(own[0], early[1], "one session's own stream is still told whole");
    assert_eq!(own[1].json()["entry_id"], next.as_str());
}
