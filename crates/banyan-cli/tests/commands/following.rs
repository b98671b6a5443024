//! `banyan tail` on a server: live, through restarts, with nothing lost and nothing told twice.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Stdio;

use crate::common::served::Served;
use crate::common::{Place, user};
use serde_json::{Value, json};

#[test]
fn events_are_told_as_they_come_through_a_kill_and_a_stop_of_the_server() {
    let place = Place::new();
    let mut served = place.serve();
    place.ask(&served, &["call", "session::ensure", r#"{"session_id":"s"}"#]).ok();
    let mut following = place.follow(&served, &["s"]);
    assert_eq!(following.event()["type"], "session::created");

    let mut told = Vec::new();
    for round in 0..3 {
        // Some while it listens, some while it is cut off.
        for number in 0..3 {
            say(&place, &served, &format!("{round}.{number}"));
        }
        told.extend((0..3).map(|_| text(&following.event())));
        let url = served.url.clone();
        match round {
            0 => drop(served),
            _ => assert_eq!(served.stop("TERM"), Some(0)),
        }
        let request = json!({"session_id": "s", "message": user(&format!("{round}.away"))});
        place.call("session::append", &request);
        served = place.serve_again(&url);
        told.push(text(&following.event()));
    }
    say(&place, &served, "end");
    told.push(text(&following.event()));

    let said: Vec<String> = (0..3)
        .flat_map(|round| ["0", "1", "2", "away"].map(|number| format!("{round}.{number}")))
        .chain(["end".to_owned()])
        .collect();
    assert_eq!(told, said);
    let err = following.end();
    assert_eq!(err.matches("is lost").count(), 3, "{err}");
    assert_eq!(err.matches("again\n").count(), 6, "{err}");
}

#[test]
fn what_happens_while_nobody_listens_is_told_even_when_nothing_was_told_before() {
    let place = Place::new();
    place.session("s", "", &["past"]);
    let served = place.serve();
    let url = served.url.clone();
    let mut following = place.follow(&served, &["--after", "now"]);
    assert_eq!(following.complaint(), format!("banyan: following {url}"));
    drop(served);
    place.call("session::append", &json!({"session_id": "s", "message": user("away")}));
    let served = place.serve_again(&url);
    assert_eq!(text(&following.event()), "away");
    say(&place, &served, "live");
    assert_eq!(text(&following.event()), "live");
}

#[test]
fn a_snapshot_goes_on_as_a_stream() {
    let place = Place::new();
    place.session("s", "Now", &["one"]);
    let served = place.serve();
    let mut following = place.follow(&served, &["s", "--snapshot"]);
    let kinds: Vec<Value> = (0..3).map(|_| following.event()["type"].clone()).collect();
    assert_eq!(kinds, ["session::created", "session::message-added", "banyan::snapshot-end"]);
    say(&place, &served, "two");
    assert_eq!(text(&following.event()), "two");
    let url = served.url.clone();
    drop(served);
    let served = place.serve_again(&url);
    say(&place, &served, "three");
    assert_eq!(text(&following.event()), "three");
}

/// What another instance publishes is told at positions within the last commit, before the end of it that a stream begins
/// with.
#[test]
fn what_another_instance_published_is_told() {
    for begins in
        ["id: 000000000005-ffffff\n\n", "id: 000000000005-ffffff\nevent: banyan::snapshot-end\ndata: {}\n\n"]
    {
        let place = Place::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut command = place.asking(&url, &["tail", "--json", "--after", "now"]);
        let mut tail = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert_ne!(request.read_line(&mut line).unwrap(), 0);
        }
        let event = |position: &str| format!("id: {position}\nevent: session::meta-updated\ndata: {{}}\n\n");
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        // The second one comes twice.
        let events: String =
            ["5-800000", "5-800001", "5-800001", "6-000000"].map(|at| event(&format!("00000000000{at}"))).concat();
        stream.write_all(format!("{head}:\n\n{begins}{events}").as_bytes()).unwrap();
        let lines = BufReader::new(tail.stdout.take().unwrap()).lines();
        let told = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        let told = told.filter(|event| event["type"] != "banyan::snapshot-end");
        let mut positions = told.map(|event| event["position"].as_str().unwrap().to_owned());
        for position in ["000000000005-800000", "000000000005-800001", "000000000006-000000"] {
            assert_eq!(positions.next().as_deref(), Some(position));
        }
        tail.kill().unwrap();
        tail.wait().unwrap();
    }
}

#[test]
fn what_cannot_be_followed_is_refused_at_once() {
    let place = Place::new();
    let served = place.serve();
    let url = served.url.clone();
    assert_eq!(place.ask(&served, &["tail", "nobody", "--json"]).refusal(), (Some(1), "session/not_found".into()));
    let unknown = ["tail", "--json", "--after", "00000000ffff-000000"];
    assert_eq!(place.ask(&served, &unknown).refusal(), (Some(1), "session/invalid_cursor".into()));
    assert_eq!(served.stop("TERM"), Some(0));
    for args in [&["tail", "--json"][..], &["ls", "--json"], &["key", "ls", "--json"]] {
        let said = crate::common::said(&mut place.asking(&url, args));
        assert_eq!(said.refusal(), (Some(3), "http/unreachable".into()));
        assert!(said.err.contains("banyan serve --listen"), "{said:?}");
    }
    for url in ["127.0.0.1:7420", "ftp://127.0.0.1", "http://", "nonsense"] {
        assert_eq!(place.run(&["ls", "--json", "--url", url]).refusal(), (Some(2), "cli/usage".into()), "{url}");
    }
    let both = place.run(&["ls", "--json", "--url", &url, "--data", "x"]);
    assert_eq!(both.refusal(), (Some(2), "cli/usage".into()));
    let said = place.run(&["verify", "--repair", "--json", "--url", &url]);
    assert_eq!(said.refusal(), (Some(2), "cli/usage".into()));
    assert!(said.err.contains("--repair works on the files of a data directory"), "{said:?}");
}

fn say(place: &Place, served: &Served, text: &str) {
    let request = json!({"session_id": "s", "message": user(text)}).to_string();
    place.ask(served, &["call", "session::append", &request]).ok();
}

fn text(event: &Value) -> String {
    event["data"]["message"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{event}")).to_owned()
}
