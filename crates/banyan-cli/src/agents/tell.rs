//! What was found and what was taken, for people and for programs.

use std::collections::BTreeMap;

use banyan_agents::{AGENTS, Note, Source};
use serde::Serialize;
use serde_json::{Value, json};

use super::Counts;
use super::survey::{self, Found};
use super::take::Report;
use crate::failure::Failure;
use crate::screen::{Screen, Style};
use crate::words::{clip_start, count, one_line, size, width};

/// So many warnings are shown to people; --json has all.
const SHOWN: usize = 20;

/// What was taken from one agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Sum {
    sources: u64,
    created: u64,
    grew: u64,
    added: u64,
    updated: u64,
    unchanged: u64,
    unreadable: u64,
}

/// Adds up what was taken.
#[derive(Default)]
pub(crate) struct Summary {
    agents: BTreeMap<&'static str, Sum>,
    warnings: Vec<(Source, Note)>,
    more_warnings: u64,
}

impl Summary {
    pub(crate) fn add(&mut self, report: Report) {
        let Report { source, sessions, notes, more_notes, problem } = report;
        let sum = self.agents.entry(source.agent).or_default();
        sum.sources += 1;
        sum.unreadable += u64::from(problem.is_some());
        for (_, _, counts) in &sessions {
            sum.created += u64::from(counts.created);
            sum.grew += u64::from(!counts.created && counts.added + counts.updated > 0);
            sum.added += counts.added;
            sum.updated += counts.updated;
            sum.unchanged += counts.unchanged;
        }
        let problem = problem.map(|what| Note { place: String::new(), what, lost: true });
        self.more_warnings += more_notes;
        for note in notes.into_iter().chain(problem) {
            match self.warnings.len() < SHOWN {
                true => self.warnings.push((source.clone(), note)),
                false => self.more_warnings += 1,
            }
        }
    }

    /// The end of an import, as one line of JSON.
    pub(crate) fn json(&self, dry_run: bool) -> Value {
        json!({"summary": self.agents, "dry_run": dry_run})
    }

    /// The end of an import, for people.
    pub(crate) fn tell(&self, dry_run: bool, screen: &mut Screen) -> Result<(), Failure> {
        if self.agents.is_empty() {
            return screen.line("Nothing is new.");
        }
        for (agent, sum) in &self.agents {
            let mut words = vec![count(sum.created, "new session")];
            if sum.grew > 0 {
                words.push(format!("{} went on", sum.grew));
            }
            words.push(if sum.added == 1 { "1 entry".to_owned() } else { format!("{} entries", sum.added) });
            if sum.updated > 0 {
                words.push(format!("{} updated", sum.updated));
            }
            if sum.unreadable > 0 {
                words.push(format!("{} not read to the end", count(sum.unreadable, "source")));
            }
            screen.line(&format!(
                "{} {}",
                screen.paint(Style::Heading, &format!("{agent:9}")),
                words.join(", ")
            ))?;
        }
        for (source, note) in &self.warnings {
            let style = if note.lost { Style::Bad } else { Style::Busy };
            screen.line(&format!("  {} {}", screen.paint(style, "warning:"), in_words(source, note)))?;
        }
        if self.more_warnings > 0 {
            screen.line(&format!("  and {}; --json lists them", count(self.more_warnings, "more warning")))?;
        }
        if dry_run {
            screen.flush()?;
            crate::failure::complain("Nothing was changed.");
        }
        Ok(())
    }
}

/// A note with the file and the place that it is about.
fn in_words(source: &Source, note: &Note) -> String {
    let mut place = one_line(&source.path.display().to_string());
    for more in source.key.iter().chain((!note.place.is_empty()).then_some(&note.place)) {
        place.push_str(", ");
        place.push_str(&one_line(more));
    }
    format!("{place}: {}", one_line(&note.what))
}

