//! `banyan key`: on a directory, beside a server, and through it.

use std::time::Instant;

use crate::common::served::{DEADLINE, Served};
use crate::common::{Place, Said};
use serde_json::json;

#[test]
fn a_key_is_shown_once_and_alone() {
    let place = Place::new();
    let said = place.run(&["key", "create", "--name", "ci", "--scope", "owner=u_1", "--read-only", "--rate", "5"]);
    assert_eq!(said.code, Some(0));
    let secret = said.out.strip_suffix('\n').unwrap();
    assert!(secret.starts_with("banyan_") && !secret.contains(char::is_whitespace), "{said:?}");
    assert!(said.err.contains("may read sessions with owner=\"u_1\", 5 requests a second"), "{said:?}");
    let quiet = place.run(&["key", "create", "--name", "other", "--quiet"]).ok().out;
    assert_eq!(quiet.lines().count(), 1);

    let listed = place.run(&["key", "ls", "--json"]).ok();
    let (first, second) = (&listed.json_lines()[0], &listed.json_lines()[1]);
    let fields: Vec<&String> = first.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["id", "name", "scope", "read_only", "requests_per_second", "created_at"]);
    assert_eq!(
        (&first["name"], &first["scope"], &first["read_only"]),
        (&json!("ci"), &json!({"owner": "u_1"}), &json!(true))
    );
    assert_eq!(second["name"], "other");
    let text = std::fs::read_to_string(place.dir().join(".banyan/keys.json")).unwrap();
    for secret in [secret, quiet.trim()] {
        let (_, hidden) = secret.rsplit_once('_').unwrap();
        assert!(!text.contains(hidden) && !listed.out.contains(hidden));
    }
    let table = place.run(&["key", "ls"]).ok().out;
    assert_eq!(table.lines().count(), 3, "{table}");
}

#[test]
fn a_scope_that_cannot_tell_tenants_apart_is_refused() {
    let place = Place::new();
    let refused = |labels: &[&str]| {
        let labels = labels.iter().flat_map(|label| ["--scope", label]);
        let words: Vec<&str> = ["key", "create", "--name", "n", "--json"].into_iter().chain(labels).collect();
        place.run(&words).refusal()
    };
    let usage = (Some(2), "cli/usage".to_owned());
    assert_eq!(refused(&["owner=110169484474386276334"]), usage, "it would be read as another number");
    assert_eq!(refused(&["a=1", "a=2"]), usage);
    assert_eq!(refused(&["=x"]), usage);
    for label in
        ["owner=", "owner=null", "owner=9007199254740993.0", "owner=9007199254740993", "owner=1.5", "owner=[1]"]
    {
        assert_eq!(refused(&[label]), (Some(1), "session/invalid_request".into()), "{label}");
    }
    assert_eq!(place.run(&["key", "ls", "--json"]).ok().out, "");
    place.run(&["key", "create", "--name", "m", "--quiet", "--scope", "n=1e3"]).ok();
    let scope = &place.run(&["key", "ls", "--json"]).ok().json_lines()[0]["scope"];
    assert_eq!(*scope, json!({"n": 1000}), "a number has one form");
    assert_eq!(place.run(&["key", "rm", "m"]).code, Some(0));
    place.run(&["key", "create", "--name", "n", "--quiet", "--scope", "owner=\"110169484474386276334\""]).ok();
    let scope = &place.run(&["key", "ls", "--json"]).ok().json_lines()[0]["scope"];
    assert_eq!(*scope, json!({"owner": "110169484474386276334"}));
}

