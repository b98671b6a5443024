//! OPA archives. One that a Banyan wrote and nobody changed since is restored from the session's own records; of any other the
//! history counts.

use std::collections::HashMap;
use std::io::{BufReader, Read, Seek};
use std::sync::Arc;

use banyan_formats::history::milliseconds;
use banyan_formats::opa::{Archive, Coverage, File, Imported, Kind, Policy, Report};
use banyan_model::*;
use serde_json::Value;

use super::session_log::{note, session_named_in, take_entries};
use super::taking::Taking;
use super::{Found, Input, Mode, Staged};
use crate::clock::now_ms;
use crate::export::SESSION_RECORDS;
use crate::{Banyan, WalkOrder, Walked};

pub(super) const NAME: &str = "opa";

pub(super) fn recognise(beginning: &[u8]) -> bool {
    beginning.starts_with(b"PK\x03\x04") || beginning.starts_with(b"PK\x05\x06")
}

pub(super) async fn import(banyan: &Banyan, input: &mut dyn Input, mode: Mode) -> Result<ImportedSession, Error> {
    let archive = Archive::open(input, &Policy::default()).map_err(refused)?;
    let staged = stage(banyan, &archive, mode)?;
    let (mut found, taking) = match archive.extension() {
        Some(records) if records.is_true() && records.files.iter().any(|name| name == SESSION_RECORDS) => {
            restored(banyan, mode, &archive, &staged).await?
        }
        _ => told(banyan, mode, &archive, &staged).await?,
    };
    let signature = archive.signature();
    found.remarks.extend(archive.remarks().iter().cloned());
    found.signature = Some(ImportedSignature {
        coverage: signature.coverage.as_str().to_owned(),
        uncovered: match &signature.coverage {
            Coverage::Partial { uncovered } => uncovered.clone(),
            _ => Vec::new(),
        },
        signer: signature.signer.as_ref().map(|signer| signer.subject.clone()),
    });
    found.take(taking).await
}

fn refused(error: banyan_formats::opa::Error) -> Error {
    Error::invalid_request(match error.refusal() {
        Some(refusal) => format!("the archive is refused ({}): {refusal}", refusal.why.as_str()),
        None => format!("the archive could not be read: {error}"),
    })
}

/// The content of an archive's files, by path.
type Contents = HashMap<String, Arc<Staged>>;

/// Puts the files of an archive into the store. Nothing is stored when one of them is too large.
fn stage<R: Read + Seek + Send>(banyan: &Banyan, archive: &Archive<R>, mode: Mode) -> Result<Contents, Error> {
    let most = banyan.store.settings.limits().max_attachment_bytes;
    let files = || archive.files().iter().filter(|file| is_kept(file));
    if let Some(File { path, size, .. }) = files().find(|file| file.size > most) {
        return Err(Error::too_large(format!(
            "the archive's file `{path}` has {size} bytes, and {most} are the most that an attachment may have"
        )));
    }
    files()
        .map(|file| {
            let staged = banyan.stage_from(mode, || archive.read(&file.path).map_err(refused))?;
            Ok((file.path.clone(), Arc::new(staged)))
        })
        .collect()
}

/// Whether a file becomes an attachment. Data does too: there is no other place for it in a session.
fn is_kept(file: &File) -> bool {
    match file.kind {
        Kind::Attachment | Kind::Data | Kind::Index => true,
        Kind::Own => !file.path.ends_with(SESSION_RECORDS) && !file.path.ends_with("/info.json"),
        Kind::Papers | Kind::Prompt | Kind::History | Kind::Extension => false,
    }
}

/// The session as it was: branches, revisions, ids and times.
async fn restored<'a, R: Read + Seek + Send>(
    banyan: &'a Banyan,
    mode: Mode,
    archive: &Archive<R>,
    staged: &Contents,
) -> Result<(Found, Taking<'a>), Error> {
    let records = || archive.read_extension(SESSION_RECORDS).map_err(refused);
    let mut taking = Taking::new(banyan, session_named_in(BufReader::new(records()?))?, mode);
    let log = take_entries(&mut taking, records()?).await?;
    let by_content: HashMap<&str, &Arc<Staged>> =
        staged.values().map(|staged| (staged.content().sha256.as_str(), staged)).collect();
    let mut not_placed: Vec<ImportNote> = log.report.aside.iter().map(note).collect();
    let mut attachments = Vec::new();
    for attachment in log.attachments {
        match by_content.get(attachment.sha256.as_str()) {
            Some(staged) => attachments.push((attachment, Arc::clone(staged))),
            None => not_placed.push(ImportNote {
                place: format!("attachment {}", attachment.attachment_id),
                note: format!("the content of `{}` is not in the archive", attachment.name),
            }),
        }
    }
    let found = Found {
        meta: log.meta,
        active_leaf: log.active_leaf,
        attachments,
        invented: log.report.invented.iter().map(note).collect(),
        not_placed,
        more_notes: log.report.more,
        remarks: vec!["the session's own records were taken: branches, revisions and ids are as they were".into()],
        signature: None,
    };
    Ok((found, taking))
}

