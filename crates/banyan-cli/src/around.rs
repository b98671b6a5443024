//! An entry with what stands around it.

use banyan::model::{EntryId, GetMessageRequest, MessageItem, MessagesRequest, SessionEntry, SessionId};

use crate::calls::ask;
use crate::client::Client;
use crate::failure::Failure;

/// An entry, those before it on its own branch, and those after it if it is on the active path; oldest first.
pub(crate) fn around(
    client: &dyn Client,
    session_id: &SessionId,
    entry_id: &EntryId,
    before: usize,
    after: usize,
) -> Result<Vec<MessageItem>, Failure> {
    let mut items = Vec::new();
    let mut next = Some(entry_id.clone());
    while let Some(id) = next
        && items.len() <= before
    {
        let request = GetMessageRequest {
            session_id: session_id.clone(),
            entry_id: id.clone(),
            include_image_data: Some(false),
        };
        let found = ask(client, &request)?.map(|found| found.entry);
        let (item, parent) = match found {
            Some(SessionEntry::Message(entry)) => (item(entry.id, Some(entry.message), None), entry.parent_id),
            Some(SessionEntry::Custom(entry)) => {
                let custom = banyan::model::CustomPayload { custom_type: entry.custom_type, data: entry.data };
                (item(entry.id, None, Some(custom)), entry.parent_id)
            }
            None if items.is_empty() => {
                return Err(banyan::model::Error::entry_not_found(session_id, entry_id).into());
            }
            // What is lost is passed over, and nobody knows what came before it.
            None => break,
        };
        items.push(item);
        next = parent;
    }
    items.reverse();
    if after > 0 {
        let mut request = MessagesRequest::of(session_id.clone());
        request.after_entry_id = Some(entry_id.clone());
        request.limit = Some(after);
        request.include_image_data = Some(false);
        // An entry that is off the active path has nothing after it there.
        if let Ok(page) = ask(client, &request) {
            items.extend(page.messages);
        }
    }
    Ok(items)
}

fn item(
    entry_id: EntryId,
    message: Option<banyan::model::Raw<banyan::model::AgentMessage>>,
    custom: Option<banyan::model::CustomPayload>,
) -> MessageItem {
    MessageItem { entry_id, message, custom, origin: None, elided: false }
}
