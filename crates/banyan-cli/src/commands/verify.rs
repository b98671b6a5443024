//! `banyan verify`: is everything still there? Of an archive: what is its signature worth?

use std::path::PathBuf;

use banyan::Options;
use banyan::model::SessionId;
use banyan::repair::{self, Decisions, Step};
use banyan::verify::{Finding, Report, Severity, verify};
use clap::Args;
use serde_json::{Value, json};

use super::verify_archive;
use crate::args::Globals;
use crate::data_dir::data_dir;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::screen::{Screen, Style};
use crate::words::{count, one_line, size};

/// Read everything in a data directory and report damage, or say what an archive's signature is worth.
///
/// It reads files, so it works on a data directory that nobody serves, and not with --url. Nothing is changed without --repair. Each finding is a line, `file:line: reason`, with the file relative to the directory. The exit
/// code is 0 when nothing is lost and 1 when something is. With --json, one object.
///
/// With a FILE it reads that OPA archive to its end and tells what its signature covers: full, partial (with the entries that it does not cover), none or broken. The exit code is 1 when it is broken, or when the
/// archive would be refused. Whether to trust the signer is yours to say.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// An OPA archive, in place of the data directory
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
  banyan verify session.opa
  banyan verify --data /srv/banyan --json
  banyan verify --repair
  banyan verify --repair --accept trip     # its file is short, and stays so
  banyan verify --repair --forget trip     # its file is gone, and stays so";

pub(crate) fn run(args: &VerifyArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    if let Some(file) = &args.file {
        return verify_archive::run(file, globals, screen);
    }
    globals.no_server("verify reads the files of a data directory")?;
    let dir = data_dir(globals)?;
    if !dir.is_dir() {
        let message = format!("there is no data directory {}; pass another one with --data DIR", dir.display());
        return Err(Failure::storage(message));
    }
    let check = || verify(&dir, &Bar::default()).map_err(|error| Failure::opening(&dir, error));
    let mut report = check()?;
    let mut steps = Vec::new();
    if args.repair {
        let ids = |ids: &[String]| ids.iter().map(|id| SessionId::from(id.as_str())).collect();
        let decisions = Decisions { accept: ids(&args.accept), forget: ids(&args.forget) };
        steps = repair::plan(&report.findings, &decisions);
        if !globals.json {
            plan_in_words(&steps, screen)?;
        }
        let options = Options { progress: Box::new(Bar::default()), ..Options::default() };
        repair::repair(&dir, &decisions, options).map_err(|error| Failure::opening(&dir, error))?;
        report = check()?;
    }
    match globals.json {
        true => screen.json(&as_json(&report, &steps, args.repair))?,
        false => in_words(&report, screen)?,
    }
    if report.is_sound() { Ok(()) } else { Err(Failure::Damage) }
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

fn as_json(report: &Report, steps: &[Step], repaired: bool) -> Value {
    let finding = |Finding { file, line, reason, severity }: &Finding| {
        let severity = match severity {
            Severity::Damage => "damage",
            Severity::Newer => "newer",
            Severity::Note => "note",
        };
        json!({"file": file, "line": line, "reason": reason, "severity": severity})
    };
    let mut object = json!({
        "sound": report.is_sound(),
        "sessions": report.sessions,
        "records": report.records,
        "blobs": report.blobs,
        "bytes": report.bytes,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
    });
    if repaired {
        let step = |Step { file, action }: &Step| json!({"file": file, "action": action});
        object["repaired"] = steps.iter().map(step).collect();
    }
    object
}
