//! Sessions out of files: one source a file here.
//!
//! A file is known by its first bytes. Its session is taken in whole or not at all, however large it is ([`taking`]). Ids are the
//! file's own or follow from it, so the same file twice changes nothing.

mod batch;
mod ocp_context;
mod opa;
mod session_log;
mod taking;

use std::collections::HashSet;
use std::io::{self, BufRead, Read, Seek};
use std::sync::Arc;

use banyan_core::decide::{self, AttachmentContent};
use banyan_core::node_kind::NodeKind;
use banyan_core::record::Attached;
use banyan_core::state::NodeIx;
use banyan_log::SessionLog;
use banyan_model::{
    AttachmentMeta, EntryId, Error, ImportNote, ImportResponse, ImportedSession, ImportedSignature, LastTold,
    Origin, SessionEntry, SessionId, SessionMeta,
};

use crate::attachments::{content_of, content_of_stream};
use crate::bodies::{Body, Wanted};
use crate::commit::Held;
use crate::store::Store;
use crate::{Banyan, Incoming, Taken};
use taking::Taking;

/// A file to read. Some are read from their end.
pub trait Input: BufRead + Seek + Send {}

impl<T: BufRead + Seek + Send> Input for T {}

/// Whether an import is made, or only told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It is made.
    #[default]
    Write,
    /// Nothing is changed.
    DryRun,
}

/// What is known of a session once its file was read to its end.
pub(crate) struct Found {
    /// What it is known by.
    pub(crate) meta: SessionMeta,
    /// The entry that its active path ends in.
    pub(crate) active_leaf: Option<EntryId>,
    /// Its attachments.
    pub(crate) attachments: Vec<(AttachmentMeta, Arc<Staged>)>,
    /// What had to be made up.
    pub(crate) invented: Vec<ImportNote>,
    /// What found no place.
    pub(crate) not_placed: Vec<ImportNote>,
    /// How many notes are not listed.
    pub(crate) more_notes: u64,
    /// What is unusual about the file.
    pub(crate) remarks: Vec<String>,
    /// What the file's signature is worth.
    pub(crate) signature: Option<ImportedSignature>,
}

/// Content that is in the store, and stays there at least for as long as this is held. In a dry run it is only known.
pub struct Staged {
    banyan: Banyan,
    content: AttachmentContent,
    pinned: Option<String>,
}

impl Drop for Staged {
    fn drop(&mut self) {
        // An import that was refused leaves nothing behind.
        if let Some(hash) = &self.pinned {
            self.banyan.store.forget_content(hash);
        }
    }
}

impl Staged {
    /// What is known of the content.
    pub fn content(&self) -> &AttachmentContent {
        &self.content
    }
}

/// So many bytes are enough to know a file by.
const BEGINNING: usize = 4096;

impl Banyan {
    /// Takes in the sessions of a file.
    pub async fn import(&self, input: &mut dyn Input, mode: Mode) -> Result<ImportResponse, Error> {
        self.access.must_write()?;
        let beginning = beginning_of(input)?;
        if banyan_formats::batch::recognise(&beginning) {
            return batch::import(self, input, mode).await;
        }
        let (name, session) = if banyan_formats::session_log::recognise(&beginning) {
            (session_log::NAME, session_log::import(self, input, mode).await?)
        } else if opa::recognise(&beginning) {
            (opa::NAME, opa::import(self, input, mode).await?)
        } else {
            return ocp_context::import(self, &beginning, input, mode).await;
        };
        Ok(ImportResponse { format: name.to_owned(), dry_run: mode == Mode::DryRun, sessions: vec![session] })
    }

