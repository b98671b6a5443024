//! `banyan call`: one function, its answer, its refusals.

use crate::common::Place;
use serde_json::{Value, json};

#[test]
fn a_call_prints_its_answer_on_one_line_when_nobody_looks() {
    let place = Place::new();
    let said = place.run(&["call", "session::ensure", r#"{"session_id":"one","title":"One"}"#]).ok();
    assert_eq!(said.out.lines().count(), 1);
    let answer = &said.json_lines()[0];
    assert_eq!((&answer["session_id"], &answer["created"]), (&json!("one"), &json!(true)));
}

#[test]
fn a_request_can_come_from_standard_input_or_be_left_out() {
    let place = Place::new();
    let created = place.feed(&["call", "session::create", "-"], r#"{"title":"From a pipe"}"#).ok().json_lines();
    assert_eq!(created[0]["meta"]["title"], "From a pipe");
    let listed = place.run(&["call", "session::list"]).ok().json_lines();
    assert_eq!(listed[0]["sessions"], json!([created[0]["meta"]]));
}

#[test]
fn null_is_an_answer_and_looking_makes_no_directory() {
    let place = Place::new();
    assert_eq!(place.run(&["call", "session::get", r#"{"session_id":"nobody"}"#]).ok().out, "null\n");
    assert!(!place.dir().exists());
}

#[test]
fn refused_calls_unknown_functions_and_slips_have_their_own_exit_codes() {
    let place = Place::new();
    let append = json!({"session_id": "nobody", "message": crate::common::user("hi")}).to_string();
    let refused = |args: &[&str]| place.run(&[&["--json"], args].concat()).refusal();
    assert_eq!(refused(&["call", "session::append", &append]), (Some(1), "session/not_found".into()));
    assert_eq!(refused(&["call", "session::append", "{"]), (Some(1), "session/invalid_request".into()));
    assert_eq!(refused(&["call", "session::apend"]), (Some(2), "call/unknown_function".into()));
    assert_eq!(refused(&["call", "session::apend", "--schema"]), (Some(2), "call/unknown_function".into()));
    assert_eq!(place.run(&["call"]).code, Some(2));
    assert_eq!(place.run(&["call", "--list", "session::get"]).code, Some(2));
}

#[test]
fn a_refusal_says_in_words_what_to_do_next() {
    let place = Place::new();
    let said = place.run(&["call", "session::append", r#"{"session_id":7}"#]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert!(said.err.starts_with("banyan: the request is not valid"), "{}", said.err);
    assert!(said.err.contains("(session/invalid_request)"), "{}", said.err);
    assert!(said.err.trim_end().ends_with("call session::append --schema"), "{}", said.err);
}

#[test]
fn functions_are_listed_for_people_and_for_programs() {
    let place = Place::new();
    let listed = place.run(&["call", "--list", "--json"]).ok().json_lines();
    let append = listed.iter().find(|function| function["id"] == "session::append").unwrap();
    assert_eq!(append["effect"], "writes");
    let lines = place.run(&["call", "--list"]).ok().out;
    assert_eq!(lines.lines().count(), listed.len());
    for function in &listed {
        assert!(lines.contains(function["description"].as_str().unwrap()), "{function}");
    }
}

#[test]
fn a_schema_tells_what_a_function_takes_and_gives() {
    let schema: Value = place_schema("session::extend-message");
    assert_eq!(schema["request"]["required"], json!(["session_id", "entry_id", "text"]));
    assert!(schema["response"]["properties"]["revision"].is_object(), "{schema}");
}

fn place_schema(function: &str) -> Value {
    Place::new().run(&["call", function, "--schema"]).ok().json_lines().remove(0)
}

#[test]
fn buffered_durability_answers_too() {
    let place = Place::new();
    let said = place.run(&["--durability", "buffered", "call", "session::ensure", r#"{"session_id":"b"}"#]).ok();
    assert_eq!(said.json_lines()[0]["session_id"], "b");
    assert_eq!(place.run(&["ls", "--durability", "never"]).code, Some(2));
}
