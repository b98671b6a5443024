//! A main that is a session-manager: its published store protocol, one call after another, in the order in which
//! session-manager itself makes them. The last to put a thing wins, as among its own bridges.

mod listing;
mod puts;

use std::collections::HashMap;

use banyan::model::store::{
    ActiveLeafResponse, EntryIdRequest, ListEntriesResponse, ListMetasRequest, ListMetasResponse, SessionIdRequest,
};
use banyan::model::{AgentMessage, CommitNo, EntryId, Error, Seq, SessionEntry, SessionId, SessionMeta};
use banyan::now_ms;
use banyan::rules::NodeKind;
use banyan::rules::born::Born;
use banyan::rules::state::{Glimpse, Glimpsed, SessionState};

use super::main_instance::Caller;
use super::{Ask, GET_META, Leaf, Place, Seen};

pub(super) use listing::Listing;

const LIST_METAS: &str = "session::store::list-metas";
const GET_ENTRY: &str = "session::store::get-entry";
const LIST_ENTRIES: &str = "session::store::list-entries";
const GET_LEAF: &str = "session::store::get-active-leaf";

/// See the module.
pub(super) struct ReferenceMain(pub(super) Caller);

/// What was fetched of a session.
pub(super) struct Fetched {
    /// Entries that were named.
    entries: HashMap<EntryId, SessionEntry>,
    /// All of it, when it is to be forked.
    listing: Option<Listing>,
}

impl ReferenceMain {
    pub(super) async fn look(&self, ask: &Ask) -> Result<Seen, Error> {
        let mut fetched = Fetched { entries: HashMap::new(), listing: None };
        if ask.fork_at.is_some()
            && let Some(listing) = self.listing(&ask.session_id).await?
        {
            let state = listing.state.clone();
            fetched.listing = Some(listing);
            return Ok(Seen::new(state, now_ms(), Place::Reference(Box::new(fetched))));
        }
        let meta = self.meta(&ask.session_id).await?;
        let mut leaf = None;
        // What does not exist has nothing that could be named.
        if meta.is_some() {
            for id in ask.entries.iter().chain(&ask.message) {
                if let Some(entry) = self.entry(&ask.session_id, id).await? {
                    fetched.entries.insert(id.clone(), entry);
                }
            }
            if ask.leaf == Leaf::Wanted {
                leaf = self.leaf(&ask.session_id).await?;
            }
        }
        let message = match ask.message.as_ref().and_then(|id| fetched.entries.get(id)) {
            Some(SessionEntry::Message(entry)) => {
                Some((entry.id.clone(), entry.message.parse().map_err(nonsense)?))
            }
            _ => None,
        };
        let entries = fetched.entries.values().map(glimpsed).collect::<Result<_, Error>>()?;
        let state = SessionState::glimpsed(Glimpse {
            session_id: ask.session_id.clone(),
            born: Born::unsaid(&ask.session_id),
            next_seq: Seq(0),
            last_commit: CommitNo(0),
            meta,
            leaf,
            entries,
            attachments: Vec::new(),
        });
        Ok(Seen { message, ..Seen::new(state, now_ms(), Place::Reference(Box::new(fetched))) })
    }

    /// A whole session; `None` when there is none.
    pub(super) async fn listing(&self, id: &SessionId) -> Result<Option<Listing>, Error> {
        let Some(meta) = self.meta(id).await? else { return Ok(None) };
        let request = SessionIdRequest { session_id: id.clone() };
        let entries: ListEntriesResponse = self.0.store(LIST_ENTRIES, &request).await?;
        let leaf = self.leaf(id).await?;
        Listing::of(id, meta, entries.entries, leaf).map(Some)
    }

    pub(super) async fn meta(&self, id: &SessionId) -> Result<Option<SessionMeta>, Error> {
        self.0.store(GET_META, &SessionIdRequest { session_id: id.clone() }).await
    }

    pub(super) async fn metas(&self) -> Result<Vec<SessionMeta>, Error> {
        let listed: ListMetasResponse = self.0.store(LIST_METAS, &ListMetasRequest {}).await?;
        Ok(listed.metas)
    }

    pub(super) async fn entry(&self, id: &SessionId, entry_id: &EntryId) -> Result<Option<SessionEntry>, Error> {
        let request = EntryIdRequest { session_id: id.clone(), entry_id: entry_id.clone() };
        self.0.store(GET_ENTRY, &request).await
    }

    async fn leaf(&self, id: &SessionId) -> Result<Option<EntryId>, Error> {
        let request = SessionIdRequest { session_id: id.clone() };
        let leaf: ActiveLeafResponse = self.0.store(GET_LEAF, &request).await?;
        Ok(leaf.entry_id)
    }
}

fn glimpsed(entry: &SessionEntry) -> Result<Glimpsed, Error> {
    let kind = match entry {
        SessionEntry::Message(entry) => {
            let message: AgentMessage = entry.message.parse().map_err(nonsense)?;
            NodeKind::of_role(message.role())
        }
        SessionEntry::Custom(_) => NodeKind::CustomEntry,
    };
    Ok(Glimpsed {
        id: entry.id().clone(),
        parent_id: entry.parent_id().cloned(),
        timestamp: entry.timestamp(),
        revision: entry.revision(),
        kind,
        depth: 0,
        messages: 0,
        uncommitted: false,
        endless: false,
    })
}

fn nonsense(error: Error) -> Error {
    Error::storage(format!("{GET_ENTRY}: the main instance answered nonsense: {}", error.message))
}
