//! Files beside the conversation: put-attachment, delete-attachment.

use banyan_model::{
    AttachmentMeta, ContentBlock, DeleteAttachmentRequest, DeleteAttachmentResponse, EntryId, Error, ErrorCode,
    PutAttachmentRequest, PutAttachmentResponse,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Ctx, Decision, must_exist};
use crate::limits::Limits;
use crate::record::{Attached, Detached, Record};
use crate::state::SessionState;

/// What is known of an attachment's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachmentContent {
    /// How many there are.
    pub size: u64,
    /// Their SHA-256, in lower-case hex.
    pub sha256: String,
    /// Their BLAKE3, 64 lower-case hex digits, which is the blob's name.
    pub blob: String,
}

/// Checks a request, before the session is looked for, and gives the attachment's bytes.
pub fn checked_attachment(request: &PutAttachmentRequest, limits: &Limits) -> Result<Vec<u8>, Error> {
    if request.name.trim().is_empty() {
        return Err(Error::invalid_request("`name` is blank; name the attachment"));
    }
    let bytes = STANDARD
        .decode(&request.data)
        .map_err(|error| Error::invalid_request(format!("`data` is not standard base64 with padding: {error}")))?;
    if bytes.len() as u64 > limits.max_attachment_bytes {
        return Err(Error::new(
            ErrorCode::AttachmentTooLarge,
            format!("the attachment has {} bytes, and {} are allowed", bytes.len(), limits.max_attachment_bytes),
        ));
    }
    Ok(bytes)
}

/// Puts an attachment whose bytes are stored already.
pub fn put_attachment(
    state: &SessionState,
    request: &PutAttachmentRequest,
    content: AttachmentContent,
    ctx: &mut Ctx<'_>,
) -> Result<Decision<PutAttachmentResponse>, Error> {
    must_exist(state)?;
    let mime = match request.mime.trim() {
        "" => "application/octet-stream",
        mime => mime,
    };
    let attachment = AttachmentMeta {
        attachment_id: ctx.ids.attachment(),
        session_id: state.session_id().clone(),
        name: request.name.trim().to_owned(),
        mime: mime.to_owned(),
        size: content.size,
        sha256: content.sha256,
        created_at: ctx.now_ms,
    };
    let block = ContentBlock::File(attachment.file_block());
    let record = Record::Attached(Attached { attachment: attachment.clone(), blob: content.blob });
    Ok(Decision { records: vec![record], response: PutAttachmentResponse { attachment, block } })
}

/// Deletes an attachment. `used_by` is an entry, on any branch, whose message refers to it.
pub fn delete_attachment(
    state: &SessionState,
    request: DeleteAttachmentRequest,
    used_by: Option<&EntryId>,
    _ctx: &Ctx<'_>,
) -> Result<Decision<DeleteAttachmentResponse>, Error> {
    must_exist(state)?;
    let attachment_id = request.attachment_id;
    if !state.attachments().contains_key(&attachment_id) {
        return Ok(Decision::nothing(DeleteAttachmentResponse { deleted: false }));
    }
    if let Some(entry_id) = used_by {
        return Err(Error::new(
            ErrorCode::AttachmentInUse,
            format!("attachment `{attachment_id}` is used by entry `{entry_id}`, so it cannot be deleted"),
        ));
    }
    let records = vec![Record::Detached(Detached { attachment_id })];
    Ok(Decision { records, response: DeleteAttachmentResponse { deleted: true } })
}
