//! `banyan verify`: is everything still there? Of an archive: what is its signature worth?

use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use banyan::backup::{Repository, check};
use banyan::model::SessionId;
use banyan::repair::{self, Decisions, Step};
use banyan::verify::{Finding, Report, Severity, verify};
use banyan::{Options, Progress};
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::http::Method;

use super::backup::failed;
use super::verify_archive;
use crate::args::{Globals, Target};
use crate::client::Server;
use crate::data_dir::data_dir;
use crate::failure::Failure;
use crate::notice;
use crate::progress::Bar;
use crate::screen::{Screen, Style};
use crate::words::{count, one_line, size};

/// Read everything in a data directory or a backup and report damage, or say what an archive's signature is worth.
///
/// A directory that a server owns is read by the server, while it works; with keys that needs one without scope that may write. Nothing is changed without --repair, which needs a directory that no server owns. Each finding is a line, `file:line: reason`, with the file relative to the directory. The exit
/// code is 0 when nothing is lost and 1 when something is. With --json, one object.
///
/// With a FILE it reads that OPA archive to its end and tells what its signature covers: full, partial (with the entries that it does not cover), none or broken. The exit code is 1 when it is broken, or when the
/// archive would be refused. Whether to trust the signer is yours to say.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// The directory of a backup, or an OPA archive, in place of the data directory
    file: Option<PathBuf>,
    /// Do what is safe, after saying what it will be; what is replaced is kept under .banyan/aside
    #[arg(long, conflicts_with = "file")]
    repair: bool,
    /// Accept the short file of session ID as it is: what it had beyond that is given up
    #[arg(long, value_name = "ID", requires = "repair")]
    accept: Vec<String>,
    /// End session ID, whose file was removed on purpose
    #[arg(long, value_name = "ID", requires = "repair")]
    forget: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  banyan verify
  banyan verify /backups/banyan
  banyan verify session.opa
  banyan verify --data /srv/banyan --json
  banyan verify --repair
  banyan verify --repair --accept trip     # its file is short, and stays so
  banyan verify --repair --forget trip     # its file is gone, and stays so";

pub(crate) fn run(args: &VerifyArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    if let Some(dir) = args.file.as_ref().filter(|file| file.is_dir()) {
        let report = Repository::open(dir).and_then(|backup| check(&backup, &Bar::default())).map_err(failed)?;
        return tell(&report, globals, screen);
    }
    if let Some(file) = &args.file {
        return verify_archive::run(file, globals, screen);
    }
    if args.repair {
        return repair(args, globals, screen);
    }
    let report = match globals.target()? {
        Target::Server(url) => by_server(&url, globals)?,
        Target::Directory => in_directory(globals)?,
    };
    tell(&report, globals, screen)
}

/// Says what will be done, does it, and reads everything again.
fn repair(args: &VerifyArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    if let Target::Server(url) = globals.target()? {
        let message =
            format!("--repair works on the files of a data directory, not through {url}; pass --data DIR");
        return Err(Failure::usage(message));
    }
    let dir = data_dir(globals)?;
    let ids = |ids: &[String]| ids.iter().map(|id| SessionId::from(id.as_str())).collect();
    let decisions = Decisions { accept: ids(&args.accept), forget: ids(&args.forget) };
    let steps = repair::plan(&in_directory(globals)?.findings, &decisions);
    if !globals.json {
        plan_in_words(&steps, screen)?;
    }
    let options = Options { progress: Box::new(Bar::default()), ..Options::default() };
    repair::repair(&dir, &decisions, options).map_err(|error| Failure::opening(&dir, error))?;
    let report = in_directory(globals)?;
    if !globals.json {
        return tell(&report, globals, screen);
    }
    let mut object = as_json(&report);
    let step = |Step { file, action }: &Step| json!({"file": file, "action": action});
    object["repaired"] = steps.iter().map(step).collect();
    screen.json(&object)?;
    if report.is_sound() { Ok(()) } else { Err(Failure::Damage) }
}

fn tell(report: &Report, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    match globals.json {
        true => screen.json(&as_json(report))?,
        false => in_words(report, screen)?,
    }
    if report.is_sound() { Ok(()) } else { Err(Failure::Damage) }
}

