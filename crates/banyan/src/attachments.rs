//! Files beside the conversation.

use std::io;

use banyan_core::content;
use banyan_core::decide::{self, AttachmentContent};
use banyan_core::record::Head;
use banyan_core::state::{NodeIx, SessionState};
use banyan_index::FileKey;
use banyan_log::{At, SessionLog};
use banyan_model::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::Banyan;
use crate::access::Access;
use crate::commit::Held;
use crate::store::Store;

/// What is known of an attachment with these bytes.
pub fn content_of(bytes: &[u8]) -> AttachmentContent {
    let sha256 = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    AttachmentContent { size: bytes.len() as u64, sha256, blob: blake3::hash(bytes).to_hex().to_string() }
}

/// The same of bytes that are not held.
pub(crate) fn content_of_stream(mut input: impl io::Read) -> io::Result<AttachmentContent> {
    let (mut sha256, mut blob, mut size) = (Sha256::new(), blake3::Hasher::new(), 0);
    let mut piece = vec![0; 256 << 10];
    loop {
        match input.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => {
                sha256.update(&piece[..read]);
                blob.update(&piece[..read]);
                size += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let sha256 = sha256.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(AttachmentContent { size, sha256, blob: blob.finalize().to_hex().to_string() })
}

impl Banyan {
    /// Stores a file with a session.
    pub async fn put_attachment(&self, request: PutAttachmentRequest) -> Result<PutAttachmentResponse, Error> {
        let bytes = decide::checked_attachment(&request, &self.store.settings.limits())?;
        let held = self.store.hold(&self.access, &request.session_id).await?;
        let blob = self.store.log.put_blob(&bytes)?;
        let content = content_of(&bytes);
        let decided = held.decide(&self.store, |state, ctx| decide::put_attachment(state, &request, content, ctx));
        let put = self.store.carry_out(held, decided, None).await;
        self.store.log.unpin_blob(&blob);
        put
    }

    /// A stored file.
    pub async fn get_attachment(
        &self,
        request: GetAttachmentRequest,
    ) -> Result<Option<GetAttachmentResponse>, Error> {
        let attached = |state: &SessionState| state.attachments().get(&request.attachment_id).cloned();
        let found = self.store.look(&self.access, &request.session_id, attached)?;
        let Some(attached) = found.flatten() else { return Ok(None) };
        let mut data = None;
        if request.include_data != Some(false) {
            let read = self.store.log.get_blob(&attached.blob);
            let lost = match &read {
                Ok(Some(_)) => None,
                Ok(None) => Some("it is missing or damaged".to_owned()),
                Err(error) => Some(error.to_string()),
            };
            if let Some(reason) = lost {
                let id = &request.attachment_id;
                self.store
                    .warn(&format!("session {}: the content of attachment {id}: {reason}", request.session_id));
                return Err(Error::storage(format!(
                    "the content of attachment `{id}` cannot be read: {reason}; run `banyan verify`"
                )));
            }
            let bytes = read?.unwrap_or_default();
            data = Some(STANDARD.encode(bytes));
        }
        Ok(Some(GetAttachmentResponse { attachment: attached.attachment, data }))
    }

    /// The files stored with a session.
    pub async fn list_attachments(
        &self,
        request: ListAttachmentsRequest,
    ) -> Result<ListAttachmentsResponse, Error> {
        let found = self.store.look(&self.access, &request.session_id, |state| {
            state.attachments().values().map(|attached| attached.attachment.clone()).collect::<Vec<_>>()
        })?;
        let mut attachments = found.ok_or_else(|| Error::not_found(&request.session_id))?;
        attachments.sort_by(|a, b| (a.created_at, &a.attachment_id).cmp(&(b.created_at, &b.attachment_id)));
        Ok(ListAttachmentsResponse { attachments })
    }

    /// Deletes a stored file that no message uses.
    pub async fn delete_attachment(
        &self,
        request: DeleteAttachmentRequest,
    ) -> Result<DeleteAttachmentResponse, Error> {
        let held = self.store.hold(&self.access, &request.session_id).await?;
        let attached = held.look(|state| state.attachments().get(&request.attachment_id).cloned()).flatten();
        let used_by = match &attached {
            Some(_) => self.store.user_of(&held, &request.attachment_id)?,
            None => None,
        };
        let session_id = request.session_id.clone();
        let decided = held
            .decide(&self.store, |state, ctx| decide::delete_attachment(state, request, used_by.as_ref(), ctx));
        let deleted = self.store.carry_out(held, decided, None).await?;
        if let Some(attached) = attached.filter(|_| deleted.deleted) {
            // The attachment is gone; content that is left over goes when the store is opened next.
            if let Err(error) = self.store.stop_using(&session_id, &attached.blob) {
                self.store.warn(&format!("session {session_id}: {error}"));
            }
        }
        Ok(deleted)
    }
}

impl Store {
    /// A message, on any branch, that refers to an attachment.
    pub(crate) fn user_of(&self, held: &Held, attachment: &AttachmentId) -> Result<Option<EntryId>, Error> {
        let count = held.look(|state| state.nodes().len() as u32).unwrap_or_default();
        let nodes: Vec<NodeIx> = (0..count).map(NodeIx).collect();
        let mut user = None;
        self.each_message(held, &nodes, &mut |entry_id, message| {
            if user.is_none() && content::attachments_in(message).contains(attachment) {
                user = Some(entry_id.clone());
            }
        })?;
        Ok(user)
    }

    /// Lets content go when no record of the session needs it any more.
    pub(crate) fn stop_using(&self, id: &SessionId, blob: &str) -> Result<(), Error> {
        let (Ok(hash), Some((born, attached))) = (
            blake3::Hash::from_hex(blob),
            self.look(Access::whole(), id, |state| {
                let attached = state.attachments().values().any(|attached| attached.blob == blob);
                (state.born(), attached)
            })?,
        ) else {
            return Ok(());
        };
        let mut used = attached;
        self.log.scan(At::Live(id), 0, &mut |_, line| {
            used |= Head::parse(line).is_ok_and(|head| head.blobs.iter().any(|other| other.hash == blob));
        })?;
        if !used {
            let key = FileKey { session_id: id.clone(), born: born.to_string() };
            self.catalogue.stop_using(&key, &hash)?;
            self.collect_garbage();
        }
        Ok(())
    }
}
