//! `--to opa`. An archive is written on a thread of its own, into a channel that holds a few pieces: what is read decides how
//! fast it is written, and whoever stops reading ends it.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use banyan_core::content;
use banyan_formats::audit::Facts;
use banyan_formats::opa::{self, Entry, Head, Options, Prompt, SigningKey, Writer, Written};
use banyan_formats::session_log;
use banyan_formats::turns::Outlook;
use banyan_log::SessionLog;
use banyan_model::{AgentMessage, AttachmentId, AttachmentMeta, EntryId, Error, Origin, SessionEntry};
use serde_json::Value;

use super::{PIECE, SESSION_RECORDS};
use crate::Banyan;
use crate::damage::is_stand_in;
use crate::walk::{Walk, Walked};

/// How many pieces wait for a reader.
const WAITING: usize = 4;

/// An archive that is being written.
pub(super) struct Archive {
    pieces: Option<Receiver<Told>>,
    written: Option<Written>,
}

enum Told {
    Piece(Vec<u8>),
    End(Result<Written, Error>),
}

pub(super) fn begin(
    banyan: &Banyan,
    walk: Walk,
    plain: bool,
    key: Option<Arc<SigningKey>>,
) -> Result<Archive, Error> {
    let (sender, pieces) = sync_channel(WAITING);
    let job = Job { banyan: banyan.clone(), walk, plain, key };
    let work = move || {
        let out = Pieces { sender: sender.clone(), piece: Vec::new() };
        let _ = sender.send(Told::End(job.write(out)));
    };
    let spawned = std::thread::Builder::new().name("banyan-export".to_owned()).spawn(work);
    spawned.map_err(|error| Error::storage(format!("the export could not be begun: {error}")))?;
    Ok(Archive { pieces: Some(pieces), written: None })
}

impl Archive {
    pub(super) fn next_piece(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let Some(pieces) = &self.pieces else { return Ok(None) };
        match pieces.recv() {
            Ok(Told::Piece(piece)) => return Ok(Some(piece)),
            Ok(Told::End(Ok(written))) => self.written = Some(written),
            Ok(Told::End(Err(error))) => return Err(error),
            Err(_) => return Err(Error::storage("the export was broken off")),
        }
        self.pieces = None;
        Ok(None)
    }

    pub(super) fn written(&self) -> Option<&Written> {
        self.written.as_ref()
    }
}

/// Hands on what is written, in pieces.
struct Pieces {
    sender: SyncSender<Told>,
    piece: Vec<u8>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::take(&mut self.piece);
        self.sender.send(Told::Piece(piece)).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

struct Job {
    banyan: Banyan,
    walk: Walk,
    plain: bool,
    key: Option<Arc<SigningKey>>,
}

impl Job {
    fn write(&self, out: Pieces) -> Result<Written, Error> {
        let prompt = self.prompt()?;
        let (asked, prompt) = prompt.map_or((None, Prompt::GoOn), |(id, prompt)| (Some(id), prompt));
        let options = Options { plain: self.plain, sign: self.key.as_deref() };
        let mut writer = Writer::new(out, Head::of(&self.walk.meta), &prompt, options).map_err(failed)?;
        let mut shown = HashSet::new();
        let mut damaged = 0;
        for step in self.walk.clone() {
            let step = step?;
            damaged += u64::from(matches!(&step, Walked::Entry { entry, .. } if is_stand_in(entry)));
            each(step, &mut |entry| {
                shown.extend(content::attachments_in(entry.message));
                if asked.as_ref() == Some(entry.entry_id) { Ok(()) } else { writer.prepare(entry) }
            })?;
        }
        let data = self.data(&shown);
        for attachment in &self.walk.attachments {
            let id = &attachment.attachment_id;
            if shown.contains(id) || (!self.plain && !data.contains_key(id)) {
                self.with_content(attachment, &mut |content| writer.attachment(attachment, content))?;
            }
        }
        let mut failure = None;
        let history = writer.history(|history| {
            for step in self.walk.clone() {
                let written = step.and_then(|step| {
                    each(step, &mut |entry| {
                        if asked.as_ref() == Some(entry.entry_id) { Ok(()) } else { history.write(entry) }
                    })
                });
                if let Err(error) = written {
                    let said = opa::Error::Invalid(error.message.clone());
                    failure = Some(error);
                    return Err(said);
                }
            }
            Ok(())
        });
        match failure {
            Some(error) => return Err(error),
            None => history.map_err(failed)?,
        }
        for attachment in &self.walk.attachments {
            let Some(path) = data.get(&attachment.attachment_id) else { continue };
            self.with_content(attachment, &mut |content| match writer.data(path, content) {
                // Metadata is anybody's to write, and a path in it that cannot be used is no reason to give up.
                Err(opa::Error::Invalid(_)) if self.plain => Ok(()),
                Err(opa::Error::Invalid(_)) => {
                    writer.extension(&format!("files/{}", attachment.attachment_id), content)
                }
                written => written,
            })?;
        }
        if !self.plain {
            writer.extension(SESSION_RECORDS, &mut self.records()?).map_err(failed)?;
        }
        let (mut out, written) = writer.finish().map_err(failed)?;
        out.flush().map_err(|error| failed(error.into()))?;
        Ok(Written { damaged, ..written })
    }

