//! Cut the power at every operation: what was acknowledged is there, once, in order; nothing is half there.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on says so")]

use std::sync::{Arc, Mutex};

use banyan_core::born::Born;
use banyan_core::record::{self, Add, Created, Grew, Record};
use banyan_log::disk::{Fate, MemDisk};
use banyan_log::{
    Answer, At, Commit, Committed, FsLog, Growth, LogError, Options, Piece, Removal, SessionLog, Write,
};
use banyan_model::{CommitNo, EntryId, Revision, Seq, SessionId};

const BORN: Born = Born([7; 16]);

/// Small segments, no threads besides the committer: every run does the same operations in the same order.
fn options() -> Options {
    Options { background: false, first_segment: 2048, largest_segment: 4096, ..Options::default() }
}

struct Driver {
    log: FsLog,
    next: Vec<u64>,
    acknowledged: Vec<Vec<String>>,
}

fn session(at: usize) -> SessionId {
    SessionId::from(format!("s{at}"))
}

fn line(seq: u64, title: &str) -> Piece {
    let record = Record::Created(Created {
        session_id: SessionId::from("s"),
        born: BORN,
        title: title.into(),
        description: String::new(),
        metadata: None,
        base: None,
    });
    let mut bytes = Vec::new();
    record::encode(&record, Seq(seq), 1, &mut bytes);
    Piece::Line(bytes)
}

fn growth(seq: u64, text: &str, revision: u64) -> Piece {
    let add = Add { text: text.into(), ms_since: 0, commits_since: 0, origin: None };
    let grew = Grew { entry_id: EntryId::from("e"), block: 0, revision: Revision(revision), adds: vec![add] };
    Piece::Growth(Growth { seq: Seq(seq), time_ms: 5, grew })
}

impl Driver {
    fn open(disk: &MemDisk) -> Result<Self, LogError> {
        let (log, _) = FsLog::open(Arc::new(disk.clone()), options())?;
        log.start(Box::new(|_| Ok(())))?;
        Ok(Self { log, next: vec![0; 3], acknowledged: vec![Vec::new(); 3] })
    }

    fn commit(&self, writes: Vec<Write>, removal: Option<Removal>) -> Result<Committed, LogError> {
        let answer = Arc::new(Mutex::new(None));
        let (sender, receiver) = std::sync::mpsc::channel();
        let put = Arc::clone(&answer);
        let done = Box::new(move |outcome| {
            *put.lock().unwrap() = Some(outcome);
            Box::new(move || sender.send(()).unwrap()) as Answer
        });
        self.log.append(Commit { writes, removal, done });
        receiver.recv().unwrap();
        answer.lock().unwrap().take().unwrap()
    }

    fn write(&self, at: usize, pieces: Vec<Piece>) -> Write {
        Write { session: session(at), born: BORN, expected: Seq(self.next[at]), pieces }
    }

    /// Appends `count` lines to a session in one commit.
    fn append(&mut self, at: usize, texts: &[String]) -> Result<(), LogError> {
        let pieces = texts.iter().zip(self.next[at]..).map(|(text, seq)| line(seq, text)).collect();
        self.commit(vec![self.write(at, pieces)], None)?;
        self.next[at] += texts.len() as u64;
        self.acknowledged[at].extend(texts.iter().cloned());
        Ok(())
    }

    fn grow(&mut self, at: usize, text: &str, revision: u64) -> Result<(), LogError> {
        let done = self.commit(vec![self.write(at, vec![growth(self.next[at], text, revision)])], None)?;
        if !done.writes[0].pieces[0].continued {
            self.next[at] += 1;
        }
        self.acknowledged[at].push(format!("+{text}"));
        Ok(())
    }

    fn remove(&mut self, at: usize, keep_for_forks: bool) -> Result<(), LogError> {
        let removal = Removal {
            session: session(at),
            born: BORN,
            tombstone: b"{}".to_vec(),
            keep_for_forks,
            blobs: Vec::new(),
        };
        self.commit(Vec::new(), Some(removal))?;
        self.next[at] = 0;
        self.acknowledged[at].clear();
        Ok(())
    }
}

/// What a session's file says, in the words of the driver.
fn contents(log: &FsLog, at: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut expected = 0;
    log.scan(At::Live(&session(at)), 0, &mut |_, line| {
        let stored = record::parse_full(line).expect("every line is whole");
        let envelope = stored.envelope.expect("our own line");
        assert_eq!(envelope.seq, Seq(expected), "sequence numbers have no gaps");
        expected += 1;
        match stored.record {
            record::StoredRecord::Own(Record::Created(created)) => found.push(created.title),
            record::StoredRecord::Own(Record::Grew(grew)) => {
                found.extend(grew.adds.iter().map(|add| format!("+{}", add.text)));
            }
            other => panic!("unexpected record {other:?}"),
        }
    })
    .unwrap();
    found
}

