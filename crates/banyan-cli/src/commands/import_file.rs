//! `banyan import FILE`: sessions out of files that are no agent's own.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;

use banyan::import::Mode;
use banyan::model::{ImportNote, ImportResponse, ImportedSession, ImportedSignature};

use crate::agents::tell::agent_words;
use crate::args::Globals;
use crate::client::Client;
use crate::failure::{Failure, complain};
use crate::screen::{Screen, Style};
use crate::words::{count, one_line};

/// So many notes of a kind are shown to people; --json has all.
const SHOWN: usize = 10;

/// Takes in a file: an OPA archive, a session log, or a context of the Open Context Protocol.
pub(super) fn run(
    client: &dyn Client,
    path: &Path,
    mode: Mode,
    globals: &Globals,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let summary = import(client, path, mode)?;
    if globals.json {
        return screen.json(&summary);
    }
    summary.sessions.iter().try_for_each(|session| tell(session, &summary, screen))
}

fn import(client: &dyn Client, path: &Path, mode: Mode) -> Result<ImportResponse, Failure> {
    let name = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
    let unreadable = |error| Failure::trouble("cli/file", format!("{name} could not be read: {error}"));
    let imported = match path.as_os_str() == "-" {
        true => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).map_err(unreadable)?;
            client.import(&mut std::io::Cursor::new(bytes), mode)
        }
        false => {
            let file = fs::File::open(path).map_err(|error| match error.kind() {
                ErrorKind::NotFound => missing(&name),
                _ => unreadable(error),
            })?;
            client.import(&mut std::io::BufReader::new(file), mode)
        }
    };
    imported.map_err(|failure| failure.about(&name))
}

/// A word that is no file may have been meant for an agent.
fn missing(name: &str) -> Failure {
    let agents = agent_words();
    Failure::trouble(
        "cli/file",
        format!("there is no file `{name}`, and no agent of that name; the agents are {agents}"),
    )
}

fn tell(session: &ImportedSession, summary: &ImportResponse, screen: &mut Screen) -> Result<(), Failure> {
    let ImportedSession { session_id, title, created, added, updated, unchanged, attachments, .. } = session;
    let (id, title) = (one_line(session_id.as_str()), one_line(title));
    let title = if title.is_empty() { String::new() } else { format!(" “{title}”") };
    let aside = if *created { "new" } else { "there already" };
    screen.line(&format!(
        "{}{title} {}",
        screen.paint(Style::Heading, &id),
        screen.paint(Style::Aside, &format!("({aside})"))
    ))?;
    let mut taken = vec![if *added == 1 { "1 entry added".to_owned() } else { format!("{added} entries added") }];
    if *updated > 0 {
        taken.push(format!("{updated} updated"));
    }
    if *unchanged > 0 {
        taken.push(format!("{unchanged} unchanged"));
    }
    if *attachments > 0 {
        taken.push(count(*attachments, "attachment"));
    }
    screen.line(&format!("  {}", taken.join(", ")))?;
    notes("made up", &session.invented, Style::Busy, screen)?;
    notes("not placed", &session.not_placed, Style::Bad, screen)?;
    if session.more_notes > 0 {
        screen.line(&format!("  and {} more notes", session.more_notes))?;
    }
    for remark in &session.remarks {
        screen.line(&format!("  {}: {}", screen.paint(Style::Aside, "remark"), one_line(remark)))?;
    }
    if let Some(signature) = &session.signature {
        screen.line(&format!("  signature: {}", signature_in_words(signature)))?;
    }
    if summary.dry_run {
        screen.flush()?;
        complain("Nothing was changed.");
    }
    Ok(())
}

fn signature_in_words(signature: &ImportedSignature) -> String {
    let signer = signature.signer.as_ref().map(|name| format!(", by {}", one_line(name))).unwrap_or_default();
    let uncovered: Vec<String> = signature.uncovered.iter().map(|name| one_line(name)).collect();
    match uncovered.is_empty() {
        true => format!("{}{signer}", signature.coverage),
        false => format!("{}{signer}; not covered: {}", signature.coverage, uncovered.join(", ")),
    }
}

fn notes(what: &str, notes: &[ImportNote], style: Style, screen: &mut Screen) -> Result<(), Failure> {
    for note in notes.iter().take(SHOWN) {
        let place = if note.place.is_empty() { String::new() } else { format!("{}: ", one_line(&note.place)) };
        screen.line(&format!("  {}: {place}{}", screen.paint(style, what), one_line(&note.note)))?;
    }
    match notes.len().saturating_sub(SHOWN) {
        0 => Ok(()),
        more => screen.line(&format!("  {}: {more} more; --json lists all", screen.paint(style, what))),
    }
}
