//! Sessions as files: written, kept from being written over, read back, twice, dry, broken, over a server.

use std::fs;

use crate::common::{Place, assistant, user};
use serde_json::{Value, json};

fn furnished() -> Place {
    let place = Place::new();
    let entries = place.session("alpha", "The first", &["root", "first try"]);
    let call = json!([{"type": "function_call", "id": "c1", "function_id": "read", "arguments": {"p": 1}}]);
    let asks = place.call("session::append", &json!({"session_id": "alpha", "message": assistant(call)}));
    place.call(
        "session::append",
        &json!({"session_id": "alpha", "message": user("other"), "parent_id": entries[0]}),
    );
    place.call("session::append", &json!({"session_id": "alpha", "custom": {"custom_type": "note", "data": 1}}));
    place.call("session::set-active-leaf", &json!({"session_id": "alpha", "entry_id": asks["entry_id"]}));
    place
}

fn everything(place: &Place) -> Value {
    let tree = place.call("session::tree", &json!({"session_id": "alpha"}));
    let entry = |node: &Value| {
        place.call("session::get-message", &json!({"session_id": "alpha", "entry_id": node["entry_id"]}))
    };
    let entries: Vec<Value> = tree["entries"].as_array().unwrap().iter().map(entry).collect();
    json!({"tree": tree, "entries": entries, "meta": place.call("session::get", &json!({"session_id": "alpha"}))})
}

#[test]
fn given_a_session_when_it_is_exported_and_imported_elsewhere_then_it_is_the_same_and_once_is_enough() {
    let (here, there) = (furnished(), Place::new());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("alpha.jsonl");
    let name = file.to_str().unwrap();
    let said = here.run(&["export", "al", "--to", "session-log", "-o", name]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "", &*format!("Wrote {name}.\n")));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");

    let dry = there.run(&["import", "--dry-run", name]);
    assert_eq!((dry.code, dry.err.as_str()), (Some(0), "Nothing was changed.\n"));
    assert_eq!(dry.out, "alpha “The first” (new)\n  5 entries added\n");
    assert!(!there.dir().exists(), "a dry run makes no directory");
    let summary = there.run(&["import", name, "--json"]).ok().json_lines().remove(0);
    assert_eq!(summary["sessions"][0]["added"], 5);
    assert_eq!(everything(&there), everything(&here));
    let again = there.run(&["import", name]).ok();
    assert_eq!(again.out, "alpha “The first” (there already)\n  0 entries added, 5 unchanged\n");
    assert_eq!(everything(&there), everything(&here));
}

#[test]
fn given_a_file_that_is_there_when_a_session_is_exported_then_it_stays_unless_forced() {
    let place = furnished();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mine.html");
    fs::write(&file, "mine").unwrap();
    let name = file.to_str().unwrap();
    let refused = place.run(&["export", "alpha", "--to", "html", "-o", name, "--json"]);
    assert_eq!(refused.refusal(), (Some(2), "cli/usage".to_owned()));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(place.run(&["export", "nobody", "--to", "html", "-o", name, "--force"]).code, Some(1));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine", "an export that fails leaves the file as it is");
    assert_eq!(place.run(&["export", "alpha", "--to", "html", "-o", name, "--force"]).code, Some(0));
    assert!(fs::read_to_string(&file).unwrap().starts_with("<!doctype html>"));
    let nowhere = dir.path().join("no/such/file");
    let failed = place.run(&["export", "alpha", "--to", "html", "-o", nowhere.to_str().unwrap(), "--json"]);
    assert_eq!(failed.refusal(), (Some(3), "cli/file".to_owned()));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn given_a_broken_log_when_it_is_imported_then_the_rest_is_taken_and_the_broken_lines_are_named() {
    let (here, there) = (furnished(), Place::new());
    let log = here.run(&["export", "alpha", "--to", "session-log"]).ok().out;
    let broken: Vec<&str> =
        log.lines().enumerate().map(|(at, line)| if at == 1 { "{oops" } else { line }).collect();
    let said = there.feed(&["import", "-"], &broken.join("\n"));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("4 entries added"), "{}", said.out);
    assert!(said.out.contains("not placed: line 2: the line is not a JSON object"), "{}", said.out);
    assert!(said.out.contains("made up: line 8: what entry"), "{}", said.out);
}

