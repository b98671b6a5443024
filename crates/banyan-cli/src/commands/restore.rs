//! `banyan restore`: a data directory from a backup.

use std::path::PathBuf;
use std::sync::Arc;

use banyan::backup::{Cut, Repository, Restore, Restored, restore};
use banyan::model::{CommitNo, SessionId};
use banyan::verify::Report;
use clap::Args;
use serde_json::json;

use super::backup::failed;
use super::verify;
use crate::args::Globals;
use crate::data_dir::data_dir;
use crate::failure::{Failure, complain};
use crate::moment::moment;
use crate::progress::Bar;
use crate::screen::{Screen, Style};
use crate::words::{count, one_line};

/// Restore a backup into an empty data directory.
///
/// Everything that is restored is checked first: if anything is damaged, it is named, nothing is written, and the exit code is 1. The
/// directory must be empty or missing. It gets a history of its own: subscribers that come back with a position of the other directory
/// are told to read again.
///
/// With --at, lines that are later are left out. A session that was deleted between two backups is only in the earlier one: restore that
/// one with --at and its commit.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RestoreArgs {
    /// The directory of the backup
    #[arg(value_name = "BACKUP")]
    from: PathBuf,
    /// Only this session, with what it inherits and its attachments; give it again for more
    #[arg(long = "session", value_name = "ID")]
    sessions: Vec<String>,
    /// The state at a time (2026-01-31T12:00:00Z, 3d) or at a commit (its number)
    #[arg(long, value_name = "TIME|COMMIT", value_parser = cut)]
    at: Option<Cut>,
    /// Restore the keys of the server, too
    #[arg(long)]
    with_keys: bool,
}

const EXAMPLES: &str = "\
Examples:
  banyan restore /backups/banyan --data ./restored
  banyan restore /backups/banyan --data ./restored --session trip --session s_0199
  banyan restore /backups/banyan --data ./yesterday --at 1d";

/// Reads a commit's number or a time.
fn cut(text: &str) -> Result<Cut, String> {
    match text.parse::<u64>() {
        Ok(commit) => Ok(Cut::at_commit(CommitNo(commit))),
        Err(_) => moment(text).map(Cut::at_time),
    }
}

pub(crate) fn run(args: &RestoreArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    if globals.url.is_some() {
        return Err(Failure::usage("restore writes a data directory; pass --data DIR, and serve it afterwards"));
    }
    let dir = data_dir(globals)?;
    let unreadable = |error| Failure::storage(format!("{} cannot be read: {error}", dir.display()));
    if dir.exists() && std::fs::read_dir(&dir).map_err(unreadable)?.next().is_some() {
        return Err(Failure::refused(
            "backup/refused",
            format!("{} is not empty; restore into an empty directory", dir.display()),
        ));
    }
    let repository = Repository::open(&args.from).map_err(failed)?;
    let request = Restore {
        sessions: args.sessions.iter().map(|id| SessionId::from(id.as_str())).collect(),
        at: args.at.unwrap_or(Cut::NONE),
        with_keys: args.with_keys,
    };
    let target = Arc::new(banyan::backup::directory(&dir).map_err(failed)?);
    let outcome = restore(&repository, &(target as _), &request, &Bar::default()).map_err(failed)?;
    match outcome {
        Ok(restored) => show(&restored, globals, screen, &dir.display().to_string()),
        Err(report) => refuse(&report, globals, screen),
    }
}

fn refuse(report: &Report, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    match globals.json {
        true => screen.json(&json!({"restored": false, "report": verify::as_json(report)}))?,
        false => {
            verify::findings(report, screen)?;
            screen.line(&screen.paint(Style::Bad, "The backup is damaged; nothing was restored."))?;
        }
    }
    Err(Failure::Damage)
}

fn show(restored: &Restored, globals: &Globals, screen: &mut Screen, dir: &str) -> Result<(), Failure> {
    if globals.json {
        return screen.json(&json!({
            "restored": true, "generation": restored.generation, "commit": restored.commit, "keys": restored.keys,
            "left_out": restored.left_out, "report": verify::as_json(&restored.report),
        }));
    }
    verify::findings(&restored.report, screen)?;
    screen.line(&format!(
        "Restored {}, {}, {} from backup {} to {dir}.",
        count(restored.report.sessions, "session"),
        count(restored.report.records, "record"),
        count(restored.report.blobs, "blob"),
        restored.generation
    ))?;
    for id in &restored.left_out {
        complain(&format!(
            "Session {} is only in the backup before; it was deleted at some time until backup {}.",
            one_line(id.as_str()),
            restored.generation
        ));
    }
    Ok(())
}
