//! The files that a log opens with, as a crash or a bad disk left them: it opens or says why not, and can be read.

#![no_main]

use std::sync::Arc;

use banyan_fuzz::files;
use banyan_log::disk::MemDisk;
use banyan_log::{At, FsLog, Options, SessionLog, inspect};
use banyan_model::CommitNo;
use libfuzzer_sys::fuzz_target;

/// Holes take room on a disk in memory, so there is little: what lies far beyond is refused as on a full disk.
const CAPACITY: u64 = 1 << 20;

// The first byte chooses the files: bit 0 a raw segment instead of a framed one, bit 1 the same for the journal,
// bit 2 a session that exists already, bit 3 two segments. The rest is cut in two where the second byte says.
fuzz_target!(|data: &[u8]| {
    let [choice, cut, input @ ..] = data else { return };
    let (wal, journal) = input.split_at(input.len() * usize::from(*cut) / 255);
    let disk = MemDisk::new();
    disk.set_capacity(Some(CAPACITY));
    match choice & 1 {
        0 => disk.write_file(".banyan/wal/000000000001.seg", &files::segment(1, wal)),
        _ => disk.write_file(".banyan/wal/000000000001.seg", wal),
    }
    match choice & 2 {
        0 => disk.write_file(".banyan/journal/000000000000.log", &files::journal(journal)),
        _ => disk.write_file(".banyan/journal/000000000000.log", journal),
    }
    if choice & 4 != 0 {
        disk.write_file("s.jsonl", b"{\"type\":\"leaf\",\"entry_id\":null}\n");
    }
    if choice & 8 != 0 {
        disk.write_file(".banyan/wal/000000000002.seg", &files::segment(2, journal));
    }
    let _ = inspect::write_ahead_log(&disk);
    let _ = inspect::journal(&disk);
    let _ = inspect::blobs(&disk);
    if let Ok((log, _)) = FsLog::open(Arc::new(disk), Options { background: false, ..Options::default() }) {
        read(&log);
    }
});

fn read(log: &FsLog) {
    let _ = log.replay(CommitNo(0), log.head(), &mut |_| true);
    let _ = log.replay(CommitNo(1), log.head(), &mut |_| true);
    let sessions = log.sessions().unwrap_or_default();
    for session in &sessions {
        let at = At::Live(session);
        let _ = log.first_line(at);
        if let Ok(Some(scanned)) = log.scan(at, 0, &mut |_, _| {}) {
            let _ = log.read(at, 0, scanned.len as usize);
            let _ = log.mend(at, scanned);
        }
    }
    let _ = log.retained();
}