/// Reads the files, or has the server that owns the directory do it.
fn in_directory(globals: &Globals) -> Result<Report, Failure> {
    let dir = data_dir(globals)?;
    if !dir.is_dir() {
        let message = format!("there is no data directory {}; pass another one with --data DIR", dir.display());
        return Err(Failure::storage(message));
    }
    verify(&dir, &Bar::default()).or_else(|error| match notice::owner_of(&dir, &error) {
        Some(url) => by_server(&url, globals),
        None => Err(Failure::opening(&dir, error)),
    })
}

/// One line of a server's answer.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Begin { begin: String, steps: u64 },
    Done { done: u64 },
    Report { report: Report },
    Error { error: String },
}

fn by_server(url: &str, globals: &Globals) -> Result<Report, Failure> {
    let answer = Server::new(url, globals)?.stream(Method::GET, "/v1/verify", None)?;
    let bar = Bar::default();
    let broken =
        |why: String| Failure::trouble("http/unreachable", format!("the answer of {url} broke off: {why}"));
    for line in BufReader::new(answer).lines() {
        let line = line.map_err(|error| broken(error.to_string()))?;
        match serde_json::from_str(&line).map_err(|error| broken(error.to_string()))? {
            Line::Begin { begin, steps } => bar.begin(&begin, steps),
            Line::Done { done } => bar.step(done),
            Line::Report { report } => {
                bar.end();
                return Ok(report);
            }
            Line::Error { error } => return Err(Failure::storage(error)),
        }
    }
    Err(broken("there is no report".to_owned()))
}

fn plan_in_words(steps: &[Step], screen: &mut Screen) -> Result<(), Failure> {
    if steps.is_empty() {
        return screen.line("Repair: nothing to do beyond opening the directory.");
    }
    screen.line("Repair:")?;
    for Step { file, action } in steps {
        screen.line(&format!("  {}: {action}", one_line(file)))?;
    }
    Ok(())
}

fn in_words(report: &Report, screen: &mut Screen) -> Result<(), Failure> {
    findings(report, screen)?;
    let read = format!(
        "Read {}, {}, {}, {}.",
        count(report.sessions, "session"),
        count(report.records, "record"),
        count(report.blobs, "blob"),
        size(report.bytes)
    );
    let places = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
    let verdict = match places(Severity::Damage) {
        0 if places(Severity::Newer) > 0 => {
            let newer = count(places(Severity::Newer) as u64, "record");
            format!(
                "No damage. {newer} of a newer Banyan cannot be checked by this one ({}).",
                env!("CARGO_PKG_VERSION")
            )
        }
        0 => screen.paint(Style::Good, "Everything is sound."),
        damage => screen.paint(Style::Bad, &format!("{} of damage.", count(damage as u64, "place"))),
    };
    screen.line(&format!("{read} {verdict}"))
}

/// Shows the findings, one a line.
pub(super) fn findings(report: &Report, screen: &mut Screen) -> Result<(), Failure> {
    for Finding { file, line, reason, severity } in &report.findings {
        let place = match line {
            Some(line) => format!("{}:{line}", one_line(file)),
            None => one_line(file),
        };
        let line = match severity {
            Severity::Damage => format!("{}: {}", screen.paint(Style::Bad, &place), one_line(reason)),
            Severity::Newer => format!("{place}: newer: {}", one_line(reason)),
            Severity::Note => format!("{place}: note: {}", one_line(reason)),
        };
        screen.line(&line)?;
    }
    Ok(())
}

pub(super) fn as_json(report: &Report) -> Value {
    let finding = |Finding { file, line, reason, severity }: &Finding| {
        let severity = match severity {
            Severity::Damage => "damage",
            Severity::Newer => "newer",
            Severity::Note => "note",
        };
        json!({"file": file, "line": line, "reason": reason, "severity": severity})
    };
    json!({
        "sound": report.is_sound(),
        "sessions": report.sessions,
        "records": report.records,
        "blobs": report.blobs,
        "bytes": report.bytes,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}
