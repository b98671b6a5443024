//! A session that leaves as a file and comes back, beside unpacking and parsing the same bytes.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::time::Instant;

use banyan::export::{ExportRequest, Redaction, Target};
use banyan::import::Mode;
use banyan::{Banyan, block_on};
use banyan_model::SessionId;
use flate2::bufread::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive};
use serde_json::Value;

use crate::report::{Row, Section};
use crate::rounds::{Measured, Turn, interleaved};
use crate::session;
use crate::workbench::{Outcome, Workbench};

/// The floor that both ways must reach.
const SHARE: f64 = 0.5;

type Peer = fn(&Path) -> Outcome<()>;

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let messages = bench.pick(100_000, 10_000);
    let dir = bench.scratch()?;
    let store = session::open_buffered(&dir.path().join("store"))?;
    let id = session::create(&store)?;
    session::fill(&store, &id, messages)?;
    let mut rows = Vec::new();
    for (target, peer) in [(Target::Opa, unpack_and_parse as Peer), (Target::SessionLog, parse_lines)] {
        let file = dir.path().join(target.as_str());
        export(&store, &id, target, &file)?;
        let size = std::fs::metadata(&file)?.len();
        let again = dir.path().join("again");
        let turns: Vec<Turn<'_>> = vec![
            Box::new(|| timed(|| export(&store, &id, target, &again))),
            Box::new(|| import(bench, &file)),
            Box::new(|| timed(|| peer(&file))),
        ];
        let measured = interleaved(bench.rounds(), turns)?;
        let [export, import, peer] = measured.as_slice() else { return Err("not everything was measured".into()) };
        let named = format!("{messages} messages of 1 KiB, {} of {} MB", target.as_str(), size / 1_000_000);
        for (way, took) in [("export", export), ("import", import)] {
            let ratio = peer.median / took.median;
            rows.push(
                Row::shown(format!("{way} of {named}"), seconds(took))
                    .beside(format!("unpacking and parsing it {}", seconds(peer)))
                    .ratio(ratio)
                    .target(format!(">= {SHARE:.2}x"), ratio >= SHARE),
            );
        }
    }
    store.close()?;
    Ok(Section {
        rows,
        method: vec![
            "Files: an import goes into an empty store and is flushed. The peer inflates every part of the archive (`rawzip`, `flate2`) and parses the history and \
             each line of records into values (`serde_json`); of a session log it parses each line."
                .to_owned(),
        ],
        losing: vec![],
    })
}

fn export(store: &Banyan, id: &SessionId, target: Target, file: &Path) -> Outcome<()> {
    let request = ExportRequest { session_id: id.clone(), target, redaction: Redaction::Off, plain: false };
    let mut export = store.export(&request)?;
    let mut file = File::create(file)?;
    while let Some(piece) = export.next_piece()? {
        file.write_all(&piece)?;
    }
    Ok(())
}

fn import(bench: &Workbench, file: &Path) -> Outcome<f64> {
    let dir = bench.scratch()?;
    let store = session::open(dir.path())?;
    let took = timed(|| {
        let mut input = BufReader::new(File::open(file)?);
        let taken = block_on(store.import(&mut input, Mode::Write))?;
        if taken.sessions.len() == 1 { Ok(()) } else { Err("the file has one session".into()) }
    })?;
    store.close()?;
    Ok(took)
}

/// Inflates every part of an archive, and parses those that are JSON.
fn unpack_and_parse(file: &Path) -> Outcome<()> {
    let bytes = std::fs::read(file)?;
    let archive = ZipArchive::from_slice(&bytes)?;
    let mut entries = archive.entries();
    while let Some(header) = entries.next_entry()? {
        let name = String::from_utf8_lossy(header.file_path().as_ref()).into_owned();
        let entry = archive.get_entry(header.wayfinder())?;
        let mut part: Box<dyn BufRead> = match header.compression_method() {
            CompressionMethod::DEFLATE => Box::new(BufReader::new(DeflateDecoder::new(entry.data()))),
            _ => Box::new(entry.data()),
        };
        match name.rsplit('.').next() {
            Some("json") => drop(serde_json::from_reader::<_, Value>(part)?),
            Some("jsonl") => each_line(&mut part)?,
            _ => drop(std::io::copy(&mut part, &mut std::io::sink())?),
        }
    }
    Ok(())
}

fn parse_lines(file: &Path) -> Outcome<()> {
    each_line(&mut BufReader::new(File::open(file)?))
}

fn each_line(lines: &mut dyn BufRead) -> Outcome<()> {
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        serde_json::from_slice::<Value>(&line)?;
        line.clear();
    }
    Ok(())
}

/// How many seconds something takes.
fn timed(work: impl FnOnce() -> Outcome<()>) -> Outcome<f64> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed().as_secs_f64())
}

fn seconds(measured: &Measured) -> String {
    format!("{:.2} s ({:.2} to {:.2})", measured.median, measured.lowest, measured.highest)
}