#[test]
fn given_a_server_when_a_file_goes_in_and_out_then_it_is_as_with_a_directory() {
    let (here, there) = (furnished(), Place::new());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("alpha.jsonl");
    let name = file.to_str().unwrap();
    here.run(&["export", "alpha", "--to", "session-log", "-o", name]);
    let served = there.serve();
    let dry = there.ask(&served, &["import", "--dry-run", name, "--json"]).json_lines().remove(0);
    assert_eq!((&dry["dry_run"], &dry["sessions"][0]["created"]), (&json!(true), &json!(true)));
    let said = there.ask(&served, &["import", name]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), "alpha “The first” (new)\n  5 entries added\n"));
    let asked = there.ask(&served, &["export", "alpha", "--to", "session-log"]).ok().out;
    assert_eq!(asked, fs::read_to_string(&file).unwrap());
    let refused = there.ask(&served, &["import", "Cargo.toml", "--json"]);
    assert_eq!(refused.refusal(), (Some(1), "session/invalid_request".to_owned()));
    assert_eq!(served.stop("TERM"), Some(0));
    assert_eq!(everything(&there), everything(&here));
}

#[test]
fn given_turns_when_they_are_shown_then_their_tools_and_ends_are_there() {
    let place = furnished();
    let shown = place.run(&["show", "alpha", "--turns"]).ok().out;
    assert!(shown.contains("interrupted") && shown.contains("  read pending"), "{shown}");
    let turns = place.run(&["show", "alpha", "--turns", "--json"]).ok().json_lines();
    assert_eq!(turns.len(), 2);
    assert_eq!((&turns[1]["status"], &turns[1]["tools"][0]["state"]), (&json!("pending"), &json!("pending")));
}

#[test]
fn given_files_of_ocp_sessions_when_they_are_imported_twice_then_the_second_time_nothing_is_new() {
    let place = Place::new();
    let dir = tempfile::tempdir().unwrap();
    let files: Vec<String> = ["one", "two"]
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let context = json!({"context_id": format!("ocp-a1b2c3d{at}"), "agent_type": "tester", "session_id": name,
                "current_goal": format!("goal {name}"), "created_at": "2026-03-01T10:00:00+00:00",
                "last_updated": "2026-03-01T10:05:00+00:00", "history": [
                    {"timestamp": "2026-03-01T10:01:00+00:00", "action": "api_registered", "metadata": {"token": "t", "password": "hunter2"}},
                    {"timestamp": "2026-03-01T10:02:00+00:00", "action": "tool_call:x"}]});
            let file = dir.path().join(format!("{name}.json"));
            fs::write(&file, serde_json::to_string_pretty(&context).unwrap()).unwrap();
            file.to_str().unwrap().to_owned()
        })
        .collect();
    let first = place.run(&["import", &files[0], &files[1]]).ok();
    assert_eq!(first.out.matches("(new)").count(), 2, "{}", first.out);
    assert!(first.out.contains("“goal one”") && first.out.contains("2 entries added"), "{}", first.out);
    let again = place.run(&["import", &files[0], &files[1]]).ok();
    assert_eq!(again.out.matches("0 entries added, 2 unchanged").count(), 2, "{}", again.out);
    let listed = place.call("session::list", &json!({"metadata": {"ocp.context_id": "ocp-a1b2c3d0"}}));
    let id = listed["sessions"][0]["session_id"].as_str().unwrap();
    let context: Value =
        serde_json::from_str(&place.run(&["export", id, "--to", "ocp-context"]).ok().out).unwrap();
    assert_eq!(context["context_id"], "ocp-a1b2c3d0");
    assert_eq!(context["history"].as_array().unwrap().len(), 2);
    assert_eq!(context["history"][0]["metadata"]["password"], "[redacted:named-secret]");
    assert_eq!(context["session"]["redacted"][0]["kind"], "named-secret");
}
