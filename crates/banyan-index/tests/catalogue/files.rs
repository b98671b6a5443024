//! What becomes of the catalogue's file: kept, missing, foreign, damaged.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::support::*;
use banyan_index::{Catalogue, IndexError, Opened, RebuildReason};
use banyan_model::CommitNo;
use tempfile::TempDir;

fn place() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("catalogue.sqlite");
    (dir, path)
}

/// The names of all files beside the catalogue, sorted.
fn names(dir: &TempDir) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn built(path: &Path) -> Catalogue {
    let (catalogue, reason) = unready(path);
    assert_eq!(reason, RebuildReason::Missing);
    rebuild(&catalogue, &[session("a"), session("b")]);
    catalogue
}

#[test]
fn given_no_file_when_opened_then_it_is_missing_and_answers_nothing_until_rebuilt() {
    let (_dir, path) = place();
    let (catalogue, reason) = unready(&path);
    assert_eq!(reason, RebuildReason::Missing);
    assert!(matches!(catalogue.list(&ALL), Err(IndexError::Unbuilt)));
    rebuild(&catalogue, &[session("a")]);
    assert_eq!(ids(&catalogue, &ALL), ["a"]);
    assert_eq!(catalogue.applied().unwrap(), CommitNo(7));
}

#[test]
fn given_a_closed_catalogue_when_opened_again_then_it_holds_all_that_was_noted() {
    let (dir, path) = place();
    let catalogue = built(&path);
    catalogue.note(session("c"));
    catalogue.set_state("directory", "5").unwrap();
    catalogue.flush_through(CommitNo(8)).unwrap();
    catalogue.note(with_meta(session("a"), |meta| meta.updated_at = 3));
    catalogue.sync().unwrap();
    catalogue.close().unwrap();
    assert_eq!(names(&dir), ["catalogue.sqlite", "catalogue.sqlite.sealed"]);
    assert!(matches!(catalogue.list(&ALL), Err(IndexError::Unbuilt)));

    let catalogue = ready(&path);
    assert_eq!(ids(&catalogue, &ALL), ["a", "c", "b"]);
    assert_eq!(catalogue.applied().unwrap(), CommitNo(8));
    assert_eq!(catalogue.state("directory").unwrap(), Some("5".to_owned()));
}

#[test]
fn given_a_process_that_ended_without_closing_when_opened_again_then_what_was_flushed_is_there() {
    let (_dir, path) = place();
    let catalogue = built(&path);
    catalogue.note(session("c"));
    catalogue.flush_through(CommitNo(8)).unwrap();
    catalogue.note(session("lost"));
    // A copy of the files at this moment is what a killed process leaves.
    let (_copy, copied) = place();
    for end in ["", "-wal"] {
        let name = |path: &Path| PathBuf::from(format!("{}{end}", path.display()));
        fs::copy(name(&path), name(&copied)).unwrap();
    }
    let catalogue = ready(&copied);
    assert_eq!(ids(&catalogue, &ALL), ["c", "b", "a"]);
    assert_eq!(catalogue.applied().unwrap(), CommitNo(8));
}

#[test]
fn given_a_rebuild_that_failed_when_opened_again_then_the_catalogue_is_missing() {
    let (dir, path) = place();
    let catalogue = built(&path);
    let rebuilt = catalogue.rebuild::<IndexError>(|sink| {
        sink.put(&session("z"))?;
        Err(IndexError::Unbuilt)
    });
    assert!(matches!(rebuilt, Err(IndexError::Unbuilt)));
    assert!(matches!(catalogue.list(&ALL), Err(IndexError::Unbuilt)));
    drop(catalogue);
    let (_, reason) = unready(&path);
    assert_eq!(reason, RebuildReason::Missing);
    assert_eq!(names(&dir), Vec::<String>::new());
}

#[test]
fn given_a_file_that_is_no_database_when_opened_then_it_is_moved_aside() {
    let (dir, path) = place();
    fs::write(&path, "my shopping list").unwrap();
    let (catalogue, reason) = unready(&path);
    assert_eq!(reason, RebuildReason::Foreign);
    assert_eq!(names(&dir), ["catalogue.sqlite.foreign"]);
    assert_eq!(fs::read_to_string(dir.path().join("catalogue.sqlite.foreign")).unwrap(), "my shopping list");
    rebuild(&catalogue, &[session("a")]);
    assert_eq!(ids(&catalogue, &ALL), ["a"]);
}

