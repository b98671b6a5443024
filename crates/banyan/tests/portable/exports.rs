use banyan::export::{Redaction, Target};
use serde_json::{Value, json};

use crate::{append, assistant, call, export, furnish, log_of, store, user};

fn lines(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn given_a_renamed_session_when_it_is_written_as_a_log_then_the_first_line_has_the_first_title() {
    let store = store();
    furnish(&store, "s");
    let log = lines(&log_of(&store, "s"));
    let first = &log[0];
    assert_eq!((&first["type"], &first["title"]), (&json!("session_meta"), &json!("First title")));
    assert_eq!(
        (&first["cwd"], &first["model"], &first["provider"]),
        (&json!("/repo"), &json!("m-1"), &json!("p"))
    );
    let renamed: Vec<&Value> =
        log.iter().filter(|line| line["type"] == "session_renamed").map(|line| &line["title"]).collect();
    assert_eq!(renamed, ["Second title"]);
    let told: Vec<&str> = log.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!(
        told.iter().filter(|kind| **kind == "banyan_entry").count(),
        3,
        "two branches and a note: {told:?}"
    );
}

#[test]
fn given_branches_when_a_session_is_written_for_people_then_they_are_told_apart() {
    let store = store();
    furnish(&store, "s");
    let markdown = export(&store, "s", Target::Markdown, Redaction::Off);
    let at = |text: &str| markdown.find(text).unwrap_or_else(|| panic!("{text} in {markdown}"));
    assert!(at("# Second title") < at("root") && at("root") < at("right") && at("right") < at("growing"));
    assert!(
        at("growing") < at("# Other branch 1 (1 entry)")
            && at("# Other branch 2 (1 entry)") > at("# Other branch 1")
    );
    assert!(at("left") > at("# Other branch 1") && at("side") > at("# Other branch 1"));
    let html = export(&store, "s", Target::Html, Redaction::Off);
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} in {html}"));
    assert!(at(">root<") < at(">side<") && at(">side<") < at(">left<") && at(">left<") < at(">right<"));
    assert_eq!(html.matches("<details class=\"branch\">").count(), 2);
}

#[test]
fn given_a_leaf_that_was_moved_back_when_a_session_is_written_then_what_follows_it_is_another_branch() {
    let store = store();
    call(&store, "ensure", json!({"session_id": "s"}));
    append(&store, "s", "a", None, user("first"));
    append(&store, "s", "b", None, user("second"));
    append(&store, "s", "c", None, user("third"));
    call(&store, "set-active-leaf", json!({"session_id": "s", "entry_id": "a"}));
    let markdown = export(&store, "s", Target::Markdown, Redaction::Off);
    let branch = markdown.find("# Other branch 1 (2 entries)").unwrap();
    assert!(markdown.find("first").unwrap() < branch && markdown.find("second").unwrap() > branch);
    assert!(export(&store, "s", Target::Html, Redaction::Off).contains("Another branch: 2 entries"));
}

#[test]
fn given_secrets_anywhere_when_a_session_is_redacted_then_no_target_has_them_and_each_lists_them() {
    let store = store();
    let key = format!("ghp_{}", "aB3d".repeat(9));
    call(
        &store,
        "ensure",
        json!({"session_id": "s", "title": format!("About {key}"), "metadata": {"api_key": "plain-looking"}}),
    );
    append(&store, "s", "u", None, user(&format!("my key is {key}")));
    append(
        &store,
        "s",
        "a",
        None,
        assistant(
            json!([{"type": "function_call", "id": "c", "function_id": "f",
        "arguments": {"password": "hunter2", "url": "https://me:secret99@example.com"}}]),
            "function_call",
        ),
    );
    append(&store, "s", "b", Some("u"), user(&key));
    call(&store, "append", json!({"session_id": "s", "custom": {"custom_type": "t", "data": {"display": key}}}));
    for target in Target::ALL {
        let plain = export(&store, "s", target, Redaction::Off);
        assert!(plain.contains(&key) && plain.contains("hunter2"), "{target:?}");
        let clean = export(&store, "s", target, Redaction::Secrets);
        for secret in [key.as_str(), "plain-looking", "hunter2", "secret99"] {
            assert!(!clean.contains(secret), "{target:?} has {secret}: {clean}");
        }
        assert!(clean.contains("github-token") && clean.contains("named-secret"), "{target:?}: {clean}");
    }
    let log = lines(&export(&store, "s", Target::SessionLog, Redaction::Secrets));
    let last = log.last().unwrap();
    assert_eq!(last["type"], "banyan_redactions");
    assert_eq!(last["redactions"][0], json!({"kind": "github-token", "where": "session", "count": 2}));
}

#[test]
fn given_a_long_session_when_it_is_written_then_it_comes_in_pieces_of_a_bounded_size() {
    let store = store();
    call(&store, "ensure", json!({"session_id": "s"}));
    for _ in 0..4 {
        let messages: Vec<Value> = (0..250).map(|at| user(&format!("{at} {}", "x".repeat(500)))).collect();
        call(&store, "append-many", json!({"session_id": "s", "messages": messages}));
    }
    for target in Target::ALL {
        let request = banyan::export::ExportRequest { session_id: "s".into(), target, redaction: Redaction::Off };
        let mut export = store.export(&request).unwrap();
        // What is written after an export began is not in it.
        call(&store, "append", json!({"session_id": "s", "message": user("too late")}));
        let (mut pieces, mut text) = (0, String::new());
        while let Some(piece) = export.next_piece().unwrap() {
            assert!(piece.len() < 80 << 10, "{}", piece.len());
            pieces += 1;
            text.push_str(std::str::from_utf8(&piece).unwrap());
        }
        assert!(pieces > 5, "{pieces}");
        assert!(text.contains("249 xxx"));
        let late = text.matches("too late").count();
        assert_eq!(late, Target::ALL.iter().position(|it| *it == target).unwrap(), "{target:?}");
    }
}