    /// The question that nobody has answered, when the active path ends in one.
    fn prompt(&self) -> Result<Option<(EntryId, Prompt)>, Error> {
        let Some(last) = self.walk.last_message()? else { return Ok(None) };
        let Ok(message) = last.message.parse() else { return Ok(None) };
        let origin = last.origin.as_ref().map(Origin::object);
        let entry = Entry { entry_id: &last.id, message: &message, origin: origin.as_ref() };
        Ok(Prompt::of_last(entry).map(|prompt| (last.id.clone(), prompt)))
    }

    /// Attachments that were data of an archive, and where they were.
    fn data(&self, shown: &HashSet<AttachmentId>) -> HashMap<AttachmentId, String> {
        let metadata = self.walk.meta.metadata.as_ref();
        let data = metadata.and_then(|metadata| metadata.get("opa")?.get("data")?.as_object());
        let place = |(path, id): (&String, &Value)| Some((AttachmentId::from(id.as_str()?), path.clone()));
        let places = data.into_iter().flatten().filter_map(place);
        places.filter(|(id, _)| !shown.contains(id)).collect()
    }

    /// Gives the content of an attachment. One whose content is gone is left out, and messages say so in words.
    fn with_content(
        &self,
        attachment: &AttachmentMeta,
        write: &mut dyn FnMut(&mut dyn Read) -> Result<(), opa::Error>,
    ) -> Result<(), Error> {
        let Some(blob) = self.walk.contents.get(&attachment.attachment_id) else { return Ok(()) };
        match self.banyan.store.log.open_blob(blob)? {
            Some(mut content) => write(&mut content).map_err(failed),
            None => Ok(()),
        }
    }

    /// The session as lines that it comes back from. Titles that it had and what time it is stay out: equal sessions make equal
    /// archives.
    fn records(&self) -> Result<Records, Error> {
        let meta = self.walk.meta.clone();
        let outlook = Outlook::of(meta.status, meta.status_reason.clone(), meta.updated_at, meta.updated_at);
        let head = session_log::Head {
            facts: Facts::of_metadata(meta.metadata.as_ref()),
            active_leaf: self.walk.active_leaf.clone(),
            titles: vec![(meta.created_at, meta.title.clone())],
            attachments: self.walk.attachments.clone(),
            meta,
        };
        let writer = session_log::Writer::new(Vec::new(), &head).map_err(|error| failed(error.into()))?;
        Ok(Records { walk: self.walk.clone(), writer: Some((writer, outlook)), piece: Vec::new(), at: 0 })
    }
}

/// Shows an entry of the active path that is a message.
fn each(step: Walked, show: &mut dyn FnMut(Entry<'_>) -> Result<(), opa::Error>) -> Result<(), Error> {
    let Walked::Entry { entry: SessionEntry::Message(entry), on_path: true } = step else { return Ok(()) };
    let Ok(message): Result<AgentMessage, _> = entry.message.parse() else { return Ok(()) };
    let origin = entry.origin.as_ref().map(Origin::object);
    show(Entry { entry_id: &entry.id, message: &message, origin: origin.as_ref() }).map_err(failed)
}

fn failed(error: opa::Error) -> Error {
    Error::storage(format!("the archive could not be written: {error}"))
}

/// The session's own records, as they are read.
struct Records {
    walk: Walk,
    /// None once all of it was told.
    writer: Option<(session_log::Writer<Vec<u8>>, Outlook)>,
    piece: Vec<u8>,
    at: usize,
}

impl Records {
    fn read_on(&mut self) -> io::Result<()> {
        let Some((mut writer, outlook)) = self.writer.take() else { return Ok(()) };
        while writer.out().len() < PIECE {
            match self.walk.next().transpose().map_err(|error| io::Error::other(error.message))? {
                Some(Walked::Entry { entry, on_path: true }) => writer.on_path(&entry)?,
                Some(Walked::Entry { entry, on_path: false }) => writer.off_path(&entry)?,
                Some(Walked::BranchBegins(_) | Walked::BranchEnds) => {}
                None => {
                    self.piece = writer.finish(&outlook, &[])?;
                    return Ok(());
                }
            }
        }
        self.piece = std::mem::take(writer.out());
        self.writer = Some((writer, outlook));
        Ok(())
    }
}

impl Read for Records {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() && self.writer.is_some() {
            (self.piece, self.at) = (Vec::new(), 0);
            self.read_on()?;
        }
        let rest = &self.piece[self.at..];
        let read = rest.len().min(into.len());
        into[..read].copy_from_slice(&rest[..read]);
        self.at += read;
        Ok(read)
    }
}
