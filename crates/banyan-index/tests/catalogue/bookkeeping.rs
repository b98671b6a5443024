//! What the catalogue remembers of files beside the list: incarnations, forks, blobs, commits.

use crate::support::*;
use banyan_index::{Catalogue, IndexError, SeenFile, Standing};
use banyan_model::{CommitNo, SessionId};

const NONE: [blake3::Hash; 0] = [];

fn seen(catalogue: &Catalogue) -> Vec<SeenFile> {
    let mut files = Vec::new();
    catalogue.files(|file| files.push(file)).unwrap();
    files.sort_by(|a, b| a.stem.cmp(&b.stem));
    files
}

#[test]
fn given_a_noted_session_when_asked_then_every_answer_has_it_before_any_flush() {
    let catalogue = Catalogue::in_memory().unwrap();
    let row = session("a");
    catalogue.note(row.clone());
    assert_eq!(catalogue.pending(), 1);
    assert_eq!(ids(&catalogue, &ALL), ["a"]);
    assert_eq!(catalogue.get(&SessionId::from("a")).unwrap(), Some(row.clone()));
    assert_eq!(catalogue.pending(), 1);
    assert_eq!(catalogue.count().unwrap(), 1);
    assert_eq!(catalogue.pending(), 0);
    assert_eq!(catalogue.file(&key("a", "b1")).unwrap(), Some(row));
    let file = SeenFile {
        stem: "a".to_owned(),
        key: key("a", "b1"),
        standing: Standing::Listed,
        length: 100,
        modified: 200,
        commit: CommitNo(1),
    };
    assert_eq!(seen(&catalogue), [file]);
}

#[test]
fn given_a_deleted_session_with_forks_when_its_file_is_retained_then_it_is_kept_but_not_listed() {
    for flush_between in [false, true] {
        let catalogue = Catalogue::in_memory().unwrap();
        let base = with_blobs(session("base"), &["image"]);
        catalogue.note(base.clone());
        catalogue.note(with_base(session("fork"), key("base", "b1")));
        if flush_between {
            catalogue.flush().unwrap();
        }
        let base = retained(with_blobs(base, &[]));
        catalogue.note(base.clone());
        assert_eq!(ids(&catalogue, &ALL), ["fork"]);
        assert_eq!(catalogue.get(&SessionId::from("base")).unwrap(), None);
        assert_eq!(catalogue.count().unwrap(), 1);
        assert_eq!(catalogue.file(&key("base", "b1")).unwrap(), Some(base.clone()));
        assert_eq!(catalogue.forks(&key("base", "b1")).unwrap(), [key("fork", "b1")]);
        assert_eq!(catalogue.blob_users(&blob("image")).unwrap(), 1);
        assert_eq!(catalogue.orphans(10).unwrap(), NONE);

        // The same id can begin anew beside it.
        catalogue.note(with_blobs(file("base", "b2"), &["image"]));
        assert_eq!(ids(&catalogue, &ALL), ["fork", "base"]);
        assert_eq!(catalogue.blob_users(&blob("image")).unwrap(), 2);
        assert_eq!(catalogue.forks(&key("base", "b2")).unwrap(), []);

        catalogue.forget(&SessionId::from("fork"));
        catalogue.release(&key("base", "b1"));
        assert_eq!(catalogue.forks(&key("base", "b1")).unwrap(), []);
        assert_eq!(catalogue.file(&key("base", "b1")).unwrap(), None);
        assert_eq!(ids(&catalogue, &ALL), ["base"]);
        assert_eq!(catalogue.blob_users(&blob("image")).unwrap(), 1);
    }
}

#[test]
fn given_a_retained_fork_when_its_base_is_asked_for_forks_then_it_counts() {
    let catalogue = Catalogue::in_memory().unwrap();
    catalogue.note(session("base"));
    catalogue.note(with_base(session("fork"), key("base", "b1")));
    catalogue.note(retained(with_base(session("fork"), key("base", "b1"))));
    assert_eq!(catalogue.forks(&key("base", "b1")).unwrap(), [key("fork", "b1")]);
}

#[test]
fn given_blobs_named_by_several_rows_when_they_are_noted_before_one_flush_then_none_is_lost() {
    let catalogue = Catalogue::in_memory().unwrap();
    catalogue.note(with_blobs(session("a"), &["1"]));
    catalogue.list(&ALL).unwrap();
    catalogue.note(with_blobs(session("a"), &["2"]));
    catalogue.note(with_blobs(session("a"), &["1", "3"]));
    let mut blobs = [blob("1"), blob("2"), blob("3")];
    blobs.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    assert_eq!(catalogue.blobs_of(&key("a", "b1")).unwrap(), blobs);
}