/// What runs until the power goes. `remove` says when session 2 goes and comes again.
fn workload(driver: &mut Driver) -> Result<(), LogError> {
    for round in 0..6_u64 {
        driver.append(0, &[format!("a{round}")])?;
        driver.append(1, &[format!("b{round}"), format!("c{round}"), "x".repeat(300)])?;
        driver.append(2, &[format!("d{round}")])?;
        driver.grow(0, "to", 2 * round + 1)?;
        driver.grow(0, "ken\n", 2 * round + 2)?;
        if round == 2 {
            driver.remove(2, false)?;
        }
        if round == 4 {
            driver.remove(2, true)?;
        }
    }
    driver.log.close()
}

fn check(driver: &Driver, disk: &MemDisk, fate: Fate, cut: u64) {
    let found = disk.after_crash(fate);
    let (log, recovered) = FsLog::open(Arc::new(found), options()).unwrap();
    assert_eq!(recovered.lost, [], "cut at {cut}, {fate:?}: a power cut is no damage");
    for at in 0..3 {
        let kept = contents(&log, at);
        let acknowledged = &driver.acknowledged[at];
        // One call may have been under way: it may be there whole, without an answer, or not at all.
        let extra = kept.len() as i64 - acknowledged.len() as i64;
        let removed_unanswered = at == 2 && kept.is_empty();
        assert!(
            removed_unanswered || kept.starts_with(acknowledged),
            "cut at {cut}, {fate:?}, session {at}: {acknowledged:?} was acknowledged, {kept:?} is there"
        );
        assert!(
            removed_unanswered || [0, 1, 3].contains(&extra),
            "cut at {cut}, {fate:?}: half a call is visible: {kept:?} after {acknowledged:?}"
        );
    }
    // The journal knows every commit up to the head, once, in order.
    let mut last = 0;
    log.replay(CommitNo(0), log.head(), &mut |entry| {
        assert_eq!(entry.commit.0, last + 1, "cut at {cut}, {fate:?}");
        last = entry.commit.0;
        true
    })
    .unwrap();
    assert_eq!(CommitNo(last), log.head(), "cut at {cut}, {fate:?}");
}

#[test]
fn every_crash_point_keeps_what_was_acknowledged() {
    let total = {
        let disk = MemDisk::crashable(0);
        let mut driver = Driver::open(&disk).unwrap();
        workload(&mut driver).unwrap();
        disk.ops()
    };
    assert!(total > 100, "the workload does enough: {total} operations");
    for cut in 0..total {
        let disk = MemDisk::crashable(cut);
        disk.crash_at(cut);
        let Ok(mut driver) = Driver::open(&disk) else {
            FsLog::open(Arc::new(disk.after_crash(Fate::LoseUnsynced)), options()).unwrap();
            continue;
        };
        let _ = workload(&mut driver);
        let fates = [Fate::LoseUnsynced, Fate::KeepAll, Fate::TornLast];
        for fate in fates.into_iter().chain((0..6).map(|seed| Fate::Random(seed * 7919 + cut))) {
            check(&driver, &disk, fate, cut);
        }
    }
}

#[test]
fn a_failing_flush_is_never_acknowledged_and_ends_writing() {
    let disk = MemDisk::crashable(1);
    let mut driver = Driver::open(&disk).unwrap();
    driver.append(0, &["kept".into()]).unwrap();
    // The write comes first, its flush second.
    disk.fail_sync_at(disk.ops() + 2);
    let refused = driver.append(0, &["lost".into()]).unwrap_err();
    assert!(matches!(refused, LogError::Poisoned(_)), "{refused}");
    let refused = driver.append(1, &["later".into()]).unwrap_err();
    assert!(matches!(refused, LogError::Poisoned(_)), "{refused}");
    assert_eq!(contents(&driver.log, 0), ["kept"]);
    drop(driver);
    let (log, _) = FsLog::open(Arc::new(disk.after_crash(Fate::LoseUnsynced)), options()).unwrap();
    assert_eq!(contents(&log, 0), ["kept"]);
}

#[test]
fn a_full_disk_refuses_and_works_again_when_there_is_room() {
    let disk = MemDisk::crashable(2);
    let mut driver = Driver::open(&disk).unwrap();
    driver.append(0, &["before".into()]).unwrap();
    let used: usize = disk.paths().iter().filter_map(|path| disk.read_file(path)).map(|file| file.len()).sum();
    disk.set_capacity(Some(used as u64 + 3000));
    let mut refused = 0;
    for round in 0..40 {
        match driver.append(0, &[format!("{round} {}", "x".repeat(200))]) {
            Ok(()) => {}
            Err(error) => {
                assert!(matches!(error, LogError::Full(_)), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "the disk did fill up");
    assert_eq!(contents(&driver.log, 0), driver.acknowledged[0]);
    disk.set_capacity(None);
    driver.append(0, &["after".into()]).unwrap();
    assert_eq!(contents(&driver.log, 0), driver.acknowledged[0]);
    driver.log.close().unwrap();
    let (log, _) = FsLog::open(Arc::new(disk.clone()), options()).unwrap();
    assert_eq!(contents(&log, 0), driver.acknowledged[0]);
}
