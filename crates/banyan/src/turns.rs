//! `session::turns`: pages of turns, at the cost of the turns on them.

use banyan_core::cursor::TurnCursor;
use banyan_formats::audit::Facts;
use banyan_formats::turns::{Outlook, Turns};
use banyan_model::{
    EntryId, Error, GetMessageRequest, SessionEntry, SessionId, SessionMeta, Turn, TurnsRequest, TurnsResponse,
};

use crate::Banyan;
use crate::clock::now_ms;
use crate::path::{PathRequest, Stretch};

/// How many entries are read at once, and about how many bytes.
const ENTRIES: usize = 256;
const BYTES: u64 = 1 << 20;

/// So many entries can have told what is known before a page.
const FACTS: usize = 4;

/// The active path of a session, wherever it is stored.
pub trait TurnSource {
    /// One entry of it.
    fn entry(&self, id: &EntryId) -> Result<Option<SessionEntry>, Error>;
    /// Entries of the path, from its beginning or after one of them; and the last of them, when there are more.
    fn after(&self, id: Option<EntryId>) -> Result<(Vec<SessionEntry>, Option<EntryId>), Error>;
}

/// A page of turns, oldest first, of a session that is known by this.
pub fn turns_of(
    source: &dyn TurnSource,
    meta: SessionMeta,
    cursor: Option<&str>,
    limit: usize,
) -> Result<TurnsResponse, Error> {
    let cursor = cursor.map(TurnCursor::decode).transpose()?;
    let mut turns = Turns::new(Facts::of_metadata(meta.metadata.as_ref()));
    for id in cursor.iter().flat_map(|cursor| &cursor.context).take(FACTS) {
        if let Some(entry) = source.entry(id)? {
            turns.learn(&entry);
        }
    }
    let mut page: Vec<Turn> = Vec::new();
    let mut next = Some(cursor.map(|cursor| cursor.id));
    while let Some(after) = next.take() {
        let (entries, more) = source.after(after)?;
        for entry in &entries {
            let context = turns.told_by();
            page.extend(turns.push(entry));
            if page.len() == limit {
                let last = page.last().map(|turn| turn.last_entry_id.clone());
                let next_cursor = last.map(|id| TurnCursor { id, context }.encode());
                return Ok(TurnsResponse { turns: page, next_cursor });
            }
        }
        next = more.map(Some);
    }
    let outlook = Outlook::of(meta.status, meta.status_reason, meta.updated_at, now_ms());
    page.extend(turns.finish(&outlook));
    Ok(TurnsResponse { turns: page, next_cursor: None })
}

impl Banyan {
    /// A page of the turns of the active path, oldest first.
    pub async fn turns(&self, request: TurnsRequest) -> Result<TurnsResponse, Error> {
        let id = &request.session_id;
        let limit = self.store.settings.limits().page_size(request.limit);
        let seen = self.store.look(&self.access, id, |state| (state.meta().as_ref().clone(), state.leaf_id()))?;
        let (meta, leaf) = seen.ok_or_else(|| Error::not_found(id))?;
        turns_of(&Path { banyan: self, session_id: id, leaf }, meta, request.cursor.as_deref(), limit)
    }
}

/// A path of a session here. It stays the same, whatever happens to the session meanwhile.
struct Path<'b> {
    banyan: &'b Banyan,
    session_id: &'b SessionId,
    leaf: Option<EntryId>,
}

impl TurnSource for Path<'_> {
    fn entry(&self, id: &EntryId) -> Result<Option<SessionEntry>, Error> {
        let (session_id, entry_id) = (self.session_id.clone(), id.clone());
        let request = GetMessageRequest { session_id, entry_id, include_image_data: None };
        Ok(crate::block_on(self.banyan.get_message(request))?.map(|found| found.entry))
    }

    fn after(&self, id: Option<EntryId>) -> Result<(Vec<SessionEntry>, Option<EntryId>), Error> {
        if self.leaf.is_none() {
            return Ok((Vec::new(), None));
        }
        let stretch = id.map_or(Stretch::Oldest, Stretch::After);
        let (session_id, leaf) = (self.session_id.clone(), self.leaf.clone());
        let page = self.banyan.path(&PathRequest { session_id, leaf, stretch, entries: ENTRIES, bytes: BYTES })?;
        Ok((page.entries, page.next))
    }
}