/// The session that the history and the prompt tell.
async fn told<'a, R: Read + Seek + Send>(
    banyan: &'a Banyan,
    mode: Mode,
    archive: &Archive<R>,
    staged: &Contents,
) -> Result<(Found, Taking<'a>), Error> {
    let session_id = archive.session_id();
    let changed = archive.extension().map(|records| records.changed.clone()).unwrap_or_default();
    let mut there = There::of(banyan, &session_id, !changed.is_empty())?;
    let kept = |file: &File| staged.contains_key(&file.path).then(|| file.attachment_id());
    let mut times = Times::of(archive)?;
    let mut taking = Taking::new(banyan, session_id.clone(), mode);
    let mut message_count = 0;
    let mut messages = archive.messages(kept).map_err(refused)?;
    while let Some(imported) = messages.next().transpose().map_err(refused)? {
        taking.push(SessionEntry::Message(times.note(there.place(imported)?))).await?;
        message_count += 1;
    }
    if let Some(prompt) = messages.prompt() {
        taking.push(SessionEntry::Message(times.note(there.place(prompt)?))).await?;
        message_count += 1;
    }
    let Report { invented, unplaced, unplaced_count, .. } = messages.report().clone();
    drop(messages);

    let counted = |(field, times): (&str, u64)| {
        let of = if times == 1 { "1 message".to_owned() } else { format!("{times} messages") };
        ImportNote { place: "history".to_owned(), note: format!("`{field}` of {of}") }
    };
    let mut invented: Vec<ImportNote> = invented.into_iter().map(counted).collect();
    if times.invented {
        invented.push(ImportNote { place: String::new(), note: "the session's time".to_owned() });
    }
    let mut not_placed: Vec<ImportNote> = unplaced
        .iter()
        .map(|unplaced| ImportNote { place: format!("message {}", unplaced.message), note: unplaced.what.clone() })
        .collect();
    let more_notes = unplaced_count.saturating_sub(unplaced.len() as u64);
    let extensions = archive.files().iter().filter(|file| file.kind == Kind::Extension);
    not_placed.extend(extensions.map(|file| ImportNote {
        place: file.path.clone(),
        note: "a file of an extension that is not known here".to_owned(),
    }));
    let mut remarks = Vec::new();
    if !changed.is_empty() {
        let changed = changed.join(", ");
        remarks.push(format!(
            "changed since the session's own records were written, so they were left aside: {changed}"
        ));
    }
    let meta = SessionMeta {
        title: archive.manifest().get("Title").unwrap_or_default().to_owned(),
        description: archive.manifest().get("Description").unwrap_or_default().to_owned(),
        status: SessionStatus::Idle,
        status_reason: None,
        metadata: Some(metadata(archive, staged)),
        forked_from: None,
        message_count,
        created_at: times.created,
        updated_at: times.updated(),
        session_id: session_id.clone(),
    };
    let found = Found {
        meta,
        active_leaf: there.last,
        attachments: attachments(archive, staged, &session_id, times.created),
        invented,
        not_placed,
        more_notes,
        remarks,
        signature: None,
    };
    Ok((found, taking))
}

fn attachments<R: Read + Seek + Send>(
    archive: &Archive<R>,
    staged: &Contents,
    session_id: &SessionId,
    created_at: i64,
) -> Vec<(AttachmentMeta, Arc<Staged>)> {
    let attached = |file: &File| {
        let staged = staged.get(&file.path).filter(|_| file.kind != Kind::Own)?;
        let meta = AttachmentMeta {
            attachment_id: file.attachment_id(),
            session_id: session_id.clone(),
            name: file.name().to_owned(),
            mime: file.mime().to_owned(),
            size: staged.content().size,
            sha256: staged.content().sha256.clone(),
            created_at,
        };
        Some((meta, Arc::clone(staged)))
    };
    archive.files().iter().filter_map(attached).collect()
}

/// What no message holds, and where the data was.
fn metadata<R: Read + Seek + Send>(archive: &Archive<R>, staged: &Contents) -> Object {
    let mut opa = archive.session_metadata();
    let data = archive.files().iter().filter(|file| matches!(file.kind, Kind::Data | Kind::Index));
    let data: Object = data
        .filter(|file| staged.contains_key(&file.path))
        .map(|file| (file.path.clone(), Value::from(file.attachment_id().to_string())))
        .collect();
    if !data.is_empty() {
        opa.insert("data".to_owned(), data.into());
    }
    Object::from_iter([("opa".to_owned(), opa.into())])
}

/// When the session began and last changed.
struct Times {
    created: i64,
    /// When it says that it last changed.
    updated: Option<i64>,
    /// The latest time of a message.
    latest: Option<i64>,
    invented: bool,
}

