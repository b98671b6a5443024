//! What an import takes, and what it leaves alone.

use std::fs;

use serde_json::json;

use super::{FIRST, Machine, added, append, fixtures, session, turn};

#[test]
fn given_nothing_when_an_import_is_asked_for_then_it_says_so() {
    let machine = Machine::new();
    let said = machine.run(&["import"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""));
    assert_eq!(said.err, "No session of an agent was found.\n");
}

#[test]
fn given_an_agent_when_nobody_can_be_asked_then_it_is_shown_and_nothing_is_taken_without_yes() {
    let machine = Machine::new();
    machine.rollout(FIRST, 2);
    let shown = machine.run(&["import"]);
    assert!(shown.out.starts_with("AGENT") && shown.out.contains("Codex"), "{shown:?}");
    assert!(shown.err.contains("import --yes"), "{shown:?}");
    assert_eq!(machine.run(&["ls", "--json"]).ok().out, "");
    let dry = machine.run(&["import", "codex", "--dry-run"]);
    assert!(dry.out.contains("1 new session") && dry.err.contains("Nothing was changed."), "{dry:?}");
    assert_eq!(machine.run(&["ls", "--json"]).ok().out, "");
    let taken = machine.run(&["import", "--yes"]).ok();
    assert!(taken.out.contains("1 new session"), "{taken:?}");
    let listed = machine.run(&["import", "--list", "--json"]).ok().json_lines();
    assert_eq!((listed[0]["agent"].clone(), listed[0]["new"].clone()), (json!("codex"), json!(0)));
    assert_eq!(machine.run(&["ls", "--json", "--meta", "agent=codex"]).ok().ids(), [session(FIRST)]);
}

#[test]
fn given_rollouts_when_they_are_imported_twice_then_the_second_time_reads_and_changes_nothing() {
    let machine = Machine::new();
    let path = machine.rollout(FIRST, 3);
    assert!(added(&machine.import(&["codex"])) > 0);
    let before = machine.all_of(&session(FIRST));
    assert_eq!(machine.import(&["codex"]), Vec::<serde_json::Value>::new());
    // Without the ledger everything is read again, and nothing doubles.
    fs::remove_file(machine.place.dir().join(".banyan/imports/ledger.jsonl")).unwrap();
    assert_eq!(added(&machine.import(&["codex"])), 0);
    assert_eq!(added(&machine.import(&[path.to_str().unwrap(), "--again"])), 0);
    assert_eq!(machine.all_of(&session(FIRST)), before);
    assert!(machine.run(&["verify"]).ok().out.contains("Everything is sound."));
}

#[test]
fn given_a_rollout_that_grew_when_it_is_imported_again_then_it_is_as_if_it_had_been_imported_at_once() {
    let (pieces, whole) = (Machine::new(), Machine::new());
    let path = pieces.rollout(FIRST, 1);
    for number in 1..4 {
        pieces.import(&["codex"]);
        append(&path, &turn(number));
    }
    let reports = pieces.import(&["codex"]);
    assert_eq!(added(&reports), 2, "only what is new: {reports:?}");
    whole.rollout(FIRST, 4);
    whole.import(&["codex"]);
    let (mut ours, mut theirs) = (pieces.all_of(&session(FIRST)), whole.all_of(&session(FIRST)));
    for all in [&mut ours, &mut theirs] {
        all["meta"]["metadata"]["source"] = json!(null);
    }
    assert_eq!(ours["tree"], theirs["tree"]);
    assert_eq!(ours, theirs);
}

#[test]
fn given_a_user_who_changed_things_here_when_the_rollout_goes_on_then_all_of_that_stays() {
    let machine = Machine::new();
    let path = machine.rollout(FIRST, 1);
    machine.import(&["codex"]);
    let id = session(FIRST);
    machine.call("session::set-meta", &json!({"session_id": id, "title": "Mine"}));
    let message = crate::common::user("my own");
    let own = machine.call("session::append", &json!({"session_id": id, "message": message}))["entry_id"].clone();
    append(&path, &turn(1));
    assert_eq!(added(&machine.import(&["codex"])), 2);
    assert_eq!(machine.meta(&id)["title"], "Mine");
    assert_eq!(machine.call("session::tree", &json!({"session_id": id}))["active_leaf"], own);
    machine.call("session::delete", &json!({"session_id": id}));
    append(&path, &turn(2));
    machine.rollout("01a1e057-951f-7bf3-ba61-c0d73ab8256f", 1);
    let reports = machine.import(&["codex"]);
    let notes = reports.iter().flat_map(|report| report["notes"].as_array().unwrap());
    assert!(notes.into_iter().any(|note| note["note"].as_str().unwrap().contains("deleted here")), "{reports:?}");
    assert_eq!(machine.call("session::get", &json!({"session_id": id})), json!(null));
    assert!(added(&machine.import(&["codex", "--again"])) > 0, "asked for, it comes back");
}

#[test]
fn given_damaged_lines_when_they_are_imported_then_the_rest_is_taken_and_they_are_named() {
    let machine = Machine::new();
    let path = machine.rollout(FIRST, 1);
    let torn = &turn(1)[..40];
    append(&path, &format!("{torn}{}no json at all\n\u{0}\n{}", turn(2), turn(3)));
    let said = machine.run(&["import", "codex"]).ok();
    let name = path.to_str().unwrap();
    assert!(said.out.contains(&format!("{name}, line 4: ")), "{}", said.out);
    assert!(said.out.contains(&format!("{name}, line 6: ")), "{}", said.out);
    let texts = machine.run(&["show", &session(FIRST)]).ok().out;
    for text in ["ask 0", "ask 2", "answer 2", "ask 3", "answer 3"] {
        assert!(texts.contains(text), "{text} is not in {texts}");
    }
}

