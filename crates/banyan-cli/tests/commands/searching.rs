//! `banyan search`, on a directory and through a server.

use crate::common::{Place, assistant, user};
use serde_json::json;

/// Two sessions of two agents, one with a branch that was left.
fn filled() -> Place {
    let place = Place::new();
    for (id, title, agent) in [("alpha", "Fix the login", "codex"), ("beta", "Write docs", "pi")] {
        let metadata = json!({"agent": agent, "cwd": format!("/code/{id}")});
        place.call("session::ensure", &json!({"session_id": id, "title": title, "metadata": metadata}));
    }
    let say = |session: &str, id: &str, parent: Option<&str>, message: serde_json::Value| {
        let request = json!({"session_id": session, "entry_id": id, "parent_id": parent, "message": message});
        place.call("session::append", &request);
    };
    say("alpha", "a1", None, user("Why does login_user fail in src/auth.rs?"));
    say("alpha", "a2", None, assistant(json!([{"type": "text", "text": "The token is expired\u{1b}[31m."}])));
    say("alpha", "a3", Some("a1"), assistant(json!([{"type": "text", "text": "The clock is wrong."}])));
    say("beta", "b1", None, user("Document the login flow"));
    place
}

/// The entries of a search with --json.
fn entries(place: &Place, args: &[&str]) -> Vec<String> {
    let said = place.run(&[&["search", "--json"], args].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut entries: Vec<String> =
        said.json_lines().iter().map(|hit| hit["entry_id"].as_str().unwrap().to_owned()).collect();
    entries.sort();
    entries
}

#[test]
fn words_and_filters_find_what_was_said() {
    let place = filled();
    for (args, expected) in [
        (vec!["login"], vec!["a1", "b1"]),
        (vec!["login", "flow"], vec!["b1"]),
        (vec!["src/auth.rs"], vec!["a1"]),
        (vec!["login", "--agent", "codex"], vec!["a1"]),
        (vec!["login", "--workspace", "/code/beta"], vec!["b1"]),
        (vec!["the", "--role", "assistant"], vec!["a3"]),
        (vec!["the", "--role", "assistant", "--all-branches"], vec!["a2", "a3"]),
        (vec!["login", "--session", "alp"], vec!["a1"]),
        (vec!["login", "--meta", "agent=pi"], vec!["b1"]),
        (vec!["login", "--since", "1h"], vec!["a1", "b1"]),
        (vec!["login", "--until", "2001-01-01"], vec![]),
        (vec!["--", "login", "-flow"], vec!["a1"]),
        (vec!["token"], vec![]),
    ] {
        assert_eq!(entries(&place, &args), expected, "{args:?}");
    }
}

#[test]
fn results_are_numbered_and_say_how_to_open_them() {
    let place = filled();
    let said = place.run(&["search", "login_user"]).ok();
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines.len(), 3, "{said:?}");
    assert_eq!(lines[0], " 1. Fix the login · codex · user · just now");
    assert_eq!(lines[1], "    Why does login_user fail in src/auth.rs?");
    assert!(lines[2].ends_with(" show alpha"), "{said:?}");
    let opened = place.run(&["search", "login_user", "--open", "1"]).ok();
    assert!(opened.out.contains("The clock is wrong."), "{opened:?}");
    let left = place.run(&["search", "token", "--all-branches"]).ok();
    assert!(left.out.contains("on another branch") && left.out.contains("show alpha --branch a2"), "{left:?}");
    assert!(!left.out.contains('\u{1b}'), "{left:?}");
}

#[test]
fn nothing_found_is_said_and_nonsense_is_refused() {
    let place = filled();
    let said = place.run(&["search", "nowhere"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "", "Nothing was found.\n"));
    let missing = place.run(&["search", "login", "--open", "9", "--json"]);
    assert_eq!(missing.refusal(), (Some(1), "cli/no_such_hit".to_owned()));
    let empty = place.run(&["search", "--json", "::"]);
    assert_eq!(empty.refusal(), (Some(1), "session/invalid_request".to_owned()));
    assert_eq!(place.run(&["search", "x", "--since", "yesterday"]).code, Some(2));
}

#[test]
fn a_server_finds_the_same() {
    let place = filled();
    let here = place.run(&["search", "login", "--json"]).ok().json_lines();
    let served = place.serve();
    let there = place.ask(&served, &["search", "login", "--json"]).ok().json_lines();
    assert_eq!(there, here);
}
