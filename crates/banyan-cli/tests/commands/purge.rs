//! `banyan purge`: deleted content leaves a directory, and that of a server.

use serde_json::{Value, json};

use crate::common::Place;

fn purged(line: &Value) -> Vec<&String> {
    line.as_object().unwrap().keys().collect()
}

const FIELDS: [&str; 7] =
    ["log_segments", "log_bytes", "search_segments", "search_bytes", "content", "content_bytes", "not_reached"];

#[test]
fn a_directory_is_purged() {
    let place = Place::new();
    place.session("s", "t", &["gone"]);
    place.run(&["rm", "--yes", "s"]).ok();
    let said = place.run(&["purge", "--json"]).ok();
    let line = &said.json_lines()[0];
    assert_eq!((purged(line), &line["not_reached"]), (FIELDS.map(str::to_owned).iter().collect(), &json!([])));
    let words = place.run(&["purge"]).ok().out;
    assert!(words.starts_with("Removed 0 segments of the write-ahead log (0 B)\n"), "{words}");
}

#[test]
fn a_server_is_purged_by_an_operator_alone() {
    let place = Place::new();
    let key = |args: &[&str]| {
        let made = place.run(&[&["key", "create", "--quiet"], args].concat()).ok().out;
        made.trim().to_owned()
    };
    let operator = key(&["--name", "operator"]);
    let scoped = key(&["--name", "scoped", "--scope", "owner=u_1"]);
    let reader = key(&["--name", "reader", "--read-only"]);
    let served = place.serve();
    for refused in [&scoped, &reader] {
        let said = place.ask(&served, &["purge", "--json", "--key", refused]);
        assert_eq!(said.refusal(), (Some(1), "auth/forbidden".into()));
    }
    let call = |function: &str, request: Value| {
        place.ask(&served, &["call", function, &request.to_string(), "--key", &operator]).ok();
    };
    call("session::ensure", json!({"session_id": "s", "title": "gone"}));
    call("session::delete", json!({"session_id": "s"}));
    let said = place.ask(&served, &["purge", "--json", "--key", &operator]).ok();
    let line = &said.json_lines()[0];
    assert_eq!((line["log_segments"].as_u64(), &line["not_reached"]), (Some(1), &json!([])), "{line}");
}

#[test]
fn what_cannot_be_reached_is_named() {
    let place = Place::new();
    let entries = place.session("s", "t", &["kept for the fork"]);
    assert_eq!(place.run(&["fork", "s", &entries[0]]).code, Some(0));
    place.run(&["rm", "--yes", "s"]).ok();
    let said = place.run(&["purge"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("Not reached: .banyan/bases/"), "{said:?}");
    assert!(said.out.contains("forks of the deleted session read it"), "{said:?}");
}
