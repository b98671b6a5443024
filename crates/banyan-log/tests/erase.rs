//! A line that is blanked in place: it is the old one or the blanked one whenever the power goes, and nothing else changes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on says so")]

use std::sync::Arc;
use std::sync::mpsc::channel;

use banyan_core::born::Born;
use banyan_core::record::{self, Add, Base, Created, Grew, Record};
use banyan_log::disk::{Fate, MemDisk};
use banyan_log::{Answer, At, Commit, FsLog, Growth, LogError, Options, Piece, SessionLog, Write};
use banyan_model::{Revision, Seq, SessionId};

const BORN: Born = Born([7; 16]);
const SECRET: &str = "what nobody may read again";

fn options() -> Options {
    Options { background: false, first_segment: 2048, largest_segment: 4096, ..Options::default() }
}

fn id() -> SessionId {
    SessionId::from("s")
}

fn open(disk: &MemDisk, options: Options) -> Result<FsLog, LogError> {
    let (log, recovered) = FsLog::open(Arc::new(disk.clone()), options)?;
    assert_eq!((recovered.lost, recovered.warnings), (vec![], vec![]));
    log.start(Box::new(|_| Ok(())))?;
    Ok(log)
}

fn commit(log: &FsLog, seq: u64, piece: Piece) -> Result<(), LogError> {
    let (sender, receiver) = channel();
    let write = Write { session: id(), born: BORN, expected: Seq(seq), pieces: vec![piece] };
    let done = Box::new(move |outcome: Result<_, LogError>| {
        sender.send(outcome.map(drop)).unwrap();
        Box::new(|| ()) as Answer
    });
    log.append(Commit { writes: vec![write], removal: None, done });
    receiver.recv().unwrap()
}

fn created(seq: u64, title: &str) -> Piece {
    // A fork: the register has its first line a second time.
    let base = Base {
        session_id: "other".into(),
        born: Born([8; 16]),
        seq: Seq(1),
        entry_id: "e".into(),
        entries: 1,
        messages: 1,
    };
    let (title, description) = (title.to_owned(), String::new());
    let created = Created { session_id: id(), born: BORN, title, description, metadata: None, base: Some(base) };
    let mut line = Vec::new();
    record::encode(&Record::Created(created), Seq(seq), 1, &mut line);
    Piece::Line(line)
}

fn growth(seq: u64, text: &str) -> Piece {
    let add = Add { text: text.into(), ms_since: 0, commits_since: 0, origin: None };
    let grew = Grew { entry_id: "e".into(), block: 0, revision: Revision(1), adds: vec![add] };
    Piece::Growth(Growth { seq: Seq(seq), time_ms: 5, grew })
}

fn lines(log: &FsLog) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    log.scan(At::Live(&id()), 0, &mut |_, line| lines.push(line.to_vec())).unwrap();
    lines
}

/// Lines of which three have a secret, the last one open.
fn write(log: &FsLog) -> Result<(), LogError> {
    commit(log, 0, created(0, SECRET))?;
    commit(log, 1, created(1, "kept"))?;
    commit(log, 2, created(2, SECRET))?;
    commit(log, 3, growth(3, SECRET))?;
    commit(log, 4, growth(4, SECRET))
}

/// Where the lines with a secret begin.
fn secrets(lines: &[Vec<u8>]) -> Vec<u64> {
    let mut at = 0;
    let mut offsets = Vec::new();
    for line in lines {
        if String::from_utf8_lossy(line).contains(SECRET) {
            offsets.push(at);
        }
        at += line.len() as u64;
    }
    offsets
}

fn blank_all(log: &FsLog, offsets: &[u64]) -> Result<(), LogError> {
    offsets.iter().try_for_each(|offset| log.blank_line(At::Live(&id()), *offset))
}

fn has_secret(disk: &MemDisk) -> Vec<String> {
    let holds =
        |path: &String| disk.read_file(path).is_some_and(|bytes| String::from_utf8_lossy(&bytes).contains(SECRET));
    disk.paths().into_iter().filter(holds).collect()
}

#[test]
fn once_a_line_is_blanked_no_file_has_its_content_and_a_power_cut_does_not_bring_it_back() {
    for background in [false, true] {
        let disk = MemDisk::crashable(1);
        let log = open(&disk, Options { background, ..options() }).unwrap();
        write(&log).unwrap();
        let before = lines(&log);
        assert_eq!(secrets(&before).len(), 3);
        assert!(!has_secret(&disk).is_empty());
        blank_all(&log, &secrets(&before)).unwrap();
        let expected: Vec<Vec<u8>> = before
            .iter()
            .map(|line| match String::from_utf8_lossy(line).contains(SECRET) {
                true => record::blank(line).unwrap(),
                false => line.clone(),
            })
            .collect();
        assert_eq!(lines(&log), expected);
        assert_eq!(has_secret(&disk), Vec::<String>::new(), "background: {background}");
        commit(&log, 4, created(4, "next")).unwrap();
        let after = lines(&log);
        assert_eq!((&after[..4], after.len()), (&expected[..], 5));
        let log = open(&disk.after_crash(Fate::LoseUnsynced), options()).unwrap();
        assert_eq!(lines(&log), after, "background: {background}");
    }
}

#[test]
fn what_cannot_be_blanked_stays_as_it_is() {
    let disk = MemDisk::new();
    let log = open(&disk, options()).unwrap();
    write(&log).unwrap();
    let before = lines(&log);
    log.blank_line(At::Live(&id()), 1).unwrap_err();
    log.blank_line(At::Live(&id()), 1 << 20).unwrap_err();
    log.blank_line(At::Live(&SessionId::from("none")), 0).unwrap_err();
    assert_eq!(lines(&log), before);
}

#[test]
fn whenever_the_power_goes_each_line_is_the_old_one_or_the_blanked_one() {
    let (total, first, expected, offsets) = {
        let disk = MemDisk::crashable(0);
        let log = open(&disk, options()).unwrap();
        write(&log).unwrap();
        let (before, first) = (lines(&log), disk.ops());
        blank_all(&log, &secrets(&before)).unwrap();
        log.close().unwrap();
        let blanked = |line: &Vec<u8>| record::blank(line).unwrap();
        let expected: Vec<[Vec<u8>; 2]> = before.iter().map(|line| [line.clone(), blanked(line)]).collect();
        (disk.ops(), first, expected, secrets(&before))
    };
    assert!(total - first > 20, "{} operations", total - first);
    for cut in first + 1..=total {
        let disk = MemDisk::crashable(cut);
        disk.crash_at(cut);
        let log = open(&disk, options()).unwrap();
        write(&log).unwrap();
        let _ = blank_all(&log, &offsets);
        let fates = [Fate::LoseUnsynced, Fate::KeepAll, Fate::TornLast];
        for fate in fates.into_iter().chain((0..8).map(|seed| Fate::Random(seed * 7919 + cut))) {
            let log = open(&disk.after_crash(fate), options()).unwrap();
            let found = lines(&log);
            assert_eq!(found.len(), expected.len(), "cut at {cut}, {fate:?}");
            for (at, (line, expected)) in found.iter().zip(&expected).enumerate() {
                assert!(
                    expected.contains(line),
                    "cut at {cut}, {fate:?}, line {at}: {}",
                    String::from_utf8_lossy(line)
                );
            }
            assert_eq!(found[1], expected[1][0], "cut at {cut}, {fate:?}");
        }
    }
}
