//! Damage to the files of the keys never gives a key more than it had, and never opens a directory.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Key, KeyStore, NewKey, Reach, RefusedKey, checked_line};

/// A directory with an operator's key, one that only reads, one with a scope, and one with a scope and a rate that only reads.
struct Directory {
    dir: TempDir,
    holders: Vec<Holder>,
}

/// A key and its text.
struct Holder {
    key: Key,
    text: String,
}

impl Directory {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = KeyStore::open(dir.path());
        let wishes = [
            json!({"name": "operator"}),
            json!({"name": "looks", "read_only": true}),
            json!({"name": "ada \"u\" ä", "scope": {"owner": "u_1", "level": 3}}),
            json!({"name": "bo", "scope": {"owner": "u_2"}, "read_only": true, "requests_per_second": 5}),
        ];
        let holders = wishes.map(|wish| {
            let (key, text) =
                store.create(serde_json::from_value::<NewKey>(wish).unwrap(), 1_700_000_000_000).unwrap();
            Holder { key: Key::clone(&key), text }
        });
        Self { dir, holders: holders.into() }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn keys(&self) -> PathBuf {
        self.path().join(".banyan/keys.json")
    }

    fn in_force(&self) -> PathBuf {
        self.path().join(".banyan/keys.in-force")
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(self.keys()).unwrap().split_inclusive('\n').map(str::to_owned).collect()
    }

    /// The names of the keys that a store accepts. No key may do more than when it was made.
    fn admitted(&self, store: &KeyStore) -> Vec<&str> {
        let mut admitted = Vec::new();
        for Holder { key, text } in &self.holders {
            let Some(found) = store.find(text) else { continue };
            let narrower = key.scope.iter().all(|(name, value)| found.scope.get(name) == Some(value));
            let slower = match (key.requests_per_second, found.requests_per_second) {
                (Some(before), Some(now)) => now <= before,
                (before, _) => before.is_none(),
            };
            assert!(narrower && slower && found.read_only >= key.read_only, "{found:?} from {key:?}");
            admitted.push(key.name.as_str());
        }
        assert_eq!(store.all().len(), admitted.len(), "there is a key that no one made");
        assert!(!store.is_open());
        admitted
    }
}

const ALL: [&str; 4] = ["operator", "looks", "ada \"u\" ä", "bo"];

/// What a damaged byte may become.
fn others(byte: u8) -> impl Iterator<Item = u8> {
    let bits = (0..8).map(move |bit| byte ^ (1 << bit));
    bits.chain([0, 0xff, b'\n', b' ', b'"', byte.wrapping_add(1)]).filter(move |other| *other != byte)
}

#[test]
fn no_flipped_byte_of_the_key_file_widens_a_key_and_each_closes_that_key_alone() {
    let directory = Directory::new();
    let sound = fs::read(directory.keys()).unwrap();
    let recorded = fs::read(directory.in_force()).unwrap();
    let mut line = 0;
    for at in 0..sound.len() {
        for other in others(sound[at]) {
            let mut damaged = sound.clone();
            damaged[at] = other;
            fs::write(directory.keys(), &damaged).unwrap();
            let store = KeyStore::open(directory.path());
            // A line feed that is lost takes the next line with it.
            let gone = if sound[at] == b'\n' { line..line + 2 } else { line..line + 1 };
            let expected: Vec<&str> =
                ALL.iter().enumerate().filter(|(at, _)| !gone.contains(at)).map(|(_, name)| *name).collect();
            assert_eq!(directory.admitted(&store), expected, "byte {at} is {other}");
            assert!(!store.refused().is_empty());
        }
        line += usize::from(sound[at] == b'\n');
    }
    // The checksum alone decides where the record of keys in force is missing.
    fs::remove_file(directory.in_force()).unwrap();
    for at in 0..sound.len() {
        let mut damaged = sound.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(directory.keys(), &damaged).unwrap();
        let store = KeyStore::open(directory.path());
        assert!(directory.admitted(&store).len() < ALL.len(), "byte {at}");
    }
    fs::write(directory.keys(), &sound).unwrap();
    fs::write(directory.in_force(), &recorded).unwrap();
    assert_eq!(directory.admitted(&KeyStore::open(directory.path())), ALL);
}

