//! What imports and exports hold does not grow with what they carry. One test, alone in its process, whose memory it measures.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;

use banyan::export::{ExportRequest, Redaction, Target};
use banyan::import::{Input, Mode};
use banyan::{Banyan, Options, SearchIndexing, block_on};

/// A log of so many messages of 16 KiB each, made while it is read.
struct Made {
    messages: u64,
    next: u64,
    line: Cursor<Vec<u8>>,
}

impl Made {
    fn new(messages: u64) -> BufReader<Self> {
        BufReader::new(Self { messages, next: 0, line: Cursor::default() })
    }
}

impl Read for Made {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.line.position() == self.line.get_ref().len() as u64 {
            let at = self.next;
            let noise = blake3::hash(&at.to_le_bytes()).to_string().repeat(256);
            let what = match at {
                0 => "\"session_meta\",\"session_id\":\"s_made\"".to_owned(),
                at if at > self.messages => return Ok(0),
                at => format!("\"user\",\"message_id\":\"e_{at:032x}\",\"text\":\"{noise}\""),
            };
            let line = format!(
                "{{\"schema_version\":1,\"seq\":{at},\"time\":\"2026-01-02T03:04:05Z\",\"type\":{what}}}\n"
            );
            self.line = Cursor::new(line.into_bytes());
            self.next += 1;
        }
        self.line.read(into)
    }
}

impl Seek for Made {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        assert_eq!(to, SeekFrom::Start(0));
        (self.next, self.line) = (0, Cursor::default());
        Ok(0)
    }
}

/// The most memory, in KiB, that was held at a time while something was done, beyond what was held before.
fn held_by(work: impl FnOnce()) -> u64 {
    let kib = |field: &str| -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    // This begins counting the most anew.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = kib("VmRSS:");
    work();
    kib("VmHWM:").saturating_sub(before)
}

fn open(dir: &Path) -> Banyan {
    Banyan::open(dir, Options { search: SearchIndexing::Off, ..Options::default() }).unwrap()
}

fn import(input: &mut dyn Input, messages: u64) -> (tempfile::TempDir, Banyan) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let taken = block_on(store.import(input, Mode::Write)).unwrap();
    assert_eq!(taken.sessions[0].added, messages);
    (dir, store)
}

/// What importing a log, exporting it as a log and as archives, and importing those holds.
fn held_for(messages: u64) -> Vec<(&'static str, u64)> {
    let mut there = None;
    let mut held = vec![("log in", held_by(|| there = Some(import(&mut Made::new(messages), messages))))];
    let (dir, store) = there.unwrap();
    for (target, plain, out, back) in [
        (Target::SessionLog, false, "log out", "own log in"),
        (Target::Opa, false, "archive out", "archive in"),
        (Target::Opa, true, "plain archive out", "plain archive in"),
    ] {
        let path = dir.path().join("file");
        held.push((
            out,
            held_by(|| {
                let session_id = "s_made".into();
                let request = ExportRequest { session_id, target, redaction: Redaction::Off, plain };
                let mut export = store.export(&request).unwrap();
                let mut file = File::create(&path).unwrap();
                while let Some(piece) = export.next_piece().unwrap() {
                    file.write_all(&piece).unwrap();
                }
            }),
        ));
        let mut file = BufReader::new(File::open(&path).unwrap());
        held.push((back, held_by(|| drop(import(&mut file, messages)))));
    }
    held
}

#[test]
fn what_is_held_does_not_grow_with_the_messages() {
    // The first time memory is made that later times use again.
    held_for(600);
    let (few, many) = (held_for(2_000), held_for(12_000));
    println!("32 MB: {few:?}\n192 MB: {many:?}");
    for ((way, few), (_, many)) in few.into_iter().zip(many) {
        let grown = many.saturating_sub(few);
        assert!(grown < 48 << 10, "{way}: {few} KiB for 32 MB, {many} KiB for 192 MB");
    }
}