    /// Takes in a session that comes from elsewhere, with its ids, times, revisions and branches, all or nothing. What is
    /// there already stays. Gives what came of it, and the keys of its metadata that this access has a value of its own for.
    pub async fn take_in(&self, mut incoming: Incoming, mode: Mode) -> Result<(Taken, Vec<String>), Error> {
        let (metadata, replaced) = self.access.scope.impose(incoming.meta.metadata.take())?;
        incoming.meta.metadata = metadata;
        let held = self.store.hold_or_begin(&self.access, &incoming.meta.session_id).await?;
        let decided = held.decide(&self.store, |state, ctx| decide::import(state, incoming, ctx));
        if mode == Mode::DryRun {
            self.store.let_go(held);
            return Ok((decided?.0.response, replaced));
        }
        Ok((self.store.carry_out(held, decided, None).await?, replaced))
    }

    /// Takes in more of a session that the caller imports again and again, piece by piece. `told` is what they told of it before, and
    /// nothing if they never did: where the session still has that, it follows them; what anybody else did to it since stays.
    /// A session that was told before and is gone was deleted: it is not found, and does not come back. Messages are taken for what
    /// they say they are: they must have been made of an [`AgentMessage`](banyan_model::AgentMessage), or read as one.
    pub async fn take_more(&self, mut incoming: Incoming, told: &[LastTold], mode: Mode) -> Result<Taken, Error> {
        let (metadata, _) = self.access.scope.impose(incoming.meta.metadata.take())?;
        incoming.meta.metadata = metadata;
        let held = self.store.hold_or_begin(&self.access, &incoming.meta.session_id).await?;
        let edited = self.store.edited_here(&held, &incoming.entries)?;
        incoming.entries.retain(|entry| !edited.contains(entry.id()));
        let unsaid = if told.is_empty() { self.store.unsaid(&held)? } else { HashSet::new() };
        let decided =
            held.decide(&self.store, |state, ctx| decide::import_more(state, incoming, told, &unsaid, ctx));
        let mut taken = match mode {
            Mode::Write => self.store.carry_out(held, decided, None).await?,
            Mode::DryRun => {
                self.store.let_go(held);
                decided?.0.response
            }
        };
        taken.unchanged += edited.len() as u64;
        Ok(taken)
    }

    /// Whether a session has an entry, on whatever branch.
    pub fn has_entry(&self, session: &SessionId, entry: &EntryId) -> Result<bool, Error> {
        Ok(self.store.look(&self.access, session, |state| state.find(entry).is_some())? == Some(true))
    }

    /// Puts the content of an attachment into the store, to be taken in with a session.
    pub fn stage(&self, bytes: &[u8]) -> Result<Staged, Error> {
        self.access.must_write()?;
        let most = self.store.settings.limits().max_attachment_bytes;
        if bytes.len() as u64 > most {
            let size = bytes.len();
            return Err(Error::too_large(format!("an attachment has {size} bytes, and {most} are the most")));
        }
        let pinned = self.store.log.put_blob(bytes)?;
        Ok(Staged { banyan: self.clone(), content: content_of(bytes), pinned: Some(pinned) })
    }

    /// The same for content that is too much to be held, and can be opened again.
    pub(crate) fn stage_from<R: Read>(
        &self,
        mode: Mode,
        mut open: impl FnMut() -> Result<R, Error>,
    ) -> Result<Staged, Error> {
        let content = content_of_stream(open()?).map_err(unreadable)?;
        let mut pinned = None;
        if mode == Mode::Write {
            self.store.log.put_blob_from(&content.blob, &mut open()?)?;
            pinned = Some(content.blob.clone());
        }
        Ok(Staged { banyan: self.clone(), content, pinned })
    }
}

impl Found {
    /// Ends the import of a session whose entries were taken, and says what came of it.
    async fn take(self, taking: Taking<'_>) -> Result<ImportedSession, Error> {
        let Self { meta, active_leaf, attachments, mut invented, not_placed, more_notes, remarks, signature } =
            self;
        let (session_id, title) = (meta.session_id.clone(), meta.title.clone());
        let attached = attachments.iter().map(|(attachment, staged)| Attached {
            attachment: attachment.clone(),
            blob: staged.content.blob.clone(),
        });
        let incoming = Incoming { meta, entries: Vec::new(), active_leaf, attachments: attached.collect() };
        let (taken, replaced) = taking.finish(incoming).await?;
        invented.extend(replaced.into_iter().filter(|_| taken.created).map(|key| ImportNote {
            place: "metadata".to_owned(),
            note: format!("`{key}` is that of the one who imports"),
        }));
        let Taken { created, added, updated, unchanged, attachments } = taken;
        Ok(ImportedSession {
            session_id,
            title,
            created,
            added,
            updated,
            unchanged,
            attachments,
            invented,
            not_placed,
            more_notes,
            remarks,
            signature,
        })
    }
}