#[test]
fn given_times_when_only_what_is_new_is_wanted_then_old_rollouts_are_left() {
    let machine = Machine::new();
    let old = machine.rollout(FIRST, 1);
    let new = "01a1e057-951f-7bf3-ba61-c0d73ab8256f";
    machine.rollout(new, 1);
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(90 * 86_400);
    fs::File::options().append(true).open(&old).unwrap().set_modified(long_ago).unwrap();
    machine.import(&["codex", "--since", "30d"]);
    assert_eq!(machine.run(&["ls", "--json"]).ok().ids(), [session(new)]);
    assert_eq!(machine.run(&["import", "codex", "--since", "yesterday"]).code, Some(2));
}

#[test]
fn given_keep_original_when_a_rollout_is_imported_then_its_bytes_are_attached_once() {
    let machine = Machine::new();
    let path = machine.rollout(FIRST, 1);
    machine.import(&["codex", "--keep-original"]);
    machine.import(&["codex", "--keep-original", "--again"]);
    let id = session(FIRST);
    let listed = machine.call("session::list-attachments", &json!({"session_id": id}));
    let attachments = listed["attachments"].as_array().unwrap();
    assert_eq!(attachments.len(), 1, "{listed}");
    assert_eq!(attachments[0]["size"], fs::metadata(path).unwrap().len());
}

#[test]
fn given_a_server_when_it_is_asked_to_import_then_all_is_as_with_a_directory() {
    let here = Machine::new();
    let path = here.rollout(FIRST, 2);
    let served = here.place.serve();
    let there = here.asking(&served.url);
    assert!(added(&there.import(&["codex"])) > 0);
    assert_eq!(there.import(&["codex"]), Vec::<serde_json::Value>::new());
    append(&path, &turn(2));
    assert_eq!(added(&there.import(&["codex"])), 2);
    let tree = there.call("session::tree", &json!({"session_id": session(FIRST)}));
    assert!(there.home().join(".local/state/banyan/imports").exists());
    let local = Machine::new();
    local.rollout(FIRST, 3);
    local.import(&["codex"]);
    assert_eq!(local.call("session::tree", &json!({"session_id": session(FIRST)})), tree);
}

#[test]
fn given_a_rollout_that_was_put_away_when_it_is_imported_then_it_is_still_the_same_session() {
    let machine = Machine::new();
    let path = machine.rollout(FIRST, 1);
    machine.import(&["codex"]);
    let away = machine.home().join(".codex/archived_sessions").join(path.file_name().unwrap());
    fs::create_dir_all(away.parent().unwrap()).unwrap();
    fs::rename(&path, &away).unwrap();
    append(&away, &turn(1));
    assert_eq!(added(&machine.import(&["codex"])), 2);
    let id = session(FIRST);
    assert_eq!(machine.meta(&id)["metadata"]["archived"], true);
    // One that was deleted stays so, wherever its file goes.
    machine.call("session::delete", &json!({"session_id": id}));
    let elsewhere = path.with_file_name(format!("rollout-2026-01-03T03-04-05-{FIRST}.jsonl"));
    fs::rename(&away, &elsewhere).unwrap();
    assert_eq!(added(&machine.import(&["codex"])), 0);
    assert_eq!(machine.call("session::get", &json!({"session_id": id})), json!(null));
    assert!(added(&machine.import(&["codex", "--again"])) > 0, "asked for, it comes back");
}

#[test]
fn given_one_agent_that_is_read_again_when_another_goes_on_then_what_was_deleted_of_that_stays_deleted() {
    let machine = Machine::new();
    let path = machine.rollout(FIRST, 1);
    let name = "sessions/--home-dev-proj01--/2026-11-15T18-12-18-135Z_01a1e068-f856-7074-9100-6b6eec37c721.jsonl";
    let other = machine.home().join(".pi/agent").join(name);
    fs::create_dir_all(other.parent().unwrap()).unwrap();
    fs::copy(fixtures("pi").join(name), &other).unwrap();
    machine.import(&["codex", "pi"]);
    let id = session(FIRST);
    machine.call("session::delete", &json!({"session_id": id}));
    assert_eq!(machine.import(&["pi", "--again"]).len(), 1);
    append(&path, &turn(1));
    machine.import(&["codex"]);
    assert_eq!(machine.call("session::get", &json!({"session_id": id})), json!(null));
}

#[test]
fn given_a_relative_directory_when_it_is_searched_then_it_is_taken_from_where_the_user_is() {
    let machine = Machine::new();
    let metadata = json!({"cwd": machine.home().to_str().unwrap()});
    let created = machine.call("session::create", &json!({"metadata": metadata}));
    let message = crate::common::user("a pelican");
    machine.call("session::append", &json!({"session_id": created["session_id"], "message": message}));
    let found =
        |place: &str| machine.run(&["search", "pelican", "--workspace", place, "--json"]).out.lines().count();
    assert_eq!([".", "..", "sub/..", "sub"].map(found), [1, 1, 1, 0]);
}
