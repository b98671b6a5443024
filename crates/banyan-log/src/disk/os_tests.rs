//! What the log relies on, asked of the real file system.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A directory of its own for one test, removed afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("banyan-os-disk-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn disk(&self) -> OsDisk {
        OsDisk::new(self.0.clone())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn listed(disk: &OsDisk, dir: &str) -> Vec<Listed> {
    let mut names = disk.list(dir).unwrap();
    names.sort_by(|a, b| a.name.cmp(&b.name));
    names
}

fn name(name: &str, is_dir: bool) -> Listed {
    Listed { name: name.to_owned(), is_dir }
}

fn content(disk: &OsDisk, path: &str) -> Option<Vec<u8>> {
    let file = disk.open(path).unwrap()?;
    let mut bytes = vec![0; file.len().unwrap() as usize];
    assert_eq!(file.read_at(0, &mut bytes).unwrap(), bytes.len());
    Some(bytes)
}

fn taken_by(outcome: LockOutcome) -> Option<String> {
    match outcome {
        LockOutcome::Held(_) => None,
        LockOutcome::Taken(owner) => Some(owner),
    }
}

#[test]
fn given_writes_out_of_order_when_read_then_the_gap_is_zeros_and_the_end_is_short() {
    let scratch = Scratch::new();
    let disk = scratch.disk();
    let file = disk.create("f").unwrap();

    file.write_at(4, b"tail").unwrap();
    file.write_at(0, b"he").unwrap();
    file.sync().unwrap();

    let mut buf = [b'?'; 16];
    assert_eq!(file.read_at(0, &mut buf).unwrap(), 8);
    assert_eq!(&buf[..8], b"he\0\0tail");
    assert_eq!(file.read_at(6, &mut buf).unwrap(), 2);
    assert_eq!(file.read_at(100, &mut buf).unwrap(), 0);
    assert!(file.modified().unwrap() > 0);
}

#[test]
fn given_a_file_when_its_length_is_set_then_it_is_cut_or_filled_with_zeros() {
    let scratch = Scratch::new();
    let disk = scratch.disk();
    let file = disk.create("f").unwrap();
    file.write_at(0, b"abcdef").unwrap();

    file.set_len(2).unwrap();
    file.set_len(4).unwrap();

    assert_eq!(content(&disk, "f").unwrap(), b"ab\0\0");
}

#[test]
fn given_an_existing_file_when_created_again_then_its_content_stays() {
    let scratch = Scratch::new();
    let disk = scratch.disk();
    disk.create("f").unwrap().write_at(0, b"kept").unwrap();

    let again = disk.create("f").unwrap();

    assert_eq!(again.len().unwrap(), 4);
}

#[test]
fn given_nothing_when_opened_listed_or_removed_then_absence_is_no_error() {
    let scratch = Scratch::new();
    let disk = scratch.disk();
    disk.create("file").unwrap();

    assert!(disk.open("none").unwrap().is_none());
    assert!(disk.open("no/where").unwrap().is_none());
    assert!(disk.open("file/below").unwrap().is_none());
    assert_eq!(disk.list("none").unwrap(), []);
    disk.remove("none").unwrap();
    disk.remove("file/below").unwrap();
}