#[test]
fn keys_are_removed_by_id_or_by_a_name_that_only_one_has() {
    let place = Place::new();
    let ids: Vec<String> = ["one", "two", "two"]
        .map(|name| {
            let made = place.run(&["key", "create", "--name", name, "--json"]).ok().json_lines();
            made[0]["id"].as_str().unwrap().to_owned()
        })
        .into();
    let refused = |which: &str| place.run(&["key", "rm", which, "--json"]).refusal();
    assert_eq!(refused("two"), (Some(1), "key/ambiguous".into()));
    assert_eq!(refused("three"), (Some(1), "key/not_found".into()));
    assert_eq!(place.run(&["key", "rm", "one"]).ok().out, format!("Removed {}  one\n", ids[0]));
    assert_eq!(
        place.run(&["key", "rm", &ids[1], "--json"]).ok().json_lines(),
        [json!({"id": ids[1], "removed": true})]
    );
    let left = place.run(&["key", "ls", "--json"]).ok().json_lines();
    assert_eq!((left.len(), &left[0]["id"]), (1, &json!(ids[2])));
    assert_eq!(
        place.run(&["key", "create", "--name", " ", "--json"]).refusal(),
        (Some(1), "session/invalid_request".into())
    );
    assert_eq!(place.run(&["key", "create"]).code, Some(2));
    let elsewhere = Place::new();
    elsewhere.run(&["key", "ls", "--json"]).ok();
    assert_eq!(elsewhere.run(&["key", "rm", "one"]).code, Some(1));
    assert!(!elsewhere.dir().exists(), "looking makes no directory");
}

#[test]
fn a_running_server_notices_keys_that_are_made_and_removed_beside_it() {
    let place = Place::new();
    let served = place.serve();
    place.ask(&served, &["ls", "--json"]).ok();
    let key = place.run(&["key", "create", "--name", "ops", "--quiet"]).ok().out;
    let key = key.trim();
    place.ask(&served, &["ls", "--json", "--key", key]).ok();
    let shut_out = (Some(1), "auth/unauthenticated".to_owned());
    until(&place, &served, &["ls", "--json"], |said| said.code != Some(0) && said.refusal() == shut_out);
    assert_eq!(place.ask(&served, &["ls", "--json", "--key", "banyan_00000000_1"]).refusal(), shut_out);
    // Another stays, so that the server does not fall open.
    place.run(&["key", "create", "--name", "second", "--quiet"]).ok();
    place.run(&["key", "rm", "ops"]).ok();
    until(&place, &served, &["ls", "--json", "--key", key], |said| said.code != Some(0));
}

#[test]
fn a_server_makes_and_removes_keys_for_an_operator_only() {
    let place = Place::new();
    let served = place.serve();
    let create = |key: &str, args: &[&str]| {
        let args = [&["key", "create", "--quiet", "--key", key, "--name"], args].concat();
        place.ask(&served, &args).ok().out.trim().to_owned()
    };
    let operator = create("none-yet", &["ops"]);
    let scoped = create(&operator, &["ada", "--scope", "owner=u_1"]);
    let listed = place.ask(&served, &["key", "ls", "--json", "--key", &operator]).ok();
    assert_eq!(listed.out, place.run(&["key", "ls", "--json"]).ok().out);
    assert_eq!(listed.json_lines().len(), 2);
    for args in [
        &["key", "ls", "--json"][..],
        &["key", "create", "--name", "x", "--json"],
        &["key", "rm", "ops", "--json"],
    ] {
        let said = place.ask(&served, &[args, &["--key", &scoped]].concat());
        assert_eq!(said.refusal(), (Some(1), "auth/forbidden".into()), "{args:?}");
    }
    place.ask(&served, &["key", "rm", "ada", "--key", &operator]).ok();
    let said = place.ask(&served, &["ls", "--json", "--key", &scoped]);
    assert_eq!(said.refusal(), (Some(1), "auth/unauthenticated".into()));
}

