//! Reads the sessions of one agent and writes them for another: `convert FROM PATH TO HOME CWD`.
//!
//! Prints, for every session, the file that was written, and on standard error the notes, what was lost and the command to go on.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command")]

use std::error::Error;
use std::path::PathBuf;

use banyan_agents::{Destination, Head, Note, Outgoing, Sink, agent};
use banyan_model::{EntryId, SessionEntry, SessionId, SessionMeta};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, path, to, home, cwd] = arguments.as_slice() else {
        return Err("usage: convert FROM PATH TO HOME CWD".into());
    };
    let from = agent(from).ok_or_else(|| format!("no agent is called {from}"))?;
    let to = agent(to).ok_or_else(|| format!("no agent is called {to}"))?;
    let mut all = All::default();
    for source in from.sources(&std::path::absolute(path)?)? {
        from.read(&source, None, &mut all)?;
    }
    for (head, entries, leaf) in all.0 {
        let meta = SessionMeta {
            session_id: head.session,
            title: head.title,
            description: String::new(),
            status: head.status,
            status_reason: None,
            metadata: Some(head.metadata),
            forked_from: head.forked_from,
            message_count: entries.len() as u64,
            created_at: head.created_at,
            updated_at: head.updated_at,
        };
        let now_ms = jiff::Timestamp::now().as_millisecond();
        let to_where = Destination { home: PathBuf::from(home), cwd: PathBuf::from(cwd), now_ms };
        let written = to.write(&Outgoing { meta, entries, leaf }, &to_where)?;
        for path in written.paths.iter().take(1) {
            println!("{}", path.display());
        }
        eprintln!("go on: {}", written.command.join(" "));
        for lost in written.lost {
            eprintln!("lost: {lost}");
        }
    }
    Ok(())
}

/// All sessions that were read.
#[derive(Default)]
struct All(Vec<(Head, Vec<SessionEntry>, Option<EntryId>)>);

impl All {
    fn of(&mut self, session: &SessionId) -> Option<&mut (Head, Vec<SessionEntry>, Option<EntryId>)> {
        self.0.iter_mut().find(|(head, ..)| head.session == *session)
    }
}

impl Sink for All {
    fn head(&mut self, head: &Head) -> Result<(), banyan_model::Error> {
        match self.of(&head.session) {
            Some((known, ..)) => known.clone_from(head),
            None => self.0.push((head.clone(), Vec::new(), None)),
        }
        Ok(())
    }

    fn entry(&mut self, session: &SessionId, entry: SessionEntry) -> Result<(), banyan_model::Error> {
        if let Some((_, entries, leaf)) = self.of(session) {
            *leaf = Some(entry.id().clone());
            match entries.iter_mut().find(|known| known.id() == entry.id()) {
                Some(known) => *known = entry,
                None => entries.push(entry),
            }
        }
        Ok(())
    }

    fn leaf(&mut self, session: &SessionId, entry: &EntryId) -> Result<(), banyan_model::Error> {
        if let Some((.., leaf)) = self.of(session) {
            *leaf = Some(entry.clone());
        }
        Ok(())
    }

    fn knows(&mut self, session: &SessionId, entry: &EntryId) -> Result<bool, banyan_model::Error> {
        Ok(self.of(session).is_some_and(|(_, entries, _)| entries.iter().any(|known| known.id() == entry)))
    }

    fn note(&mut self, note: Note) {
        eprintln!("note: {} {}", note.place, note.what);
    }

    fn progress(&mut self, _: u64) {}
}