impl Store {
    /// The entries that would be replaced, and are somebody else's: they were changed by something else than an import, or came by way
    /// of another agent, whose word on them is the first.
    fn edited_here(&self, held: &Held, entries: &[SessionEntry]) -> Result<HashSet<EntryId>, Error> {
        let replaced = held.look(|state| {
            let older = entries.iter().filter_map(|entry| {
                let ix = state.find(entry.id()).filter(|ix| state.node(*ix).revision() < entry.revision())?;
                Some((entry, Wanted::of(state, ix)))
            });
            let older: Vec<_> = older.collect();
            (if older.is_empty() { Vec::new() } else { state.sources().to_vec() }, older)
        });
        let (sources, replaced) = replaced.unwrap_or_default();
        let mut edited = HashSet::new();
        for (entry, wanted) in replaced {
            if wanted.is_lost() {
                continue;
            }
            let put = self.put_in(&sources, &wanted)?;
            if put.is_none_or(|put| !has_same_keys(put.origin.as_ref(), entry.origin())) {
                edited.insert(entry.id().clone());
            }
        }
        Ok(edited)
    }
}

impl Store {
    /// The answers at the end of the active path that say nothing, because they failed. No agent hands them on.
    fn unsaid(&self, held: &Held) -> Result<HashSet<EntryId>, Error> {
        let mut unsaid = HashSet::new();
        let end = held.look(|state| {
            let is_aside =
                |ix: &&NodeIx| !matches!(state.node(**ix).kind(), NodeKind::User | NodeKind::FunctionResult);
            state.path().iter().rev().take_while(is_aside).copied().collect::<Vec<NodeIx>>()
        });
        for ix in end.unwrap_or_default() {
            let wanted = held.look(|state| {
                let node = state.node(ix);
                let answer = node.kind() == NodeKind::Assistant;
                answer.then(|| (state.sources().to_vec(), Wanted::of(state, ix)))
            });
            let Some((sources, wanted)) = wanted.flatten() else { continue };
            match self.fetch_one(&sources, &wanted)?.map(|fetched| fetched.body) {
                Some(Body::Message(message)) if message.parse()?.content().is_empty() => {
                    unsaid.insert(wanted.entry_id);
                }
                _ => break,
            }
        }
        Ok(unsaid)
    }
}

/// Whether two origins are of the same kind: they name the same agents.
fn has_same_keys(a: Option<&Origin>, b: Option<&Origin>) -> bool {
    let keys = |origin: Option<&Origin>| {
        let mut keys: Vec<String> = origin.into_iter().flat_map(Origin::object).map(|(key, _)| key).collect();
        keys.sort_unstable();
        keys
    };
    keys(a) == keys(b)
}

fn unreadable(error: io::Error) -> Error {
    Error::invalid_request(format!("the file could not be read: {error}"))
}

/// The first bytes of a file, which tell its form.
fn beginning_of(input: &mut dyn Input) -> Result<Vec<u8>, Error> {
    let mut beginning = Vec::with_capacity(BEGINNING);
    Read::take(&mut *input, BEGINNING as u64).read_to_end(&mut beginning).map_err(unreadable)?;
    input.rewind().map_err(unreadable)?;
    Ok(beginning)
}

/// A file that is nothing known.
fn unknown() -> Error {
    let names = [session_log::NAME, opa::NAME, ocp_context::NAME].join(", ");
    Error::invalid_request(format!("the file is none that can be imported; there is {names}"))
}
