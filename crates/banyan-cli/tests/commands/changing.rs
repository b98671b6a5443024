//! `banyan fork` and `rm`: making and removing sessions.

use crate::common::Place;
use serde_json::{Value, json};

#[test]
fn a_fork_prints_its_id_and_holds_what_came_before() {
    let place = Place::new();
    let entries = place.session("source", "Source", &["one", "two", "three"]);
    let said = place.run(&["fork", "sour"]);
    let fork = said.out.trim();
    assert_eq!((said.code, said.err.as_str()), (Some(0), "Forked “Source” with 3 messages.\n"));
    assert_eq!(place.texts(fork, &[]), ["one", "two", "three"]);

    let earlier = place.run(&["fork", "source", &entries[1], "--title", "Earlier", "--json"]).ok().json_lines();
    assert_eq!(earlier[0]["meta"]["title"], "Earlier");
    assert_eq!(place.texts(earlier[0]["session_id"].as_str().unwrap(), &[]), ["one", "two"]);
}

#[test]
fn what_cannot_be_forked_is_refused() {
    let place = Place::new();
    place.session("empty", "", &[]);
    assert_eq!(place.run(&["fork", "empty", "--json"]).refusal(), (Some(2), "cli/usage".into()));
    assert_eq!(
        place.run(&["fork", "empty", "e_none", "--json"]).refusal(),
        (Some(1), "session/entry_not_found".into())
    );
    assert_eq!(place.run(&["fork", "nobody", "--json"]).refusal(), (Some(1), "session/not_found".into()));
}

#[test]
fn deleting_wants_a_yes_and_says_what_went() {
    let place = Place::new();
    place.session("one", "First", &["hi"]);
    place.session("two", "", &[]);
    place.session("three", "", &[]);
    assert_eq!(place.run(&["rm", "one", "--json"]).refusal(), (Some(2), "cli/usage".into()));
    assert_eq!(
        place.run(&["rm", "--yes", "one", "nobody", "--json"]).refusal(),
        (Some(1), "session/not_found".into())
    );
    assert_eq!(place.run(&["ls", "--json"]).ok().json_lines().len(), 3);

    let said = place.run(&["rm", "--yes", "on", "two", "one"]).ok();
    assert_eq!(said.out, "Deleted one  First (1 message)\nDeleted two (0 messages)\n");
    let said = place.run(&["rm", "--yes", "three", "--json"]).ok();
    assert_eq!(said.json_lines(), [json!({"session_id": "three", "deleted": true})]);
    assert_eq!(place.run(&["ls", "--json"]).ok().json_lines(), Vec::<Value>::new());

    let told = place.run(&["tail", "one", "--type", "deleted", "--json"]).ok().json_lines();
    assert_eq!(told.len(), 1);
}
