//! What the disk in memory does while nothing goes wrong.

use std::collections::BTreeSet;

use super::bytes::CHUNK;
use super::dice::Dice;
use super::*;

#[path = "mem/crash_tests.rs"]
mod crash_tests;
#[path = "mem/fault_tests.rs"]
mod fault_tests;
#[path = "mem/moment_tests.rs"]
mod moment_tests;

fn put_synced(disk: &MemDisk, path: &str, bytes: &[u8]) {
    let file = disk.create(path).unwrap();
    file.write_at(0, bytes).unwrap();
    file.sync().unwrap();
    disk.sync_dir(split(path).0).unwrap();
}

fn all(disk: &MemDisk) -> Vec<(String, Vec<u8>)> {
    let read = |path: String| disk.read_file(&path).map(|bytes| (path, bytes));
    disk.paths().into_iter().filter_map(read).collect()
}

fn files(expected: &[(&str, &[u8])]) -> Vec<(String, Vec<u8>)> {
    let owned = |(path, bytes): &(&str, &[u8])| (path.to_string(), bytes.to_vec());
    expected.iter().map(owned).collect()
}

fn is_held(outcome: &LockOutcome) -> bool {
    matches!(outcome, LockOutcome::Held(_))
}

/// The different outcomes of many random crashes.
fn outcomes<T: Ord>(disk: &MemDisk, look: impl Fn(&MemDisk) -> T) -> BTreeSet<T> {
    let found = (0..400).map(|seed| look(&disk.after_crash(Fate::Random(seed))));
    found.collect()
}

#[test]
fn given_writes_out_of_order_when_read_then_the_gap_is_zeros_and_the_end_is_short() {
    let file = MemDisk::new().create("f").unwrap();

    file.write_at(4, b"tail").unwrap();
    file.write_at(0, b"he").unwrap();

    let mut buf = [b'?'; 16];
    assert_eq!(file.read_at(0, &mut buf).unwrap(), 8);
    assert_eq!(&buf[..8], b"he\0\0tail");
    assert_eq!(file.read_at(6, &mut buf).unwrap(), 2);
    assert_eq!(file.read_at(u64::MAX, &mut buf).unwrap(), 0);
    let too_far = file.write_at(u64::MAX, b"x").unwrap_err();
    assert_eq!(too_far.kind(), ErrorKind::FileTooLarge);
}

#[test]
fn given_a_file_when_its_length_is_set_then_it_is_cut_or_filled_with_zeros() {
    let disk = MemDisk::new();
    let file = disk.create("f").unwrap();
    file.write_at(0, b"abcdef").unwrap();

    file.set_len(2).unwrap();
    file.set_len(4).unwrap();

    assert_eq!(disk.read_file("f").unwrap(), b"ab\0\0");
    assert_eq!(file.len().unwrap(), 4);
}

#[test]
fn given_random_edits_across_chunks_when_read_then_they_are_those_of_a_plain_vector() {
    let mut dice = Dice::new(1, 2);
    for _ in 0..50 {
        let (mut bytes, mut model) = (Bytes::default(), Vec::new());
        for fill in 1..12u8 {
            let before = (bytes.clone(), model.clone());
            let near = |dice: &mut Dice| dice.below(4) * CHUNK + dice.below(5);
            let (at, len) = (near(&mut dice), near(&mut dice));
            if dice.one_in(3) {
                bytes.resize(at);
                model.resize(at, 0);
            } else if len > 0 {
                bytes.write(at, &vec![fill; len]);
                model.resize(model.len().max(at + len), 0);
                model[at..at + len].fill(fill);
            }

            assert!(bytes.to_vec() == model && bytes.len() == model.len());
            assert!(before.0.to_vec() == before.1, "a copy was changed");
            let mut buf = vec![0; len];
            let read = bytes.read(at, &mut buf);
            let expected = model.get(at..model.len().min(at + len));
            assert!(&buf[..read] == expected.unwrap_or_default());
        }
    }
}

#[test]
fn given_a_clone_when_one_writes_then_the_other_sees_it() {
    let disk = MemDisk::new();
    disk.clone().create("f").unwrap().write_at(0, b"x").unwrap();

    assert_eq!(disk.open("f").unwrap().unwrap().len().unwrap(), 1);
}

