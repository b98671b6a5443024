//! `banyan serve`: how it starts, what it says, and how it stops.

mod common;

use std::process::Stdio;

use common::{Place, user};
use serde_json::json;

#[test]
fn a_server_makes_its_directory_and_stops_cleanly_when_asked() {
    for signal in ["TERM", "INT"] {
        let place = Place::new();
        let served = place.serve();
        let created = place.ask(&served, &["call", "session::ensure", r#"{"session_id":"s"}"#]).ok();
        assert_eq!(created.json_lines()[0]["created"], true);
        let request = json!({"session_id": "s", "message": user("kept")}).to_string();
        place.ask(&served, &["call", "session::append", &request]).ok();
        let mut following = place.follow(&served, &[]);
        assert_eq!(following.event()["type"], "session::created");

        assert_eq!(served.stop(signal), Some(0), "{signal}");

        assert!(!place.dir().join(".banyan/server.json").exists());
        assert_eq!(place.texts("s", &[]), ["kept"]);
        place.run(&["verify"]).ok();
    }
}

#[test]
fn the_first_lines_say_where_it_is_and_what_to_try() {
    let place = Place::new();
    let mut child = place
        .command(&["serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines: Vec<String> = {
        use std::io::{BufRead, BufReader};
        BufReader::new(child.stdout.take().unwrap()).lines().take(3).map(Result::unwrap).collect()
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let url = lines[0].split(' ').next().unwrap();
    assert_eq!(lines[0], format!("{url} serves {}", place.dir().display()));
    assert_eq!(lines[1], format!("  Try:   curl -s {url}/v1/call/session::create -d '{{\"title\":\"Hello\"}}'"));
    assert_eq!(lines[2], format!("  Docs:  {url}/docs"));
}

#[test]
fn others_who_want_the_directory_are_told_where_it_is_served() {
    let place = Place::new();
    let served = place.serve();
    let pid = served.child.id().to_string();
    for args in [&["ls"][..], &["serve", "--listen", "127.0.0.1:0"], &["verify"], &["call", "--stream"]] {
        let said = place.run(args);
        assert_eq!((said.code, said.out.as_str()), (Some(3), ""), "{said:?}");
        assert!(said.err.contains(&format!("pid {pid}")), "{said:?}");
        assert!(said.err.contains(&format!("--url {}", served.url)), "{said:?}");
    }
    // A note that a killed server left behind misleads nobody.
    drop(served);
    assert!(place.dir().join(".banyan/server.json").exists());
    let mut owner = place.stream();
    owner.send(&json!({"id": 1, "function": "session::list"}));
    owner.answer();
    let said = place.run(&["ls"]);
    assert!(said.err.contains("stop that one first") && !said.err.contains("--url"), "{said:?}");
}

#[test]
fn other_machines_can_reach_a_server_only_when_there_is_a_key() {
    let place = Place::new();
    let refused = place.serve_with(&["--listen", "0.0.0.0:0"]).err().unwrap();
    assert_eq!(refused.refusal(), (Some(2), "cli/usage".into()));
    assert!(refused.err.contains("banyan key create"), "{refused:?}");

    let key = place.run(&["key", "create", "--name", "ops", "--quiet"]).ok().out;
    let served = place.serve_with(&["--listen", "0.0.0.0:0"]).unwrap_or_else(|said| panic!("{said:?}"));
    assert_eq!(place.ask(&served, &["ls", "--json"]).refusal(), (Some(1), "auth/unauthenticated".into()));
    place.ask(&served, &["ls", "--json", "--key", key.trim()]).ok();
    assert_eq!(served.stop("TERM"), Some(0));
}

#[test]
fn what_cannot_be_served_is_said() {
    let place = Place::new();
    let served = place.serve();
    let taken = served.url.strip_prefix("http://").unwrap();
    let other = Place::new();
    let said = other.serve_with(&["--listen", taken]).err().unwrap();
    assert_eq!((said.code, said.err.contains("cannot listen on")), (Some(3), true), "{said:?}");
    assert_eq!(place.run(&["serve", "--url", "http://127.0.0.1:1"]).code, Some(2));
    assert_eq!(place.run(&["serve", "--listen", "somewhere"]).code, Some(2));
}
