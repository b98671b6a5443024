//! Whatever happens to a session, and whenever a front end goes and comes back: its screen is the history.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::front_end::*;
use crate::listening::*;

#[derive(Clone, Debug)]
enum Step {
    Ask,
    Answer,
    Think,
    Extend { entry: usize, text: String },
    Replace { entry: usize, text: String },
    Note { shown: bool },
    Status(&'static str),
    Switch { entry: usize },
    Branch { entry: usize },
    Post { interaction: usize, parts: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (entry, text) = (0..100_usize, "[a-zé\"\n🌳]{1,4}");
    let step = prop_oneof![
        3 => Just(Step::Ask),
        4 => Just(Step::Answer),
        2 => Just(Step::Think),
        8 => (entry.clone(), text).prop_map(|(entry, text)| Step::Extend { entry, text }),
        2 => (entry.clone(), text).prop_map(|(entry, text)| Step::Replace { entry, text }),
        1 => any::<bool>().prop_map(|shown| Step::Note { shown }),
        2 => prop_oneof![Just("working"), Just("idle"), Just("error"), Just("done")].prop_map(Step::Status),
        1 => entry.clone().prop_map(|entry| Step::Switch { entry }),
        1 => entry.prop_map(|entry| Step::Branch { entry }),
        2 => (0..4_usize, 1..4_usize).prop_map(|(interaction, parts)| Step::Post { interaction, parts }),
    ];
    vec(step, 5..30)
}

/// Counts from the newest entry, so that most of what changes is in the newest message.
fn pick(entries: &[String], at: usize) -> Option<&String> {
    let back = if at < 70 { at % 2 } else { at };
    entries.len().checked_sub(1 + back.min(entries.len().saturating_sub(1))).map(|at| &entries[at])
}

fn act(server: &Server, steps: &[Step]) {
    // Messages that hold text in their first block.
    let mut entries: Vec<String> = Vec::new();
    let mut all: Vec<String> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let time = at as i64 * 10;
        match step {
            Step::Ask => entries.push(server.say("s", user(&format!("question {at}"), time))),
            Step::Answer => entries.push(server.say("s", answer(["", "so "][at % 2], time))),
            Step::Think => {
                let content = json!([{"type": "thinking", "text": "hm"}, {"type": "text", "text": ""},
                    {"type": "function_call", "id": format!("c{at}"), "function_id": "f", "arguments": {}}]);
                entries.push(server.say(
                    "s",
                    json!({"role": "assistant", "timestamp": time, "model": "m",
                    "provider": "p", "stop_reason": "function_call", "content": content}),
                ));
            }
            Step::Extend { entry, text } => {
                if let Some(entry) = pick(&entries, *entry) {
                    server.call(
                        "extend-message",
                        json!({"session_id": "s", "entry_id": entry, "block": 0, "text": text}),
                    );
                }
            }
            Step::Replace { entry, text } => {
                if let Some(entry) = pick(&entries, *entry) {
                    let content = json!([{"type": "text", "text": text}]);
                    server
                        .call("update-message", json!({"session_id": "s", "entry_id": entry, "content": content}));
                }
            }
            Step::Note { shown } => {
                let data = if *shown { json!({"display": "noted"}) } else { json!({"n": at}) };
                let custom = json!({"custom_type": "note", "data": data});
                let id = server.call("append", json!({"session_id": "s", "custom": custom}));
                all.push(id["entry_id"].as_str().unwrap().to_owned());
            }
            Step::Status(status) => server.set_status("s", status),
            Step::Switch { entry } => {
                if let Some(entry) = pick(&all, *entry) {
                    server.call("set-active-leaf", json!({"session_id": "s", "entry_id": entry}));
                }
            }
            Step::Branch { entry } => {
                if let Some(parent) = pick(&all, *entry) {
                    let request = json!({"session_id": "s", "parent_id": parent, "message": user("or so", time)});
                    entries.push(server.call("append", request)["entry_id"].as_str().unwrap().to_owned());
                }
            }
            Step::Post { interaction, parts } => {
                let id = format!("i{interaction}");
                let parts: Vec<Value> = (0..*parts)
                    .map(|n| match n {
                        1 => json!({"type": "table", "headers": [], "rows": []}),
                        n => json!({"type": "text_output", "text": format!("part {n}")}),
                    })
                    .collect();
                let time = "2026-01-22T21:47:29.763430";
                let messages = json!([
                    {"role": "user", "interaction_id": id, "timestamp": time, "text_content": "posted"},
                    {"role": "assistant", "interaction_id": id, "timestamp": time, "parts": parts}]);
                let posted = server.post("/sessions/s/history", &messages);
                assert!(matches!(posted.status, 200 | 409), "{posted:?}");
            }
        }
        all.extend(entries.last().filter(|last| all.last() != Some(last)).cloned());
    }
}

#[test]
fn whatever_happens_a_screen_is_the_history_and_so_is_one_that_comes_back() {
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() });
    runner
        .run(&(steps(), steps()), |(first, then)| {
            check(&first, &then);
            Ok(())
        })
        .unwrap();
}

fn check(first: &[Step], then: &[Step]) {
    let server = Server::new();
    server.session("s");
    act(&server, first);
    let queries = ["stream=1", "stream=1&deltas=1", "stream=1&limit=3", "stream=1&limit=3&deltas=1"];
    let mut open: Vec<(String, Stream, Screen)> = Vec::new();
    for query in queries {
        let path = format!("/sessions/s/history?{query}");
        let mut stream = server.open(&path);
        let mut screen = Screen::default();
        screen.until_ready(&mut stream);
        open.push((path, stream, screen));
    }
    act(&server, then);
    server.say("s", user("the end", 1_000_000));
    let end = server.history("s");
    let paged = server.get("/sessions/s/history?limit=500").json();
    assert_eq!(paged, json!(end));
    for (path, stream, mut screen) in open {
        let mut stream = stream;
        let mut left = vec![screen.clone()];
        while texts(&screen.messages).last() != Some(&"the end") || !screen.ready {
            let frame = stream.next().unwrap();
            screen.show(&frame);
            if frame.id.is_some() {
                left.push(screen.clone());
            }
        }
        left.push(screen);
        // Some of the moments at which it could have been left, and the last.
        let some = left.len().div_ceil(6);
        for mut screen in left.into_iter().rev().step_by(some) {
            if texts(&screen.messages).last() != Some(&"the end") {
                screen.come_back(&server, &path);
            }
            let shown = if path.contains("limit") { screen.messages.len() } else { end.len() };
            assert!(shown >= end.len().min(3), "{path}: {shown}");
            let expected = &end[end.len() - shown..];
            assert!(
                screen.messages == expected,
                "{path} after {:?}: {:?} in place of {:?}\n{first:?}\n{then:?}",
                screen.last_id,
                texts(&screen.messages),
                texts(expected)
            );
        }
    }
}
