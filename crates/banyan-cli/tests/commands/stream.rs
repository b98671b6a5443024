//! `banyan call --stream`: many calls in one process.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use crate::common::{Place, user};
use serde_json::{Value, json};

#[test]
fn many_calls_at_once_are_each_answered_once() {
    let place = Place::new();
    let sessions: Vec<String> = (0..8).map(|number| format!("s{number}")).collect();
    for session in &sessions {
        place.session(session, "", &[]);
    }
    let call = |number: usize| {
        let request = json!({"session_id": sessions[number % 8], "message": user(&number.to_string())});
        json!({"id": number, "function": "session::append", "request": request}).to_string()
    };
    let input = (0..400).map(call).collect::<Vec<_>>().join("\n");

    let answers = place.feed(&["call", "--stream", "--concurrency", "16"], &input).ok().json_lines();

    let ids: BTreeSet<u64> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    assert_eq!((answers.len(), ids), (400, (0..400).collect()));
    let entries: BTreeSet<&str> =
        answers.iter().map(|answer| answer["ok"]["entry_id"].as_str().unwrap()).collect();
    assert_eq!(entries.len(), 400);
    let counts: BTreeMap<String, u64> = (place.run(&["ls", "--json"]).ok().json_lines().into_iter())
        .map(|meta| (meta["session_id"].as_str().unwrap().to_owned(), meta["message_count"].as_u64().unwrap()))
        .collect();
    assert_eq!(counts, sessions.iter().map(|session| (session.clone(), 50)).collect());
}

#[test]
fn one_at_a_time_keeps_the_order() {
    let place = Place::new();
    let call = |number: usize| {
        let request = json!({"session_id": "s", "message": user(&number.to_string())});
        json!({"id": number, "function": "session::append", "request": request}).to_string()
    };
    place.session("s", "", &[]);
    let input = (0..50).map(call).collect::<Vec<_>>().join("\n");
    let answers = place.feed(&["call", "--stream", "--concurrency", "1"], &input).ok().json_lines();
    assert_eq!(
        answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect::<Vec<_>>(),
        (0..50).collect::<Vec<_>>()
    );
    assert_eq!(place.texts("s", &[]), (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn an_answer_is_out_before_the_next_line_is_in() {
    let place = Place::new();
    let mut stream = place.stream();
    stream.send(&json!({"id": {"any": ["thing"]}, "function": "session::ensure", "request": {"session_id": "s"}}));
    let answer = stream.answer();
    assert_eq!((&answer["id"], &answer["ok"]["created"]), (&json!({"any": ["thing"]}), &json!(true)));
    stream.send(&json!({"id": "2", "function": "session::get", "request": {"session_id": "s"}}));
    assert_eq!(stream.answer()["ok"]["meta"]["session_id"], "s");
    drop(stream.input.take());
    assert!(stream.child.wait().unwrap().success());
}

#[test]
fn blank_lines_are_skipped_and_every_other_line_is_answered() {
    let place = Place::new();
    let input = "\n  \nnot json\n[]\n{\"id\":1}\n{\"id\":2,\"function\":\"session::nope\"}\n\
        {\"id\":3,\"function\":\"session::get\",\"request\":[]}\n{\"function\":\"session::list\"}";
    let answers = place.feed(&["call", "--stream", "--concurrency", "1"], input).ok().json_lines();
    let told: Vec<(Value, Value)> =
        answers.iter().map(|answer| (answer["id"].clone(), answer["error"]["code"].clone())).collect();
    let invalid = json!("session/invalid_request");
    assert_eq!(
        told,
        [
            (Value::Null, invalid.clone()),
            (Value::Null, invalid.clone()),
            (json!(1), invalid.clone()),
            (json!(2), json!("call/unknown_function")),
            (json!(3), invalid),
            (Value::Null, Value::Null),
        ]
    );
    assert_eq!(answers[5]["ok"]["sessions"], json!([]));
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_stream_cleanly_while_its_input_is_open() {
    for signal in ["TERM", "INT"] {
        let place = Place::new();
        let mut stream = place.stream();
        stream.send(&json!({"id": 1, "function": "session::ensure", "request": {"session_id": "s"}}));
        assert_eq!(stream.answer()["id"], 1);
        let pid = stream.child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        assert_eq!(stream.child.wait().unwrap().code(), Some(0), "{signal}");
        assert!(place.dir().join("s.jsonl").exists(), "{signal}: closing leaves the session's file");
    }
}

#[test]
fn the_owner_of_a_directory_is_named_to_others() {
    let place = Place::new();
    let mut owner = place.stream();
    owner.send(&json!({"id": 1, "function": "session::list"}));
    owner.answer();
    let pid = owner.child.id().to_string();
    for args in [&["ls"][..], &["call", "session::list"], &["call", "--stream"], &["rm", "--yes", "s"]] {
        let said = place.run(args);
        assert_eq!((said.code, said.out.as_str()), (Some(3), ""), "{said:?}");
        assert!(said.err.contains(&pid), "{said:?}");
    }
    assert_eq!(place.run(&["ls", "--json"]).refusal(), (Some(3), "session/storage".into()));
    drop(owner.input.take());
    owner.child.wait().unwrap();
    assert_eq!(place.run(&["ls"]).code, Some(0));
}

#[test]
fn when_nobody_reads_the_answers_the_stream_stops_and_says_so() {
    let place = Place::new();
    let mut stream = place.stream();
    drop(stream.output.take());
    stream.send(&json!({"id": 1, "function": "session::list"}));
    assert_eq!(stream.child.wait().unwrap().code(), Some(3));
    let mut err = String::new();
    stream.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(err.contains("answers could not be written"), "{err}");
}
