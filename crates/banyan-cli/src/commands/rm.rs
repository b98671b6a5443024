//! `banyan rm`: sessions go for good.

use std::collections::HashSet;
use std::io::{self, BufRead, IsTerminal, Write};

use banyan::model::{DeleteRequest, SessionMeta};
use clap::Args;
use serde_json::json;

use crate::args::Globals;
use crate::calls::ask;
use crate::client::{Access, Client, with_client};
use crate::failure::{Failure, complain};
use crate::resolve::resolve;
use crate::screen::Screen;
use crate::words::{count, one_line};

/// Delete sessions, for good.
///
/// Forks of a deleted session stay whole. Nothing is deleted unless every session that was named is found.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RmArgs {
    /// The sessions' ids, or their beginnings
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

const EXAMPLES: &str = "\
Examples:
  banyan rm s_0199
  banyan rm --yes s_0199a1 s_0199b2";

pub(crate) fn run(args: &RmArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !args.yes && !can_ask {
        return Err(Failure::usage("deleting is for good, and there is no terminal to ask at; add --yes"));
    }
    with_client(globals, Access::Existing, |client| {
        let doomed = named(args, client)?;
        if !args.yes && !agreed(&doomed)? {
            complain("Nothing was deleted.");
            return Ok(());
        }
        for meta in &doomed {
            let answer = ask(client, &DeleteRequest { session_id: meta.session_id.clone() })?;
            if globals.json {
                screen.json(&json!({"session_id": meta.session_id, "deleted": answer.deleted}))?;
            } else if answer.deleted {
                screen.line(&format!("Deleted {}", in_words(meta)))?;
            }
        }
        Ok(())
    })
}

/// The sessions that were named, each once.
fn named(args: &RmArgs, client: &dyn Client) -> Result<Vec<SessionMeta>, Failure> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for text in &args.sessions {
        let meta = resolve(client, text)?;
        if seen.insert(meta.session_id.clone()) {
            found.push(meta);
        }
    }
    Ok(found)
}

fn in_words(meta: &SessionMeta) -> String {
    let messages = count(meta.message_count, "message");
    let title = one_line(&meta.title);
    let title = if title.is_empty() { title } else { format!("  {title}") };
    format!("{}{title} ({messages})", one_line(meta.session_id.as_str()))
}

fn agreed(doomed: &[SessionMeta]) -> Result<bool, Failure> {
    for meta in doomed {
        complain(&format!("  {}", in_words(meta)));
    }
    let mut asked = io::stderr();
    let question = if doomed.len() == 1 { "Delete it for good?" } else { "Delete them for good?" };
    let _ = write!(asked, "{question} [y/N] ");
    let _ = asked.flush();
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::usage(format!("the answer could not be read: {error}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
