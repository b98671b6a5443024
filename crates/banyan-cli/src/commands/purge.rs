//! `banyan purge`: the bytes of deleted sessions leave the disk now.

use clap::Args;
use serde_json::json;

use crate::args::Globals;
use crate::client::{Access, with_client};
use crate::failure::Failure;
use crate::screen::{Screen, Style};
use crate::words::{count, one_line, size};

/// Remove the bytes of deleted sessions from the disk now.
///
/// They leave by themselves within minutes, and this does not wait for that: the write-ahead log is emptied, and the
/// catalogue, the register of files and the search index are written without what was deleted. What could not be reached is
/// listed with the reason, and the exit code is 1 then. A server is asked with a key that has no scope and may write. With --json, one object.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PurgeArgs {}

const EXAMPLES: &str = "\
Examples:
  banyan purge
  banyan purge --url https://sessions.example:7420 --key \"$KEY\"
  banyan purge --json | jq '.not_reached[]'";

pub(crate) fn run(_: &PurgeArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let purged = with_client(globals, Access::Existing, |client| client.purge())?;
    let reached_all = purged.not_reached.is_empty();
    if globals.json {
        screen.json(&json!(purged))?;
    } else {
        let (log, index) = (purged.log_segments, purged.search_segments);
        screen.line(&format!(
            "Removed {} of the write-ahead log ({})",
            count(log, "segment"),
            size(purged.log_bytes)
        ))?;
        screen.line(&format!(
            "Wrote {} of the search index without what was deleted ({})",
            count(index, "segment"),
            size(purged.search_bytes)
        ))?;
        for kept in &purged.not_reached {
            let path = screen.paint(Style::Bad, &one_line(&kept.path));
            screen.line(&format!("Not reached: {path}: {}", one_line(&kept.reason)))?;
        }
    }
    if reached_all { Ok(()) } else { Err(Failure::Damage) }
}
