//! What is derived is bound to its directory and checked: it is never believed, and rebuilt with a warning.

use std::path::Path;

use banyan::model::Position;
use banyan::verify::{Severity, verify};
use banyan::{Banyan, Delivery};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::written;
use crate::support::*;

const CATALOGUE: &str = ".banyan/index/catalogue.sqlite";

/// A closed directory with sessions of two tenants.
fn tenants() -> TempDir {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    for n in 0..60 {
        let id = format!("s{n:03}");
        let metadata = json!({"tenant": tenant_of(n)});
        store.ok("ensure", json!({"session_id": id, "title": format!("Title {n}"), "metadata": metadata}));
        store.say(&json!(id), "hello");
    }
    on_disk.close()
}

fn tenant_of(n: usize) -> &'static str {
    ["ann", "bob"][n % 2]
}

/// Everything that the list says, in each of its orders and for each tenant.
fn lists(store: &Banyan) -> Vec<Value> {
    let mut answers = Vec::new();
    for filter in [json!({}), json!({"metadata": {"tenant": "ann"}}), json!({"metadata": {"tenant": "bob"}})] {
        for order in ["created_desc", "created_asc", "updated_desc"] {
            let mut request = filter.clone();
            request["order"] = json!(order);
            request["limit"] = json!(100);
            answers.push(door(store).ok("list", request));
        }
    }
    answers
}

fn killed(dir: &Path) -> TempDir {
    let store = open(dir);
    let left = copied(dir);
    drop(store);
    left
}

#[test]
fn a_flipped_bit_anywhere_in_the_catalogue_changes_no_answer() {
    let closed = tenants();
    let expected = lists(&open(copied(closed.path()).path()));
    for (what, dir) in [("closed", copied(closed.path())), ("killed", killed(closed.path()))] {
        let whole = std::fs::read(dir.path().join(CATALOGUE)).unwrap();
        let step = whole.len() / 97;
        for at in (0..whole.len()).step_by(step) {
            let damaged = copied(dir.path());
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(damaged.path().join(CATALOGUE), bytes).unwrap();
            let (store, warnings) = open_hearing_warnings(damaged.path());
            assert_eq!(lists(&store), expected, "{what}, byte {at}");
            if what == "closed" {
                let warned = warnings.all().iter().any(|warning| warning.contains("the catalogue is rebuilt: "));
                assert!(warned, "{what}, byte {at}: {:?}", warnings.all());
            }
            store.close().unwrap();
        }
    }
}

#[test]
fn a_catalogue_of_another_directory_or_of_another_time_is_not_believed() {
    let closed = tenants();
    let expected = lists(&open(copied(closed.path()).path()));
    let foreign = tenants();
    let newer = copied(closed.path());
    let store = open(newer.path());
    door(&store).ok("set-meta", json!({"session_id": "s001", "title": "Later"}));
    store.close().unwrap();
    drop(store);
    for (what, other) in [("foreign", foreign.path()), ("newer", newer.path())] {
        for files in [&[CATALOGUE][..], &[CATALOGUE, ".banyan/index/catalogue.sqlite.sealed"]] {
            let dir = copied(closed.path());
            for file in files {
                std::fs::copy(other.join(file), dir.path().join(file)).unwrap();
            }
            let (store, warnings) = open_hearing_warnings(dir.path());
            assert_eq!(lists(&store), expected, "{what}");
            let warned = warnings.all().iter().any(|warning| warning.contains("the catalogue is rebuilt: "));
            assert!(warned, "{what}: {:?}", warnings.all());
        }
    }
}

#[cfg(unix)]
#[test]
fn a_catalogue_that_cannot_be_opened_does_not_keep_the_store_from_being_opened() {
    let dir = tenants();
    let expected = lists(&open(copied(dir.path()).path()));
    std::fs::remove_file(dir.path().join(CATALOGUE)).unwrap();
    std::fs::create_dir_all(dir.path().join(CATALOGUE).join("in the way")).unwrap();
    let (store, warnings) = open_hearing_warnings(dir.path());
    assert_eq!(lists(&store), expected);
    assert!(warnings.all().iter().any(|warning| warning.contains("catalogue")), "{:?}", warnings.all());
    door(&store).say(&json!("s001"), "goes on");
}