#[test]
fn a_directory_whose_last_key_is_removed_stays_closed_until_it_is_opened_on_purpose() {
    let place = Place::new();
    place.run(&["key", "create", "--name", "ops", "--quiet"]).ok();
    let served = place.serve();
    assert_eq!(served.told["reached_by"], "the holder of 1 key");
    let said = place.run(&["key", "rm", "ops"]);
    assert_eq!(said.code, Some(0));
    assert!(said.err.contains("That was the last key") && said.err.contains("key reset --open"), "{said:?}");
    let shut_out = (Some(1), "auth/unauthenticated".to_owned());
    assert_eq!(place.ask(&served, &["ls", "--json"]).refusal(), shut_out);
    served.stop("TERM");
    let served = place.serve();
    let told = served.told["reached_by"].as_str().unwrap();
    assert!(
        told.starts_with("no one: keys were in force and the last one was removed; run `banyan key create"),
        "{told}"
    );
    assert_eq!(place.ask(&served, &["ls", "--json"]).refusal(), shut_out);
    let said = place.run(&["key", "ls"]);
    assert!(
        said.err.contains("A server refuses every call: keys were in force and the last one was removed."),
        "{said:?}"
    );

    assert_eq!(place.run(&["key", "reset"]).code, Some(2), "it has to be said");
    place.run(&["key", "reset", "--open"]).ok();
    until(&place, &served, &["ls", "--json"], |said| said.code == Some(0));
    served.stop("TERM");
    assert_eq!(place.serve().told["reached_by"], "anyone on this machine");
}

#[test]
fn a_start_without_the_key_file_refuses_every_call_until_there_is_a_new_key() {
    let place = Place::new();
    let key = place.run(&["key", "create", "--name", "ops", "--quiet"]).ok().out;
    place.run(&["key", "create", "--name", "ada", "--quiet", "--scope", "owner=u"]).ok();
    let refused = place.run(&["key", "reset", "--open", "--json"]).refusal();
    assert_eq!(refused, (Some(1), "session/invalid_request".into()), "keys are in force");
    std::fs::remove_file(place.dir().join(".banyan/keys.json")).unwrap();
    let served = place.serve();
    assert!(served.told["reached_by"].as_str().unwrap().contains("the key file is missing"), "{}", served.told);
    let shut_out = (Some(1), "auth/unauthenticated".to_owned());
    for key in ["none", key.trim()] {
        assert_eq!(place.ask(&served, &["ls", "--json", "--key", key]).refusal(), shut_out);
    }
    let new = place.run(&["key", "create", "--name", "new", "--quiet"]).ok().out;
    place.ask(&served, &["ls", "--json", "--key", new.trim()]).ok();
    assert_eq!(place.ask(&served, &["ls", "--json", "--key", key.trim()]).refusal(), shut_out);
}

#[test]
fn a_damaged_key_is_listed_with_its_reason_and_can_be_removed() {
    let place = Place::new();
    for name in ["one", "two"] {
        place.run(&["key", "create", "--name", name, "--quiet"]).ok();
    }
    let file = place.dir().join(".banyan/keys.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("\"one\"", "\"ohe\"", 1)).unwrap();
    let listed = place.run(&["key", "ls", "--json"]).ok().json_lines();
    assert_eq!((listed.len(), &listed[0]["name"]), (3, &json!("two")));
    let damaged = listed.iter().find(|key| key["refused"] == "its checksum differs").unwrap();
    let said = place.run(&["key", "ls"]);
    assert!(
        said.err.contains("its checksum differs") && said.err.contains("it is missing in the key file"),
        "{said:?}"
    );
    assert_eq!(said.out.lines().count(), 2, "{said:?}");
    for key in &listed[1..] {
        place.run(&["key", "rm", key["id"].as_str().unwrap()]).ok();
    }
    assert_eq!(place.run(&["key", "ls", "--json"]).ok().json_lines(), [listed[0].clone()]);
    assert!(damaged["id"].as_str().unwrap().starts_with("refused-"));
}

/// Asks until the answer is as it should be.
fn until(place: &Place, served: &Served, args: &[&str], wanted: impl Fn(&Said) -> bool) {
    let began = Instant::now();
    loop {
        let said = place.ask(served, args);
        if wanted(&said) {
            return;
        }
        assert!(began.elapsed() < DEADLINE, "{said:?}");
    }
}