impl Times {
    fn of<R: Read + Seek + Send>(archive: &Archive<R>) -> Result<Self, Error> {
        let history = archive.history();
        let said = |text: Option<&String>| text.and_then(|text| milliseconds(text));
        let mut created = said(history.and_then(|history| history.created_at.as_ref()))
            .or_else(|| archive.manifest().get("Created-At").and_then(milliseconds));
        if created.is_none() {
            // Messages before the first that has a time have the session's, so it must be known before they are taken.
            let time_of = |imported: Imported| Some(imported.message.timestamp()).filter(|time| *time != 0);
            let mut messages = archive.messages(|_| None).map_err(refused)?;
            while let (None, Some(imported)) = (created, messages.next().transpose().map_err(refused)?) {
                created = time_of(imported);
            }
            created = created.or_else(|| messages.prompt().and_then(time_of));
        }
        let updated = said(history.and_then(|history| history.updated_at.as_ref()));
        Ok(Self { created: created.unwrap_or_else(now_ms), updated, latest: None, invented: created.is_none() })
    }

    /// Notes the time of an entry, and gives it one if it has none.
    fn note(&mut self, mut entry: MessageEntry) -> MessageEntry {
        match entry.timestamp {
            0 => entry.timestamp = self.created,
            time => self.latest = self.latest.max(Some(time)),
        }
        entry
    }

    fn updated(&self) -> i64 {
        self.updated.or(self.latest).unwrap_or(self.created).max(self.created)
    }
}

/// Entries of the session that are there already. Ids follow from where a message stands, so another archive of the same session
/// can mean another message by the same id: that one becomes a branch, and none is lost.
struct There {
    entries: HashMap<EntryId, Known>,
    /// Whether somebody changed an archive of our own on its way. The change wins over what is there.
    changed: bool,
    last: Option<EntryId>,
}

struct Known {
    parent_id: Option<EntryId>,
    /// The entry before it that has a place in a history.
    follows: Option<EntryId>,
    revision: Revision,
    message: Option<blake3::Hash>,
}

impl There {
    fn of(banyan: &Banyan, session_id: &SessionId, changed: bool) -> Result<Self, Error> {
        let mut there = Self { entries: HashMap::new(), changed, last: None };
        let walk = match banyan.walk(session_id, WalkOrder::Taken) {
            Err(error) if error.code == ErrorCode::NotFound => return Ok(there),
            walk => walk?,
        };
        let mut unseen: HashMap<EntryId, Option<EntryId>> = HashMap::new();
        for step in walk {
            let Walked::Entry { entry, .. } = step? else { continue };
            let follows = match entry.parent_id() {
                Some(parent) => unseen.get(parent).cloned().unwrap_or_else(|| Some(parent.clone())),
                None => None,
            };
            match entry {
                SessionEntry::Message(entry) if has_place(&entry) => {
                    let message = entry.message.parse().ok().and_then(|message| fingerprint(&message));
                    let known = Known { parent_id: entry.parent_id, follows, revision: entry.revision, message };
                    there.entries.insert(entry.id, known);
                }
                other => drop(unseen.insert(other.id().clone(), follows)),
            }
        }
        Ok(there)
    }

    /// Puts an entry after the one before it.
    fn place(&mut self, imported: Imported) -> Result<MessageEntry, Error> {
        let Imported { mut entry_id, message, origin } = imported;
        let (timestamp, hash) = (message.timestamp(), fingerprint(&message));
        let message = Raw::of(&message)
            .map_err(|error| Error::invalid_request(format!("a message cannot be kept: {error}")))?;
        let (mut parent_id, mut revision) = (self.last.clone(), Revision::default());
        if let Some(known) = self.entries.get(&entry_id) {
            let is_same = known.message == hash;
            // The history names entries of our own; those that it does not name may be others.
            let is_named = origin.get("opa").and_then(|opa| opa.get("entry")) == Some(&Value::Bool(true));
            let is_edited_here = known.revision != Revision::default();
            if known.follows != parent_id || !(is_same || is_named || is_edited_here || self.changed) {
                entry_id = another(&entry_id, parent_id.as_ref(), message.get());
            } else {
                parent_id = known.parent_id.clone();
                revision = Revision(known.revision.get() + u64::from(!is_same && self.changed));
            }
        }
        self.last = Some(entry_id.clone());
        Ok(MessageEntry { id: entry_id, parent_id, timestamp, revision, origin: Some(origin.into()), message })
    }
}

/// Whether a history has a place for an entry.
fn has_place(entry: &MessageEntry) -> bool {
    match entry.message.parse() {
        Ok(AgentMessage::Custom(custom)) => {
            custom.custom_type == "system" || custom.custom_type.starts_with("opa:")
        }
        Ok(_) => true,
        Err(_) => false,
    }
}

/// What a message says, however it is spelled.
fn fingerprint(message: &AgentMessage) -> Option<blake3::Hash> {
    Raw::of(message).ok().map(|text| blake3::hash(text.get().as_bytes()))
}

/// An id for a message whose own is taken: always the same for the same message in the same place.
fn another(taken: &EntryId, parent: Option<&EntryId>, message: &str) -> EntryId {
    let parent = parent.map(EntryId::as_str).unwrap_or_default();
    let hash = blake3::hash(format!("{taken}\n{parent}\n{message}").as_bytes());
    let bytes = hash.as_bytes().first_chunk().copied().unwrap_or_default();
    EntryId::from_uuid(uuid::Builder::from_random_bytes(bytes).into_uuid())
}