#[test]
fn exchanged_session_files_are_damage_of_both_sessions_and_of_no_other() {
    for catalogue in [true, false] {
        let dir = tenants();
        let (one, two) = (file_of(dir.path(), "s001"), file_of(dir.path(), "s002"));
        let between = dir.path().join("between");
        std::fs::rename(&one, &between).unwrap();
        std::fs::rename(&two, &one).unwrap();
        std::fs::rename(&between, &two).unwrap();
        if !catalogue {
            std::fs::remove_file(dir.path().join(CATALOGUE)).unwrap();
        }
        for _ in 0..2 {
            let store = open(dir.path());
            for (id, other) in [("s001", "s002"), ("s002", "s001")] {
                let refused = door(&store).call("get", json!({"session_id": id})).unwrap_err();
                assert_eq!(refused.code, "session/storage");
                assert!(refused.message.contains(other), "{}", refused.message);
                let append = json!({"session_id": id, "message": user("next")});
                assert_eq!(door(&store).refused("append", append), "session/storage");
            }
            for listed in lists(&store).iter().flat_map(|answer| answer["sessions"].as_array().unwrap()) {
                let n: usize = listed["session_id"].as_str().unwrap()[1..].parse().unwrap();
                let tenant = tenant_of(n);
                assert_eq!(
                    (&listed["metadata"]["tenant"], &listed["title"]),
                    (&json!(tenant), &json!(format!("Title {n}")))
                );
            }
            assert_eq!(door(&store).path(&json!("s003")), ["hello"]);
            store.close().unwrap();
        }
        let report = verify(dir.path(), &()).unwrap();
        let damaged: Vec<_> = report.findings.iter().map(|finding| finding.file.as_str()).collect();
        assert_eq!(damaged, ["s001.jsonl", "s002.jsonl"]);
    }
}

#[test]
fn a_flipped_bit_in_the_image_of_a_tree_changes_no_answer() {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    store.ok("ensure", json!({"session_id": "mine"}));
    for n in 0..80 {
        store.say(&json!("mine"), &format!("{n} {}", "word ".repeat(4000)));
    }
    let expected = store.ok("tree", json!({"session_id": "mine"}));
    let dir = on_disk.close();
    let image = dir.path().join(".banyan/index/trees/mine.tree");
    let whole = std::fs::read(&image).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        std::fs::write(&image, bytes).unwrap();
        let (store, warnings) = open_hearing_warnings(dir.path());
        assert_eq!(door(&store).ok("tree", json!({"session_id": "mine"})), expected, "byte {at}");
        assert!(warnings.all().iter().any(|warning| warning.contains("image")), "byte {at}: {:?}", warnings.all());
        drop(store);
    }
}