#[test]
fn no_flipped_byte_of_the_record_of_keys_in_force_opens_a_directory() {
    let directory = Directory::new();
    let keys = fs::read(directory.keys()).unwrap();
    let sound = fs::read(directory.in_force()).unwrap();
    for at in 0..sound.len() {
        for other in others(sound[at]) {
            let mut damaged = sound.clone();
            damaged[at] = other;
            fs::write(directory.in_force(), &damaged).unwrap();
            fs::write(directory.keys(), &keys).unwrap();
            assert_eq!(directory.admitted(&KeyStore::open(directory.path())), ALL, "byte {at} is {other}");
            fs::remove_file(directory.keys()).unwrap();
            let store = KeyStore::open(directory.path());
            assert!(directory.admitted(&store).is_empty());
            assert!(matches!(store.reach(), Reach::NoOne(_)));
        }
    }
}

#[test]
fn a_key_file_that_is_cut_anywhere_keeps_the_whole_lines() {
    let directory = Directory::new();
    let sound = fs::read(directory.keys()).unwrap();
    for length in 0..sound.len() {
        fs::write(directory.keys(), &sound[..length]).unwrap();
        let whole = sound[..length].iter().filter(|byte| **byte == b'\n').count();
        let store = KeyStore::open(directory.path());
        assert_eq!(directory.admitted(&store), ALL[..whole], "cut to {length}");
        assert!(store.refused().iter().any(|key| key.reason == "it is missing in the key file"));
    }
}

#[test]
fn a_sound_line_with_what_this_build_does_not_know_is_refused() {
    let directory = Directory::new();
    let id = directory.holders[2].key.id.as_str();
    let known: Value = serde_json::from_str(&directory.lines()[2]).unwrap();
    let with = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        let mut fields = known.as_object().unwrap().clone();
        fields.shift_remove("crc");
        change(&mut fields);
        checked_line::encode(&fields).unwrap()
    };
    let set = |name: &str, value: Value| with(&move |fields| drop(fields.insert(name.to_owned(), value.clone())));
    let lines = [
        (set("version", json!(2)), "it has version 2, which this build does not know"),
        (set("version", json!("1")), "invalid type: string \"1\", expected u32"),
        (set("access", json!("all")), "unknown variant `all`, expected `read` or `read-write`"),
        (set("sessions", json!({})), "expected value"),
        (set("sessions", json!({"with": {}})), "its scope is empty"),
        (set("sessions", json!({"without": {}})), "unknown variant `without`, expected `all` or `with`"),
        (set("role", json!("viewer")), "unknown field `role`"),
        (set("hash", json!("")), "its hash is not 64 hex digits"),
        (set("id", json!("../keys")), "its id is not 8 hex digits"),
    ];
    let missing = ["version", "name", "sessions", "access", "requests_per_second", "created_at", "hash"];
    let missing =
        missing.map(|name| (with(&|fields| drop(fields.shift_remove(name))), format!("missing field `{name}`")));
    let lines = lines.into_iter().map(|(line, reason)| (line, reason.to_owned())).chain(missing);
    fs::remove_file(directory.in_force()).unwrap();
    for (line, reason) in lines {
        let mut text = directory.lines();
        let whole = text.concat();
        text[2] = String::from_utf8(line).unwrap();
        fs::write(directory.keys(), text.concat()).unwrap();
        let store = KeyStore::open(directory.path());
        assert_eq!(directory.admitted(&store), ["operator", "looks", "bo"], "{reason}");
        let refused = store.refused();
        assert!(refused.len() == 1 && refused[0].reason.starts_with(&reason), "{refused:?}, not {reason}");
        fs::write(directory.keys(), whole).unwrap();
    }
    assert_eq!(KeyStore::open(directory.path()).all()[2].id, id);
}

