//! What a decision about a session needs, for another Banyan that decides.

use banyan_core::NodeKind;
use banyan_core::record::Attached;
use banyan_core::state::{Glimpsed, SessionState};
use banyan_model::store::{LookRequest, LookResponse, LookedEntry, StoredAttachment};
use banyan_model::{Error, Raw, SessionId};

use super::version_of;
use crate::Banyan;
use crate::access::Access;
use crate::bodies::{Body, Wanted};
use crate::clock::now_ms;
use crate::commit::Held;

impl Banyan {
    /// A session as far as a decision needs it. What was seen may change at once; the version tells.
    pub(crate) async fn store_look(&self, request: LookRequest) -> Result<LookResponse, Error> {
        let id = &request.session_id;
        // Which messages use an attachment is read while nobody can change it.
        let held = match request.fork_at.is_some() || request.attachment_id.is_some() {
            true => self.store.find(Access::whole(), id).await?,
            false => None,
        };
        let seen = self.store.look_at_lines(id, |state| {
            let message = request.message.as_ref().and_then(|entry| state.find(entry));
            let wanted = message.map(|ix| (state.sources().to_vec(), Wanted::of(state, ix)));
            (glimpse(state, &request), wanted)
        })?;
        let (mut response, wanted) = seen.unwrap_or_else(|| (nothing(id), None));
        if let Some((sources, wanted)) = wanted
            && let Some(fetched) = self.store.fetch_one(&sources, &wanted)?
            && let Body::Message(message) = fetched.body
        {
            response.message = Some(Raw::clone(&message));
        }
        if let Some(held) = held {
            let attached = self.attached(&request, &held, &mut response);
            self.store.let_go(held);
            attached?;
        }
        Ok(response)
    }

    fn attached(&self, request: &LookRequest, held: &Held, response: &mut LookResponse) -> Result<(), Error> {
        if let Some(entry_id) = &request.fork_at {
            let used = self.store.attachments_above(held, entry_id)?;
            response.attachments = held.with_state(|state| {
                let known = used.iter().filter_map(|id| state.attachments().get(id));
                known.map(stored).collect()
            });
        }
        if let Some(id) = &request.attachment_id {
            let known = held.with_state(|state| state.attachments().get(id).map(stored));
            if known.is_some() {
                response.used_by = self.store.user_of(held, id)?;
            }
            response.attachments.extend(known);
        }
        Ok(())
    }
}

fn glimpse(state: &SessionState, request: &LookRequest) -> LookResponse {
    let asked = request.entries.iter().chain(&request.message).chain(&request.fork_at);
    let mut nodes: Vec<_> = asked.filter_map(|id| state.find(id)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    LookResponse {
        version: version_of(&request.session_id, Some(state)),
        now: now_ms(),
        meta: state.exists().then(|| state.meta().as_ref().clone()),
        leaf: state.leaf_id(),
        entries: nodes.into_iter().map(|ix| looked(state.glimpse(ix))).collect(),
        message: None,
        attachments: Vec::new(),
        used_by: None,
    }
}

fn nothing(id: &SessionId) -> LookResponse {
    LookResponse {
        version: version_of(id, None),
        now: now_ms(),
        meta: None,
        leaf: None,
        entries: Vec::new(),
        message: None,
        attachments: Vec::new(),
        used_by: None,
    }
}

fn looked(seen: Glimpsed) -> LookedEntry {
    LookedEntry {
        entry_id: seen.id,
        parent_id: seen.parent_id,
        timestamp: seen.timestamp,
        revision: seen.revision,
        role: seen.kind.role(),
        lost: seen.kind == NodeKind::Lost,
        depth: seen.depth,
        messages: seen.messages,
        uncommitted: seen.uncommitted,
        endless: seen.endless,
    }
}

fn stored(attached: &Attached) -> StoredAttachment {
    StoredAttachment { attachment: attached.attachment.clone(), blob: attached.blob.clone() }
}
