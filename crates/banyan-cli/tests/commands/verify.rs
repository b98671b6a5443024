//! `banyan verify`: sound, damaged, absent, in use.

use std::fs;

use crate::common::Place;
use serde_json::json;

#[test]
fn a_sound_directory_is_said_to_be_so() {
    let place = Place::new();
    place.session("s", "", &["one", "two"]);
    let said = place.run(&["verify"]).ok();
    assert!(
        said.out.starts_with("Read 1 session, 3 records, ") && said.out.ends_with("Everything is sound.\n"),
        "{said:?}"
    );
    let report = &place.run(&["verify", "--json"]).ok().json_lines()[0];
    assert_eq!(
        (&report["sound"], &report["sessions"], &report["findings"]),
        (&json!(true), &json!(1), &json!([]))
    );
}

#[test]
fn damage_is_named_by_file_and_line() {
    let place = Place::new();
    place.session("s", "", &["one", "two"]);
    let file = place.dir().join("s.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("\"one\"", "\"0ne\"", 1)).unwrap();

    let said = place.run(&["verify"]);
    assert_eq!((said.code, said.err.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.out.starts_with("s.jsonl:2: ") && said.out.ends_with("1 place of damage.\n"), "{said:?}");
    let said = place.run(&["verify", "--json"]);
    assert_eq!(said.code, Some(1));
    let report = &said.json_lines()[0];
    let finding = &report["findings"][0];
    assert_eq!(
        (&report["sound"], &finding["file"], &finding["line"]),
        (&json!(false), &json!("s.jsonl"), &json!(2))
    );
}

#[test]
fn a_directory_that_is_not_there_is_no_sound_one() {
    let place = Place::new();
    assert_eq!(place.run(&["verify", "--json"]).refusal(), (Some(3), "session/storage".into()));
    assert!(!place.dir().exists());
}

#[test]
fn a_directory_in_use_is_left_to_its_owner() {
    let place = Place::new();
    let mut owner = place.stream();
    owner.send(&json!({"id": 1, "function": "session::list"}));
    owner.answer();
    let said = place.run(&["verify"]);
    assert_eq!((said.code, said.err.contains(&owner.child.id().to_string())), (Some(3), true), "{said:?}");
    drop(owner.input.take());
    owner.child.wait().unwrap();
}

#[test]
fn a_file_that_is_gone_is_reported_with_what_to_do_and_repair_says_first_what_it_does() {
    let place = Place::new();
    place.session("s", "", &["one", "two"]);
    place.session("t", "", &["three"]);
    fs::remove_file(place.dir().join("s.jsonl")).unwrap();
    let said = place.run(&["verify"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("s.jsonl: is missing") && said.out.contains("--repair --forget s"), "{said:?}");
    let said = place.run(&["show", "s"]);
    assert!(said.code != Some(0) && said.err.contains("--forget s"), "{said:?}");

    let said = place.run(&["verify", "--forget", "s"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    let said = place.run(&["verify", "--repair", "--forget", "s"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), "warning: s.jsonl: is missing; it had 826 bytes\n"));
    assert!(said.out.starts_with("Repair:\n  s.jsonl: end the session\n"), "{said:?}");
    assert!(said.out.ends_with("Everything is sound.\n"), "{said:?}");
    let said = place.run(&["verify", "--repair", "--json"]).ok();
    assert_eq!(said.json_lines()[0]["repaired"], json!([]));
}

#[test]
fn what_is_damaged_is_marked_in_exports_and_warned_of() {
    let place = Place::new();
    place.session("s", "", &["one", "two", "three"]);
    let file = place.dir().join("s.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("\"two\"", "\"tw0\"", 1)).unwrap();
    for form in ["markdown", "html", "session-log"] {
        let said = place.run(&["export", "s", "--to", form]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.out.contains("is damaged and was left out") && said.out.contains("three"), "{said:?}");
        assert!(!said.out.contains("tw0"), "{said:?}");
        assert!(said.err.contains("1 entry is damaged and left out"), "{said:?}");
    }
    let said =
        place.run(&["export", "s", "--to", "opa", "-o", place.dir().with_extension("opa").to_str().unwrap()]);
    assert!(said.code == Some(0) && said.err.contains("1 entry is damaged and left out"), "{said:?}");
    let said = place.run(&["show", "s"]);
    assert!(said.code == Some(0) && said.err.contains("is damaged and was left out"), "{said:?}");
    let said = place.run(&["show", "s", "--tree"]);
    assert_eq!(said.out.matches("  damaged").count(), 1, "{said:?}");
}
