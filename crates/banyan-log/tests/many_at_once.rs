//! Many commits at once: they are told in order, all of them before the log lets go, and none is lost.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on says so")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use banyan_core::born::Born;
use banyan_core::record::{self, Record, StatusSet, StoredRecord};
use banyan_log::disk::{Fate, MemDisk};
use banyan_log::{Answer, At, Commit, FsLog, LogError, Options, Piece, Removal, SessionLog, Write};
use banyan_model::{CommitNo, Seq, SessionId, SessionStatus};

const SESSIONS: usize = 12;
const BORN: Born = Born([7; 16]);

/// Threads of every kind, and segments that are full after a few commits.
fn options() -> Options {
    Options { first_segment: 4096, largest_segment: 8192, ..Options::default() }
}

fn session(at: usize) -> SessionId {
    SessionId::from(format!("s{at}"))
}

struct Driver {
    log: FsLog,
    /// The last commit that was told.
    told: Arc<AtomicU64>,
    /// Something was let go before it was told.
    hasty: Arc<AtomicBool>,
    answers: Sender<(usize, Result<CommitNo, LogError>)>,
    answered: Receiver<(usize, Result<CommitNo, LogError>)>,
    next: [u64; SESSIONS],
    acknowledged: [u64; SESSIONS],
}

impl Driver {
    fn open(disk: &MemDisk) -> Result<Self, LogError> {
        let (log, _) = FsLog::open(Arc::new(disk.clone()), options())?;
        let told = Arc::new(AtomicU64::new(0));
        let hasty = Arc::new(AtomicBool::new(false));
        let (noted, too_early) = (Arc::clone(&told), Arc::clone(&hasty));
        log.start(Box::new(move |through| {
            too_early.fetch_or(noted.load(Ordering::SeqCst) < through.0, Ordering::SeqCst);
            Ok(())
        }))?;
        let (answers, answered) = channel();
        Ok(Self { log, told, hasty, answers, answered, next: [0; SESSIONS], acknowledged: [0; SESSIONS] })
    }

    fn send(&self, at: usize, writes: Vec<Write>, removal: Option<Removal>) {
        let (told, answers) = (Arc::clone(&self.told), self.answers.clone());
        let done = Box::new(move |outcome: Result<banyan_log::Committed, LogError>| {
            let outcome = outcome.map(|committed| committed.commit);
            // Telling takes its time, so that whoever does not wait for it is noticed.
            (0..50).for_each(|_| std::thread::yield_now());
            if let Ok(commit) = outcome {
                assert_eq!(told.swap(commit.0, Ordering::SeqCst) + 1, commit.0, "told out of order");
            }
            Box::new(move || drop(answers.send((at, outcome)))) as Answer
        });
        self.log.append(Commit { writes, removal, done });
    }

    fn append(&mut self, at: usize) {
        let seq = Seq(self.next[at]);
        self.next[at] += 1;
        let status = StatusSet { status: SessionStatus::Working, reason: Some("x".repeat(at * 20)) };
        let mut line = Vec::new();
        record::encode(&Record::StatusSet(status), seq, 1, &mut line);
        let write = Write { session: session(at), born: BORN, expected: seq, pieces: vec![Piece::Line(line)] };
        self.send(at, vec![write], None);
    }

    fn remove(&self, at: usize) {
        let removal = Removal {
            session: session(at),
            born: BORN,
            tombstone: b"{}".to_vec(),
            keep_for_forks: at.is_multiple_of(2),
            blobs: Vec::new(),
        };
        self.send(at, Vec::new(), Some(removal));
    }

    /// One commit for each session, all under way at once. The first refusal ends it.
    fn round(&mut self) -> Result<(), LogError> {
        (0..SESSIONS).for_each(|at| self.append(at));
        let mut ended = Ok(());
        for _ in 0..SESSIONS {
            let (at, outcome) = self.answered.recv().unwrap();
            match outcome {
                Ok(_) => self.acknowledged[at] += 1,
                Err(error) => ended = Err(error),
            }
        }
        ended
    }
}

fn lines(log: &FsLog, at: usize) -> u64 {
    let mut lines = 0;
    log.scan(At::Live(&session(at)), 0, &mut |_, line| {
        let stored = record::parse_full(line).expect("every line is whole");
        assert!(matches!(stored.record, StoredRecord::Own(Record::StatusSet(_))));
        assert_eq!(stored.envelope.expect("our own line").seq, Seq(lines), "sequence numbers have no gaps");
        lines += 1;
    })
    .unwrap();
    lines
}

#[test]
fn all_are_told_in_order_before_the_log_lets_go_or_a_flush_is_answered() {
    let disk = MemDisk::crashable(0);
    let mut driver = Driver::open(&disk).unwrap();
    for round in 0..100 {
        driver.round().unwrap();
        if round % 10 == 0 {
            (0..SESSIONS).for_each(|at| driver.append(at));
            driver.log.flush().unwrap();
            assert_eq!(CommitNo(driver.told.load(Ordering::SeqCst)), driver.log.head());
            for _ in 0..SESSIONS {
                let (at, outcome) = driver.answered.recv().unwrap();
                outcome.unwrap();
                driver.acknowledged[at] += 1;
            }
        }
    }
    // Two sessions end while others go on.
    (2..SESSIONS).for_each(|at| driver.append(at));
    driver.remove(0);
    driver.remove(1);
    (2..SESSIONS).for_each(|at| driver.append(at));
    driver.log.close().unwrap();
    assert!(!driver.hasty.load(Ordering::SeqCst), "the log let go of what was not told");
    assert_eq!(CommitNo(driver.told.load(Ordering::SeqCst)), driver.log.head());
    let (log, _) = FsLog::open(Arc::new(disk.clone()), options()).unwrap();
    for at in 0..SESSIONS {
        assert_eq!(lines(&log, at), if at < 2 { 0 } else { driver.next[at] }, "session {at}");
    }
}

#[test]
fn a_power_cut_among_many_keeps_what_was_acknowledged() {
    let mut reached = 0;
    for cut in (40..1200).step_by(37) {
        let disk = MemDisk::crashable(cut);
        let mut driver = Driver::open(&disk).unwrap();
        disk.crash_at(disk.ops() + cut);
        while driver.round().is_ok() {}
        reached += driver.acknowledged.iter().sum::<u64>();
        for fate in [Fate::LoseUnsynced, Fate::KeepAll, Fate::TornLast, Fate::Random(cut)] {
            let (log, _) = FsLog::open(Arc::new(disk.after_crash(fate)), options()).unwrap();
            for at in 0..SESSIONS {
                let (kept, acknowledged) = (lines(&log, at), driver.acknowledged[at]);
                assert!(
                    (acknowledged..=acknowledged + 1).contains(&kept),
                    "cut at {cut}, {fate:?}, session {at}: {acknowledged} were acknowledged, {kept} are there"
                );
            }
            assert!(log.head().0 >= driver.told.load(Ordering::SeqCst), "cut at {cut}, {fate:?}");
        }
    }
    assert!(reached > 1000, "most cuts came after many commits");
}

#[test]
fn a_flush_that_fails_takes_nothing_back_that_was_flushed_before() {
    let disk = MemDisk::crashable(3);
    let mut driver = Driver::open(&disk).unwrap();
    driver.round().unwrap();
    for op in 1..60 {
        disk.fail_sync_at(disk.ops() + op);
    }
    while driver.round().is_ok() {}
    for at in 0..SESSIONS {
        assert_eq!(lines(&driver.log, at), driver.acknowledged[at], "session {at}");
    }
    assert_eq!(driver.told.load(Ordering::SeqCst), driver.log.head().0);
}