/// What came of a source, for programs.
pub(crate) fn report(report: &Report) -> Value {
    let session = |(id, title, counts): &(_, String, Counts)| {
        let mut session = json!(counts);
        session["session_id"] = json!(id);
        session["title"] = json!(title);
        session
    };
    let note = |note: &Note| json!({"where": note.place, "note": note.what, "lost": note.lost});
    json!({
        "agent": report.source.agent,
        "path": report.source.path.to_string_lossy(),
        "key": report.source.key,
        "sessions": report.sessions.iter().map(session).collect::<Vec<_>>(),
        "notes": report.notes.iter().map(note).collect::<Vec<_>>(),
        "more_notes": report.more_notes,
        "problem": report.problem,
    })
}

/// What was taken a moment ago, for people.
pub(crate) fn live(report: &Report, screen: &mut Screen) -> Result<(), Failure> {
    for (id, title, counts) in &report.sessions {
        let new = counts.added + counts.updated;
        if new > 0 || counts.created {
            let id = screen.paint(Style::Heading, &one_line(id.as_str()));
            screen.line(&format!("{id} +{new} {}", screen.paint(Style::Aside, &one_line(title))))?;
        }
    }
    let problem = report.problem.iter().map(|what| Note { place: String::new(), what: what.clone(), lost: true });
    for note in report.notes.iter().filter(|note| note.lost).cloned().chain(problem) {
        let warning = screen.paint(Style::Bad, "warning:");
        screen.line(&format!("  {warning} {}", in_words(&report.source, &note)))?;
    }
    Ok(())
}

/// What is in the places, for programs: one line each.
pub(crate) fn found(found: &Found) -> Value {
    let Counted { new, changed, bytes } = counted(found);
    json!({
        "agent": found.place.agent.id(),
        "place": found.place.path.to_string_lossy(),
        "sources": found.sources.len(),
        "bytes": bytes,
        "new": new,
        "changed": changed,
        "problem": found.problem,
    })
}

struct Counted {
    new: usize,
    changed: usize,
    bytes: u64,
}

fn counted(found: &Found) -> Counted {
    let of = |wanted| found.sources.iter().filter(|(_, news)| *news == wanted).count();
    Counted { new: of(survey::News::New), changed: of(survey::News::Changed), bytes: bytes_of(found) }
}

/// How large the sources are. What is in a database counts once, as the database.
fn bytes_of(found: &Found) -> u64 {
    let mut databases: Vec<&std::path::Path> = Vec::new();
    let mut bytes = 0;
    for (source, _) in &found.sources {
        if let Some(own) = survey::bytes_of(source) {
            bytes += own;
        } else if !databases.contains(&source.path.as_path()) {
            databases.push(&source.path);
            bytes += source.path.metadata().map_or(0, |metadata| metadata.len());
        }
    }
    bytes
}

/// What is in the places, for people.
pub(crate) fn table(all: &[Found], screen: &mut Screen) -> Result<(), Failure> {
    let shown: Vec<String> = all.iter().map(|found| one_line(&found.place.path.display().to_string())).collect();
    let room = screen.columns().map_or(usize::MAX, |columns| columns.saturating_sub(66).max(20));
    let place = shown.iter().map(|place| width(place)).max().unwrap_or(0).clamp(5, room);
    let agent = all.iter().map(|found| width(found.place.agent.name())).max().unwrap_or(0).max(5);
    let head = format!(
        "{:agent$}  {:place$}  {:>8}  {:>9}  {:>7}  {:>7}",
        "AGENT", "PLACE", "SESSIONS", "SIZE", "NEW", "CHANGED"
    );
    screen.line(&screen.paint(Style::Aside, &head))?;
    for (found, path) in all.iter().zip(&shown) {
        let Counted { new, changed, bytes } = counted(found);
        let path = clip_start(path, place);
        let pad = " ".repeat(place.saturating_sub(width(&path)));
        let (name, sessions) = (found.place.agent.name(), found.sources.len());
        screen.line(&format!(
            "{name:agent$}  {path}{pad}  {sessions:>8}  {:>9}  {new:>7}  {changed:>7}",
            size(bytes)
        ))?;
        if let Some(problem) = &found.problem {
            screen.line(&format!("  {} {}", screen.paint(Style::Bad, "warning:"), one_line(problem)))?;
        }
    }
    Ok(())
}

/// The words that agents go by.
pub(crate) fn agent_words() -> String {
    AGENTS.iter().map(|agent| agent.id()).collect::<Vec<_>>().join(", ")
}