#[test]
fn verify_reports_a_damaged_catalogue_as_a_note() {
    let dir = tenants();
    let mut bytes = std::fs::read(dir.path().join(CATALOGUE)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(dir.path().join(CATALOGUE), bytes).unwrap();
    let report = verify(dir.path(), &()).unwrap();
    let [finding] = &report.findings[..] else { panic!("{report:?}") };
    assert_eq!((finding.file.as_str(), finding.severity), (CATALOGUE, Severity::Note));
    assert!(finding.reason.contains("rebuilt when the store is opened next"), "{}", finding.reason);
}

/// What a follower gets that comes back: the events, and whether it must read again.
fn resumed(store: &Banyan, after: Position) -> (Vec<Heard>, bool) {
    let (mut events, mut resync) = (Vec::new(), false);
    for delivery in Ears::after(store, after).deliveries() {
        match delivery {
            Delivery::Event(event) => events.push(Heard::of(&event)),
            Delivery::Resync => resync = true,
            other => panic!("{other:?}"),
        }
    }
    (events, resync)
}

#[test]
fn numbers_never_go_back_beside_an_older_state_directory() {
    let dir = written();
    let old = copied(dir.path());
    let store = open(dir.path());
    for n in 0..30 {
        door(&store).say(&json!("mine"), &format!("newer {n}"));
    }
    let head = store.head();
    let heard = Ears::after(&store, Position::BEGINNING).heard();
    store.close().unwrap();
    drop(store);
    std::fs::remove_dir_all(dir.path().join(".banyan")).unwrap();
    for (name, bytes) in files_in(old.path()).iter().filter(|(name, _)| name.starts_with(".banyan")) {
        let target = dir.path().join(name);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::write(target, bytes).unwrap();
    }
    for round in 0..3 {
        let store = open(dir.path());
        assert!(store.head() >= head, "round {round}");
        if round == 1 {
            door(&store).say(&json!("mine"), "after that");
        }
        for (seen, last) in heard.iter().enumerate() {
            let (events, resync) = resumed(&store, last.position);
            assert!(resync, "round {round}: {} events after event {seen}, and no resync", events.len());
        }
        store.close().unwrap();
    }
}

#[test]
fn a_session_that_was_copied_in_is_announced() {
    for catalogue in [true, false] {
        let elsewhere = OnDisk::new();
        door(&elsewhere.store).ok("ensure", json!({"session_id": "copied"}));
        door(&elsewhere.store).say(&json!("copied"), "from elsewhere");
        let elsewhere = elsewhere.close();
        let dir = written();
        let store = open(dir.path());
        let heard = Ears::after(&store, Position::BEGINNING).heard();
        store.close().unwrap();
        drop(store);
        std::fs::copy(file_of(elsewhere.path(), "copied"), file_of(dir.path(), "copied")).unwrap();
        if !catalogue {
            std::fs::remove_file(dir.path().join(CATALOGUE)).unwrap();
        }
        for round in 0..2 {
            let store = open(dir.path());
            assert_eq!(door(&store).path(&json!("copied")), ["from elsewhere"]);
            let (_, resync) = resumed(&store, heard.last().unwrap().position);
            assert!(resync, "round {round}");
            store.close().unwrap();
        }
        let store = open(dir.path());
        door(&store).say(&json!("mine"), "next");
        let new = Ears::after(&store, heard[0].position);
        drop(new);
        let at = Position::new(store.head(), 0);
        assert_eq!(resumed(&store, at), (Vec::new(), false), "what came after it is resumed from as ever");
    }
}

#[test]
fn a_clean_start_announces_nothing() {
    let dir = written();
    for round in 0..3 {
        let store = open(dir.path());
        let heard = Ears::after(&store, Position::BEGINNING).heard();
        let (events, resync) = resumed(&store, heard[0].position);
        assert_eq!((events.len(), resync), (heard.len() - 1, false), "round {round}");
        if round == 1 {
            let left = copied(dir.path());
            drop(store);
            let store = open(left.path());
            assert_eq!(resumed(&store, heard[0].position), (events, false), "after a kill");
        }
    }
}

#[test]
fn search_finds_a_session_that_was_copied_in_before_a_start_that_ended_at_once() {
    let dir = written();
    let find = |store: &Banyan, word: &str| {
        let found = door(store).ok("search", json!({"query": word, "wait_ms": 30_000}));
        found["hits"].as_array().unwrap().len()
    };
    let store = open(dir.path());
    assert_eq!(find(&store, "untouched"), 1);
    store.close().unwrap();
    drop(store);
    let elsewhere = OnDisk::new();
    door(&elsewhere.store).ok("ensure", json!({"session_id": "copied"}));
    door(&elsewhere.store).say(&json!("copied"), "zebra");
    let elsewhere = elsewhere.close();
    std::fs::copy(file_of(elsewhere.path(), "copied"), file_of(dir.path(), "copied")).unwrap();
    for _ in 0..2 {
        open(dir.path()).close().unwrap();
    }
    assert_eq!(find(&open(dir.path()), "zebra"), 1);
}

#[test]
fn a_sound_directory_is_opened_without_a_warning_whatever_was_done_last() {
    let steps: [fn(&Banyan); 5] = [
        |store| {
            door(store).say(&json!("mine"), "text");
        },
        |store| {
            let fork =
                door(store).ok("fork", json!({"session_id": "mine", "entry_id": "e3"}))["session_id"].clone();
            door(store).ok("delete", json!({"session_id": "mine"}));
            door(store).ok("delete", json!({"session_id": fork}));
        },
        |store| {
            let request = json!({"session_id": "mine", "name": "n", "mime": "m", "data": base64(b"attached")});
            let attachment = door(store).ok("put-attachment", request)["attachment"]["attachment_id"].clone();
            door(store).ok("delete-attachment", json!({"session_id": "mine", "attachment_id": attachment}));
        },
        |store| {
            door(store).ok("ensure", json!({"session_id": "short-lived"}));
            door(store).ok("delete", json!({"session_id": "short-lived"}));
        },
        |_| {},
    ];
    for (at, step) in steps.into_iter().enumerate() {
        let dir = written();
        let store = open(dir.path());
        step(&store);
        let left = copied(dir.path());
        store.close().unwrap();
        drop(store);
        for (what, dir) in [("killed", &left), ("closed", &dir)] {
            for _ in 0..2 {
                let (store, warnings) = open_hearing_warnings(dir.path());
                let head = store.head();
                store.close().unwrap();
                assert_eq!(warnings.all(), Vec::<String>::new(), "step {at}, {what}");
                assert_eq!(open(dir.path()).head(), head, "step {at}, {what}");
            }
        }
    }
}