#[test]
fn given_a_tree_when_listed_opened_or_removed_then_it_behaves_as_a_file_system() {
    let disk = MemDisk::new();
    disk.create_dir("a/b").unwrap();
    disk.create_dir("").unwrap();
    disk.create("a/f").unwrap();

    let listed = |name: &str, is_dir| Listed { name: name.to_owned(), is_dir };
    assert_eq!(disk.list("").unwrap(), [listed("a", true)]);
    assert_eq!(disk.list("a").unwrap(), [listed("b", true), listed("f", false)]);
    assert_eq!(disk.list("none").unwrap(), []);
    assert!(disk.open("none/f").unwrap().is_none());
    disk.remove("none/f").unwrap();

    let kind = |result: io::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(disk.list("a/f").map(drop)), ErrorKind::NotADirectory);
    assert_eq!(kind(disk.open("a").map(drop)), ErrorKind::IsADirectory);
    assert_eq!(kind(disk.create("none/f").map(drop)), ErrorKind::NotFound);
    assert_eq!(kind(disk.rename("none", "x")), ErrorKind::NotFound);
    assert_eq!(kind(disk.rename("a/f", "none/f")), ErrorKind::NotFound);
    assert_eq!(kind(disk.remove("a")), ErrorKind::IsADirectory);
    assert_eq!(kind(disk.sync_dir("none")), ErrorKind::NotFound);
    assert_eq!(kind(disk.create_dir("a/f/c")), ErrorKind::NotADirectory);
    assert_eq!(kind(disk.remove("../x")), ErrorKind::InvalidInput);
}

#[test]
fn given_a_target_when_renamed_onto_then_it_is_replaced_and_open_files_follow() {
    let disk = MemDisk::new();
    disk.create("old").unwrap().write_at(0, b"old").unwrap();
    let new = disk.create("new").unwrap();

    disk.rename("new", "old").unwrap();
    new.write_at(0, b"later").unwrap();

    assert_eq!(all(&disk), files(&[("old", b"later")]));
}

#[test]
fn given_a_write_when_made_then_the_modification_count_grows_even_after_a_crash() {
    let disk = MemDisk::crashable(1);
    put_synced(&disk, "f", b"1");
    let before = disk.open("f").unwrap().unwrap().modified().unwrap();
    let later = disk.after_crash(Fate::LoseUnsynced);
    let file = later.open("f").unwrap().unwrap();
    assert_eq!(file.modified().unwrap(), before);

    file.write_at(0, b"2").unwrap();

    assert!(file.modified().unwrap() > before);
}

#[test]
fn given_a_plain_disk_when_crashed_then_all_is_kept_and_the_copy_is_apart() {
    let disk = MemDisk::new();
    disk.create_dir("a").unwrap();
    disk.create("a/f").unwrap().write_at(0, b"x").unwrap();

    let found = disk.after_crash(Fate::LoseUnsynced);
    disk.open("a/f").unwrap().unwrap().set_len(0).unwrap();

    assert_eq!(all(&found), files(&[("a/f", b"x")]));
}

#[test]
fn given_files_put_by_the_test_when_crashed_then_they_are_durable_whatever_was_pending() {
    let disk = MemDisk::crashable(1);
    disk.write_file("a/b/f", b"1");
    disk.create("a/b/g").unwrap().write_at(0, b"old").unwrap();
    disk.write_file("a/b/g", b"2");
    disk.write_file("h", b"3");
    disk.remove_file("h");
    disk.remove_file("none/h");

    for seed in 0..50 {
        let found = disk.after_crash(Fate::Random(seed));
        assert_eq!(all(&found), files(&[("a/b/f", b"1"), ("a/b/g", b"2")]));
    }
    assert_eq!(disk.read_file("a"), None);
    assert_eq!(disk.read_file("none"), None);
}

#[test]
fn given_a_lock_when_held_then_others_learn_who_until_it_is_dropped_or_the_power_fails() {
    let disk = MemDisk::crashable(1);
    let held = disk.lock("lock", "pid 7").unwrap();
    assert!(is_held(&held));

    match disk.clone().lock("lock", "pid 8").unwrap() {
        LockOutcome::Taken(owner) => assert_eq!(owner, "pid 7"),
        LockOutcome::Held(_) => panic!("the lock was given twice"),
    }
    let found = disk.after_crash(Fate::KeepAll);
    assert!(is_held(&found.lock("lock", "pid 9").unwrap()));
    drop(held);
    assert!(is_held(&disk.lock("lock", "pid 8").unwrap()));
}

#[test]
fn given_many_threads_when_they_write_a_plain_disk_then_every_write_is_there() {
    let disk = MemDisk::new();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let disk = &disk;
            scope.spawn(move || {
                let file = disk.create(&format!("f{thread}")).unwrap();
                for at in 0..100 {
                    file.write_at(at, &[thread]).unwrap();
                    file.sync().unwrap();
                }
            });
        }
    });

    let expected = (0..4u8).map(|thread| (format!("f{thread}"), vec![thread; 100]));
    assert_eq!(all(&disk), expected.collect::<Vec<_>>());
    assert_eq!(disk.ops(), 4 + 4 * 200);
}
