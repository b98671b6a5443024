//! Opening after a kill with much in the write-ahead log, and verifying much, beside reading the same bytes and summing them.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use banyan::verify::verify;
use banyan::{Banyan, Durability, Options, block_on};
use banyan_model::{AppendManyRequest, EnsureRequest};
use serde_json::json;

use crate::probe;
use crate::report::{Row, Section};
use crate::rounds::{Measured, Turn, interleaved};
use crate::workbench::{Outcome, Workbench};

/// The first word of a command line that asks for a store that is killed with everything in its log.
pub(crate) const WORD: &str = "write-and-die";

/// How many gigabytes there are, if not one: `make bench-large`.
const GIGABYTES: &str = "BANYAN_BENCH_GIGABYTES";

const SESSIONS: usize = 64;
const TOGETHER: usize = 100;
const TEXT: usize = 1024;
/// A line of a message and its frame, more or less.
const PER_MESSAGE: u64 = TEXT as u64 + 300;

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let gigabytes: f64 = match std::env::var(GIGABYTES) {
        Ok(text) => text.parse()?,
        Err(_) => bench.pick(1.0, 0.1),
    };
    let bytes = (gigabytes * 1e9) as u64;
    let place = bench.scratch()?;
    let (killed, working) = (place.path().join("killed"), place.path().join("working"));
    die(&killed, bytes)?;
    let log = killed.join(".banyan/wal");
    let turns: Vec<Turn<'_>> = vec![
        Box::new(|| read_and_sum(&log)),
        Box::new(|| {
            let _ = fs::remove_dir_all(&working);
            copy(&killed, &working)?;
            rustix::fs::sync();
            Ok(probe::first_list(&working)?.open)
        }),
    ];
    let opened = interleaved(bench.pick(3, 1), turns)?;
    // The last one was closed, so that everything is in session files.
    let turns: Vec<Turn<'_>> = vec![
        Box::new(|| read_and_sum(&working)),
        Box::new(|| {
            let begun = Instant::now();
            let report = verify(&working, &())?;
            if !report.is_sound() || report.records * TEXT as u64 <= bytes / 2 {
                return Err("the directory is not as it should be".into());
            }
            Ok(begun.elapsed().as_secs_f64() * 1e6)
        }),
    ];
    let verified = interleaved(bench.pick(3, 1), turns)?;
    let row = |work: String, taken: &[Measured]| match taken {
        [floor, measured] => {
            let ratio = floor.median / measured.median;
            Ok(Row::shown(work, seconds(measured))
                .beside(format!("reading and summing {}", seconds(floor)))
                .ratio(ratio)
                .target(">= 0.5", ratio >= 0.5))
        }
        _ => Err("not everything was measured"),
    };
    Ok(Section {
        rows: vec![
            row(format!("opening after a kill with {gigabytes} GB of log"), &opened)?,
            row(format!("verifying {gigabytes} GB"), &verified)?,
        ],
        method: vec![format!(
            "Recovery: {SESSIONS} sessions, messages of {TEXT} bytes, all of them in one segment when the process is killed. \
             Opening puts them into their session files and flushes those. Reading sums CRC-32C over the same bytes, in the page \
             cache."
        )],
        losing: vec![],
    })
}

/// What the process that dies does.
pub(crate) fn write(words: &[String]) -> Outcome<()> {
    let [dir, bytes] = words else { return Err("a directory and a number of bytes are needed".into()) };
    let bytes: u64 = bytes.parse()?;
    let mut options = Options { durability: Durability::Buffered, ..Options::default() };
    options.log.first_segment = bytes + bytes / 2 + (64 << 20);
    options.log.largest_segment = options.log.first_segment;
    let store = Banyan::open(dir, options)?;
    let text = "x".repeat(TEXT);
    let message = json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1});
    let messages = vec![message; TOGETHER];
    for session in 0..SESSIONS {
        let request: EnsureRequest = serde_json::from_value(json!({"session_id": format!("s{session}")}))?;
        block_on(store.ensure(request))?;
    }
    for batch in 0..bytes / (PER_MESSAGE * TOGETHER as u64) {
        let session = format!("s{}", batch as usize % SESSIONS);
        let request: AppendManyRequest =
            serde_json::from_value(json!({"session_id": session, "messages": messages}))?;
        block_on(store.append_many(request))?;
    }
    store.flush()?;
    std::process::abort()
}

fn die(dir: &Path, bytes: u64) -> Outcome<()> {
    let output = Command::new(std::env::current_exe()?).arg(WORD).arg(dir).arg(bytes.to_string()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code().is_some() {
        return Err(format!("the store ended by itself: {said}").into());
    }
    Ok(())
}

/// Reads all files below a directory and sums them. In microseconds.
fn read_and_sum(dir: &Path) -> Outcome<f64> {
    let begun = Instant::now();
    let mut buffer = vec![0; 1 << 20];
    let mut sum = 0;
    each_file(dir, &mut |path| {
        let mut file = File::open(path)?;
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                read => sum = crc32c::crc32c_append(sum, &buffer[..read]),
            }
        }
    })?;
    std::hint::black_box(sum);
    Ok(begun.elapsed().as_secs_f64() * 1e6)
}

fn copy(from: &Path, to: &Path) -> Outcome<()> {
    each_file(from, &mut |path| {
        let target = to.join(path.strip_prefix(from)?);
        fs::create_dir_all(target.parent().ok_or("a file has a directory")?)?;
        fs::copy(path, target)?;
        Ok(())
    })
}

fn each_file(dir: &Path, visit: &mut dyn FnMut(&Path) -> Outcome<()>) -> Outcome<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            each_file(&path, visit)?;
        } else {
            visit(&path)?;
        }
    }
    Ok(())
}

fn seconds(measured: &Measured) -> String {
    let Measured { median, lowest, highest } = measured;
    format!("{:.2} s ({:.2} to {:.2})", median / 1e6, lowest / 1e6, highest / 1e6)
}