#[test]
fn given_a_missing_directory_when_written_into_or_synced_then_it_is_not_found() {
    let scratch = Scratch::new();
    let disk = scratch.disk();

    let created = disk.create("no/file").map(drop);

    assert_eq!(created.unwrap_err().kind(), ErrorKind::NotFound);
    let synced = disk.sync_dir("no");
    assert_eq!(synced.unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn given_files_and_directories_when_listed_then_both_are_told_apart() {
    let scratch = Scratch::new();
    let disk = scratch.disk();
    disk.create_dir("a/b").unwrap();
    disk.create_dir("a/b").unwrap();
    disk.create("a/file").unwrap();

    assert_eq!(listed(&disk, ""), [name("a", true)]);
    assert_eq!(listed(&disk, "a"), [name("b", true), name("file", false)]);
}

#[test]
fn given_a_target_when_renamed_onto_then_it_is_replaced() {
    let scratch = Scratch::new();
    let disk = scratch.disk();
    disk.create("old").unwrap().write_at(0, b"old").unwrap();
    disk.create("new").unwrap().write_at(0, b"new").unwrap();

    disk.rename("new", "old").unwrap();
    disk.sync_dir("").unwrap();

    assert_eq!(listed(&disk, ""), [name("old", false)]);
    assert_eq!(content(&disk, "old").unwrap(), b"new");
}

#[test]
fn given_dirty_files_when_all_is_synced_then_it_succeeds() {
    let scratch = Scratch::new();
    let disk = scratch.disk();
    disk.create_dir("a").unwrap();
    disk.create("a/f").unwrap().write_at(0, b"x").unwrap();

    disk.sync_all().unwrap();
}

#[test]
fn given_a_root_that_is_missing_when_all_is_synced_then_it_is_not_found() {
    let scratch = Scratch::new();
    let disk = OsDisk::new(scratch.0.join("missing"));

    assert_eq!(disk.sync_all().unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn given_a_root_that_is_missing_when_a_directory_is_made_or_the_lock_taken_then_it_is_made() {
    let scratch = Scratch::new();
    let made = OsDisk::new(scratch.0.join("one/two"));
    let locked = OsDisk::new(scratch.0.join("three/four"));

    made.create_dir("").unwrap();
    made.create_dir("a").unwrap();
    let _held = locked.lock("lock", "pid 7").unwrap();

    assert_eq!(listed(&made, ""), [name("a", true)]);
    assert_eq!(listed(&locked, ""), [name("lock", false)]);
    made.sync_all().unwrap();
}

#[test]
fn given_a_path_that_leaves_the_root_when_used_then_it_is_refused() {
    let scratch = Scratch::new();
    let disk = scratch.disk();

    for path in ["../x", "/etc/x", "a/../../x"] {
        let refused = disk.open(path).map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{path}");
    }
}

#[test]
fn given_a_held_lock_when_asked_for_again_then_its_owner_is_named() {
    let scratch = Scratch::new();
    let (first, second) = (scratch.disk(), scratch.disk());

    let held = first.lock(".banyan/lock", "pid 7").unwrap();
    let refused = second.lock(".banyan/lock", "pid 8").unwrap();

    assert_eq!(taken_by(refused).as_deref(), Some("pid 7"));
    assert_eq!(taken_by(held), None);
}

#[test]
fn given_a_dropped_lock_when_asked_for_again_then_the_new_owner_replaces_the_longer_text() {
    let scratch = Scratch::new();
    let disk = scratch.disk();
    drop(disk.lock(".banyan/lock", "pid 123456").unwrap());

    let _held = disk.lock(".banyan/lock", "pid 8").unwrap();

    let refused = disk.lock(".banyan/lock", "pid 9").unwrap();
    assert_eq!(taken_by(refused).as_deref(), Some("pid 8"));
}

#[cfg(target_os = "linux")]
#[test]
fn given_a_name_that_is_not_utf8_when_listed_then_it_shows_as_lossy_text() {
    use std::os::unix::ffi::OsStrExt;

    let scratch = Scratch::new();
    let odd = std::ffi::OsStr::from_bytes(b"odd\xff");
    fs::write(scratch.0.join(odd), b"").unwrap();
    let disk = scratch.disk();

    assert_eq!(listed(&disk, ""), [name("odd\u{fffd}", false)]);
    assert!(disk.open("odd\u{fffd}").unwrap().is_none());
}

#[cfg(unix)]
#[test]
fn given_a_link_to_a_directory_when_listed_then_it_is_a_directory() {
    let scratch = Scratch::new();
    let disk = scratch.disk();
    disk.create_dir("real").unwrap();
    std::os::unix::fs::symlink(scratch.0.join("real"), scratch.0.join("link")).unwrap();

    assert_eq!(listed(&disk, ""), [name("link", true), name("real", true)]);
}

/// The lock is on the directory, too: a lock file that was removed lets nobody else in, and the owner puts it back.
#[cfg(unix)]
#[test]
fn removing_the_lock_file_lets_nobody_else_in() {
    let dir = tempfile::tempdir().unwrap();
    let disk = || OsDisk::new(dir.path().to_owned());
    let LockOutcome::Held(guard) = disk().lock(".banyan/lock", "pid 1").unwrap() else { panic!("it is free") };
    std::fs::remove_file(dir.path().join(".banyan/lock")).unwrap();
    assert!(matches!(disk().lock(".banyan/lock", "pid 2").unwrap(), LockOutcome::Taken(_)));
    guard.check().unwrap();
    let LockOutcome::Taken(owner) = disk().lock(".banyan/lock", "pid 3").unwrap() else { panic!("it is taken") };
    assert_eq!(owner, "pid 1");
    drop(guard);
    assert!(matches!(disk().lock(".banyan/lock", "pid 4").unwrap(), LockOutcome::Held(_)));
}

/// A check must not leave a trace: the lock file keeps what its last owner wrote, and is not created.
#[test]
fn a_lock_that_changes_nothing_keeps_others_out_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let disk = || OsDisk::new(dir.path().to_owned());
    let LockOutcome::Held(guard) = disk().lock_unchanged(".banyan/lock").unwrap() else { panic!("it is free") };
    assert!(!dir.path().join(".banyan").exists());
    drop(guard);
    drop(disk().lock(".banyan/lock", "pid 1").unwrap());
    let LockOutcome::Held(guard) = disk().lock_unchanged(".banyan/lock").unwrap() else { panic!("it is free") };
    assert!(
        matches!(disk().lock(".banyan/lock", "pid 2").unwrap(), LockOutcome::Taken(owner) if owner == "pid 1")
    );
    drop(guard);
    assert_eq!(std::fs::read_to_string(dir.path().join(".banyan/lock")).unwrap(), "pid 1");
}