#[test]
fn given_another_programs_database_when_opened_then_it_is_moved_aside() {
    let (dir, path) = place();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE shopping (item TEXT)").unwrap();
    drop(other);
    let (_, reason) = unready(&path);
    assert_eq!(reason, RebuildReason::Foreign);
    assert_eq!(names(&dir), ["catalogue.sqlite.foreign"]);
}

#[test]
fn given_a_catalogue_of_another_version_when_opened_then_it_is_removed() {
    let (dir, path) = place();
    built(&path).close().unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.pragma_update(None, "user_version", 99).unwrap();
    drop(other);
    let (_, reason) = unready(&path);
    assert_eq!(reason, RebuildReason::OtherVersion(99));
    assert_eq!(names(&dir), Vec::<String>::new());
}

#[test]
fn given_a_catalogue_without_a_table_when_opened_then_it_is_damaged() {
    let (dir, path) = place();
    built(&path).close().unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("DROP TABLE by_created").unwrap();
    drop(other);
    let (_, reason) = unready(&path);
    assert!(matches!(reason, RebuildReason::Damaged(_)), "{reason}");
    assert_eq!(names(&dir), Vec::<String>::new());
}

#[test]
fn given_an_empty_or_cut_file_when_opened_then_it_is_damaged() {
    for length in [0, 1000, 5000] {
        let (dir, path) = place();
        built(&path).close().unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        let (_, reason) = unready(&path);
        assert!(matches!(reason, RebuildReason::Damaged(_)), "cut to {length}: {reason}");
        assert_eq!(names(&dir), Vec::<String>::new());
    }
}

#[test]
fn given_pages_overwritten_while_it_is_open_when_they_are_read_then_damage_is_reported_and_a_rebuild_heals_it() {
    let (_dir, path) = place();
    let catalogue = built(&path);
    for i in 0..2000 {
        catalogue.note(session(&format!("s{i:04}")));
    }
    catalogue.close().unwrap();
    let catalogue = ready(&path);
    let length = fs::metadata(&path).unwrap().len();
    let mut file = fs::File::options().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(20 * 4096)).unwrap();
    file.write_all(&vec![0xa5; usize::try_from(length).unwrap() - 20 * 4096]).unwrap();
    drop(file);

    assert!(!catalogue.is_damaged());
    let error = catalogue.list(&ALL).unwrap_err();
    assert!(matches!(error, IndexError::Damaged { .. }), "{error}");
    assert!(catalogue.is_damaged());
    catalogue.note(session("c"));
    rebuild(&catalogue, &[session("a"), session("b")]);
    assert!(!catalogue.is_damaged());
    assert_eq!(ids(&catalogue, &ALL), ["c", "b", "a"]);
}

#[test]
fn given_a_flipped_bit_in_a_closed_catalogue_when_opened_then_it_is_damaged() {
    let (dir, path) = place();
    let catalogue = built(&path);
    catalogue.close().unwrap();
    for name in names(&dir) {
        let whole: Vec<(PathBuf, Vec<u8>)> = names(&dir)
            .into_iter()
            .map(|name| dir.path().join(name))
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        let damaged = dir.path().join(&name);
        let length = fs::read(&damaged).unwrap().len();
        for at in (0..length).step_by(length.div_ceil(200)) {
            whole.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
            let mut bytes = fs::read(&damaged).unwrap();
            bytes[at] ^= 1 << (at % 8);
            fs::write(&damaged, bytes).unwrap();
            let (_, reason) = unready(&path);
            let expected = matches!(
                reason,
                RebuildReason::Damaged(_) | RebuildReason::Foreign | RebuildReason::OtherVersion(_)
            );
            assert!(expected, "{name}, byte {at}: {reason}");
        }
        whole.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    }
}

#[test]
fn given_a_catalogue_of_another_directory_when_opened_then_it_is_not_used() {
    for is_closed in [true, false] {
        let (_dir, path) = place();
        let catalogue = built(&path);
        catalogue.sync().unwrap();
        if is_closed {
            catalogue.close().unwrap();
        }
        match Catalogue::open(&path, "another").unwrap() {
            Opened::Ready(_) => panic!("ready"),
            Opened::Rebuild(_, reason) => assert_eq!(reason, RebuildReason::OtherDirectory),
        }
    }
}

#[test]
fn given_no_folder_when_opened_and_rebuilt_then_the_error_names_what_is_missing() {
    let (dir, _) = place();
    let (catalogue, _) = unready(&dir.path().join("no/such/folder"));
    let error = catalogue.rebuild::<IndexError>(|_| Ok(CommitNo(0))).unwrap_err();
    assert!(error.to_string().contains("no/such/folder"), "{error}");
}