#[test]
fn an_older_key_file_and_one_of_another_directory_admit_no_one_who_is_not_in_force() {
    let directory = Directory::new();
    let older = fs::read(directory.keys()).unwrap();
    let store = KeyStore::open(directory.path());
    store.remove("operator").unwrap();
    assert_eq!(directory.admitted(&store), ALL[1..]);
    fs::write(directory.keys(), &older).unwrap();
    let store = KeyStore::open(directory.path());
    assert_eq!(directory.admitted(&store), ALL[1..], "a key that was removed does not come back");
    let not_in_force = "it is not among the keys in force: the key file is older, or of another directory";
    let refused = |key: &Key| RefusedKey { id: key.id.clone(), reason: not_in_force.to_owned() };
    assert_eq!(store.refused(), [refused(&directory.holders[0].key)]);
    assert_eq!(store.reach(), Reach::Holders(3));

    let other = Directory::new();
    fs::copy(other.keys(), directory.keys()).unwrap();
    let store = KeyStore::open(directory.path());
    assert!(other.admitted(&store).is_empty() && directory.admitted(&store).is_empty());
    assert!(matches!(store.reach(), Reach::NoOne(_)));
}

#[test]
fn lines_that_are_refused_are_kept_until_they_are_removed() {
    let directory = Directory::new();
    let mut lines = directory.lines();
    lines[1] = "\u{0}damage".to_owned();
    fs::write(directory.keys(), [&lines[0], &lines[2], &lines[1]].map(String::as_str).concat()).unwrap();
    let store = KeyStore::open(directory.path());
    let (key, text) = store.create(NewKey { name: "new".to_owned(), ..NewKey::default() }, 0).unwrap();
    assert_eq!(store.find(&text), Some(key.clone()));
    assert_eq!(directory.lines()[..3], [lines[0].clone(), lines[2].clone(), format!("{}\n", lines[1])]);
    let ids: Vec<String> = store.refused().into_iter().map(|key| key.id).collect();
    assert_eq!(ids.len(), 3, "the line, and the two keys that are lost: {ids:?}");
    for id in &ids {
        store.remove(id).unwrap();
    }
    assert_eq!((store.refused(), directory.lines().len()), (vec![], 3));
    assert_eq!(KeyStore::open(directory.path()).reach(), Reach::Holders(3));
}

#[test]
fn an_id_that_two_keys_have_is_refused_and_a_line_that_is_there_twice_is_one_key() {
    let directory = Directory::new();
    let lines = directory.lines();
    fs::write(directory.keys(), [lines.concat(), lines.concat()].concat()).unwrap();
    assert_eq!(directory.admitted(&KeyStore::open(directory.path())), ALL);
    let mut wider: Value = serde_json::from_str(&lines[2]).unwrap();
    wider.as_object_mut().unwrap().shift_remove("crc");
    wider["sessions"] = json!("all");
    let wider = String::from_utf8(checked_line::encode(&wider).unwrap()).unwrap();
    fs::write(directory.keys(), [lines.concat(), wider].concat()).unwrap();
    for recorded in [true, false] {
        if !recorded {
            fs::remove_file(directory.in_force()).unwrap();
        }
        let store = KeyStore::open(directory.path());
        assert_eq!(directory.admitted(&store), ["operator", "looks", "bo"]);
    }
}

#[test]
fn a_store_stays_closed_when_its_files_disappear_until_it_is_opened_on_purpose() {
    let directory = Directory::new();
    let running = KeyStore::open(directory.path());
    let why = |store: &KeyStore| match store.reach() {
        Reach::NoOne(reason) => reason,
        reach => panic!("{reach:?}"),
    };
    fs::remove_file(directory.keys()).unwrap();
    running.refresh();
    for store in [&running, &KeyStore::open(directory.path())] {
        assert!(directory.admitted(store).is_empty());
        assert_eq!(why(store), "keys were in force and the key file is missing");
        assert_eq!(store.refused().len(), 4);
    }
    fs::create_dir(directory.keys()).unwrap();
    running.refresh();
    for store in [&running, &KeyStore::open(directory.path())] {
        assert_eq!(why(store), "the key file cannot be read: not a file");
        assert!(store.create(NewKey { name: "new".to_owned(), ..NewKey::default() }, 0).is_err());
    }
    fs::remove_dir(directory.keys()).unwrap();
    fs::remove_file(directory.in_force()).unwrap();
    running.refresh();
    assert_eq!(why(&running), "keys were in force and their files are missing");
    running.refresh();
    assert_eq!(why(&running), "keys were in force and their files are missing");

    // A new key is enough.
    let elsewhere = KeyStore::open(directory.path());
    let (_, text) = elsewhere.create(NewKey { name: "new".to_owned(), ..NewKey::default() }, 0).unwrap();
    assert!(running.find(&text).is_some());
    elsewhere.remove("new").unwrap();
    running.refresh();
    for store in [&running, &KeyStore::open(directory.path())] {
        assert_eq!(why(store), "keys were in force and the last one was removed");
    }
    elsewhere.reset_to_open().unwrap();
    running.refresh();
    for store in [&running, &KeyStore::open(directory.path())] {
        assert_eq!(store.reach(), Reach::Anyone);
    }
    // What was set aside does not count when it is put back.
    fs::rename(directory.keys().with_extension("json.aside-1"), directory.keys()).unwrap();
    assert!(matches!(KeyStore::open(directory.path()).reach(), Reach::NoOne(_)));
}

