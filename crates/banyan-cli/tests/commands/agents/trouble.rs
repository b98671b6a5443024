//! Places that cannot be looked at, which are named and keep nothing else from being taken.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::json;

use super::{Machine, fixtures};

/// Puts a file where goose has its database, which is none.
pub(super) fn broken_database(machine: &Machine) -> PathBuf {
    let database = machine.home().join(".local/share/goose/sessions/sessions.db");
    fs::create_dir_all(database.parent().unwrap()).unwrap();
    fs::write(&database, "SQLite format 3\0 and then nothing that anybody could read").unwrap();
    database
}

#[test]
fn given_a_database_that_is_none_when_it_is_imported_then_it_is_named_and_counted() {
    let machine = Machine::new();
    let database = broken_database(&machine);
    let lines = machine.run(&["import", "goose", "--json"]).ok().json_lines();
    assert_eq!((lines[0]["agent"].clone(), lines.len()), (json!("goose"), 2), "{lines:?}");
    assert!(lines[0]["problem"].as_str().unwrap().contains(database.to_str().unwrap()), "{lines:?}");
    assert_eq!(lines[1]["summary"]["goose"]["unreadable"], 1);
    let said = machine.run(&["import", "goose"]).ok();
    assert!(said.out.contains("warning:") && said.out.contains(database.to_str().unwrap()), "{said:?}");
}

#[test]
fn given_a_folder_that_cannot_be_looked_into_when_the_home_is_imported_then_the_rest_is_taken() {
    let machine = Machine::new();
    let name = "sessions/--home-dev-proj01--/2026-11-15T18-12-18-135Z_01a1e068-f856-7074-9100-6b6eec37c721.jsonl";
    let file = machine.home().join(".pi/agent").join(name);
    let closed = machine.home().join(".pi/agent/sessions/--closed--");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::create_dir_all(&closed).unwrap();
    fs::copy(fixtures("pi").join(name), &file).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    // To whoever may read everything no folder is closed.
    let is_closed = fs::read_dir(&closed).is_err();
    let reports = machine.import(&["pi"]);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let problem = |path: &PathBuf| {
        let report = reports.iter().find(|report| report["path"] == path.to_str().unwrap());
        report.map(|report| report["problem"].is_string())
    };
    assert_eq!((problem(&file), problem(&closed)), (Some(false), is_closed.then_some(true)), "{reports:?}");
}