#[test]
fn given_a_blob_of_two_sessions_when_both_are_deleted_then_it_is_an_orphan_until_collected() {
    let catalogue = Catalogue::in_memory().unwrap();
    catalogue.note(with_blobs(session("a"), &["shared"]));
    catalogue.note(with_blobs(session("b"), &["shared"]));
    catalogue.forget(&SessionId::from("a"));
    assert_eq!(catalogue.orphans(10).unwrap(), NONE);
    catalogue.forget(&SessionId::from("b"));
    assert_eq!(catalogue.orphans(10).unwrap(), [blob("shared")]);
    assert_eq!(catalogue.orphans(0).unwrap(), NONE);
    catalogue.collected(&[blob("shared")]).unwrap();
    assert_eq!(catalogue.orphans(10).unwrap(), NONE);
}

#[test]
fn given_an_orphan_when_a_session_uses_it_again_then_it_is_none_any_more() {
    let catalogue = Catalogue::in_memory().unwrap();
    catalogue.note(with_blobs(session("a"), &["x"]));
    catalogue.forget(&SessionId::from("a"));
    assert_eq!(catalogue.orphans(10).unwrap(), [blob("x")]);
    catalogue.note(with_blobs(session("b"), &["x"]));
    assert_eq!(catalogue.orphans(10).unwrap(), NONE);
}

#[test]
fn given_a_session_deleted_and_made_again_before_a_flush_when_flushed_then_only_the_new_one_counts() {
    let catalogue = Catalogue::in_memory().unwrap();
    catalogue.note(with_blobs(file("a", "b1"), &["old"]));
    catalogue.forget(&SessionId::from("a"));
    let again = file("a", "b2");
    catalogue.note(again.clone());
    assert_eq!(catalogue.count().unwrap(), 1);
    assert_eq!(catalogue.get(&SessionId::from("a")).unwrap(), Some(again));
    assert_eq!(catalogue.orphans(10).unwrap(), [blob("old")]);
}

#[test]
fn given_a_flush_through_a_commit_when_an_earlier_one_follows_then_the_later_stands() {
    let catalogue = Catalogue::in_memory().unwrap();
    assert_eq!(catalogue.applied().unwrap(), CommitNo(0));
    catalogue.note(session("a"));
    catalogue.flush_through(CommitNo(9)).unwrap();
    catalogue.flush_through(CommitNo(5)).unwrap();
    catalogue.flush().unwrap();
    assert_eq!(catalogue.applied().unwrap(), CommitNo(9));
}

#[test]
fn given_state_when_set_again_then_the_last_value_stands() {
    let catalogue = Catalogue::in_memory().unwrap();
    assert_eq!(catalogue.state("directory").unwrap(), None);
    catalogue.set_state("directory", "1").unwrap();
    catalogue.set_state("directory", "2").unwrap();
    assert_eq!(catalogue.state("directory").unwrap(), Some("2".to_owned()));
}

#[test]
fn given_a_rebuild_under_way_when_asked_then_it_says_so_and_what_is_noted_is_kept() {
    let catalogue = Catalogue::in_memory().unwrap();
    catalogue.note(session("before"));
    catalogue.flush().unwrap();
    let rebuilt = catalogue.rebuild::<IndexError>(|sink| {
        catalogue.note(with_meta(session("a"), |meta| meta.message_count = 2));
        assert!(matches!(catalogue.list(&ALL), Err(IndexError::Unbuilt)));
        assert!(matches!(catalogue.flush(), Err(IndexError::Unbuilt)));
        sink.put(&session("a"))?;
        sink.put(&session("b"))?;
        assert_eq!(sink.rows(), 2);
        Ok(CommitNo(3))
    });
    rebuilt.unwrap();
    assert_eq!(catalogue.applied().unwrap(), CommitNo(3));
    assert_eq!(ids(&catalogue, &ALL), ["b", "a"]);
    assert_eq!(catalogue.get(&SessionId::from("a")).unwrap().unwrap().meta.message_count, 2);
    assert_eq!(catalogue.count().unwrap(), 2);
}

#[test]
fn given_two_files_of_one_session_when_rebuilt_then_the_session_is_named() {
    let catalogue = Catalogue::in_memory().unwrap();
    let rebuilt = catalogue.rebuild::<IndexError>(|sink| {
        sink.put(&with_meta(file("a", "b1"), |meta| meta.updated_at = 1))?;
        sink.put(&retained(file("a", "b2")))?;
        sink.put(&file("b", "b1"))?;
        sink.put(&file("a", "b3"))?;
        Ok(CommitNo(3))
    });
    assert!(matches!(rebuilt, Err(IndexError::Twice { session_id }) if session_id == "a"));
}