#[test]
fn a_directory_with_keys_is_not_opened() {
    let directory = Directory::new();
    let refused = KeyStore::open(directory.path()).reset_to_open().unwrap_err().to_string();
    assert_eq!(refused, "4 keys are still in force; remove them first with `banyan key rm`");
    assert_eq!(directory.admitted(&KeyStore::open(directory.path())), ALL);
}

/// A key file of the first form. The secrets are "one", "two" and "three".
fn unchecked() -> String {
    let hash = |secret: &str| blake3::hash(secret.as_bytes()).to_hex().to_string();
    format!(
        r#"{{
  "keys": [
    {{
      "id": "a1b2c3d4",
      "name": "ops",
      "scope": {{}},
      "read_only": false,
      "created_at": 1763586000000,
      "hash": "{}"
    }},
    {{
      "id": "00ff00ff",
      "name": "ada",
      "scope": {{
        "owner": "u_1"
      }},
      "read_only": true,
      "requests_per_second": 50,
      "created_at": 1763586000001,
      "hash": "{}"
    }},
    {{
      "id": "deadbeef",
      "name": "flipped",
      "rcope": {{
        "owner": "u_1"
      }},
      "read_only": true,
      "created_at": 1763586000002,
      "hash": "{}"
    }}
  ]
}}"#,
        hash("one"),
        hash("two"),
        hash("three")
    )
}

#[test]
fn a_key_file_of_the_first_form_is_taken_over_once() {
    let dir = tempfile::tempdir().unwrap();
    let banyan = dir.path().join(".banyan");
    fs::create_dir(&banyan).unwrap();
    fs::write(banyan.join("keys.json"), unchecked()).unwrap();
    let check = |store: &KeyStore| {
        let ops = store.find("banyan_a1b2c3d4_one").unwrap();
        let ada = store.find("banyan_00ff00ff_two").unwrap();
        assert!(ops.is_operator() && ops.name == "ops" && ops.created_at == 1_763_586_000_000);
        assert_eq!((&ada.scope, ada.read_only), (json!({"owner": "u_1"}).as_object().unwrap(), true));
        assert_eq!(ada.requests_per_second, Some(50));
        assert_eq!(store.find("banyan_deadbeef_three"), None);
        assert_eq!((store.refused().len(), store.reach()), (1, Reach::Holders(2)));
    };
    let store = KeyStore::open(dir.path());
    check(&store);
    assert!(store.refused()[0].reason.starts_with("unknown field `rcope`"), "{:?}", store.refused());
    assert!(!banyan.join("keys.in-force").exists(), "looking changes nothing");
    store.settle().unwrap();
    check(&store);
    check(&KeyStore::open(dir.path()));
    assert!(fs::read_to_string(banyan.join("keys.json")).unwrap().starts_with("{\"version\":1,"));
    // It counts no second time.
    fs::write(banyan.join("keys.json"), unchecked()).unwrap();
    let store = KeyStore::open(dir.path());
    assert_eq!((store.find("banyan_a1b2c3d4_one"), store.all().len()), (None, 0));
    assert!(matches!(store.reach(), Reach::NoOne(_)));
}

#[test]
fn a_file_of_the_first_form_whose_last_key_was_removed_admits_no_one() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join(".banyan")).unwrap();
    fs::write(dir.path().join(".banyan/keys.json"), "{\n  \"keys\": []\n}").unwrap();
    let store = KeyStore::open(dir.path());
    assert_eq!(store.reach(), Reach::NoOne("keys were in force and the last one was removed".to_owned()));
}
