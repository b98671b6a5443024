//! `session::turns`: pages of turns, at the cost of the turns on them.

use banyan_core::cursor::TurnCursor;
use banyan_formats::audit::Facts;
use banyan_formats::turns::{Outlook, Turns};
use banyan_model::{EntryId, Error, GetMessageRequest, SessionId, Turn, TurnsRequest, TurnsResponse};

use crate::Banyan;
use crate::clock::now_ms;
use crate::path::{PathRequest, Stretch};

/// How many entries are read at once, and about how many bytes.
const ENTRIES: usize = 256;
const BYTES: u64 = 1 << 20;

/// So many entries can have told what is known before a page.
const FACTS: usize = 4;

impl Banyan {
    /// A page of the turns of the active path, oldest first.
    pub async fn turns(&self, request: TurnsRequest) -> Result<TurnsResponse, Error> {
        let id = &request.session_id;
        let limit = self.store.settings.limits().page_size(request.limit);
        let cursor = request.cursor.as_deref().map(TurnCursor::decode).transpose()?;
        let seen = self.store.look(&self.access, id, |state| (state.meta().as_ref().clone(), state.leaf_id()))?;
        let (meta, leaf) = seen.ok_or_else(|| Error::not_found(id))?;
        let mut turns = Turns::new(Facts::of_metadata(meta.metadata.as_ref()));
        for entry_id in cursor.iter().flat_map(|cursor| &cursor.context).take(FACTS) {
            self.learn(id, entry_id.clone(), &mut turns).await?;
        }
        let mut page: Vec<Turn> = Vec::new();
        // The page is of one path, whatever happens to the session meanwhile.
        let mut next = leaf.as_ref().map(|_| cursor.map_or(Stretch::Oldest, |cursor| Stretch::After(cursor.id)));
        while let Some(stretch) = next.take() {
            let read = self.path(&PathRequest {
                session_id: id.clone(),
                leaf: leaf.clone(),
                stretch,
                entries: ENTRIES,
                bytes: BYTES,
            })?;
            for entry in &read.entries {
                let context = turns.told_by();
                page.extend(turns.push(entry));
                if page.len() == limit {
                    let next_cursor =
                        page.last().map(|turn| TurnCursor { id: turn.last_entry_id.clone(), context }.encode());
                    return Ok(TurnsResponse { turns: page, next_cursor });
                }
            }
            next = read.next.map(Stretch::After);
        }
        let outlook = Outlook::of(meta.status, meta.status_reason, meta.updated_at, now_ms());
        page.extend(turns.finish(&outlook));
        Ok(TurnsResponse { turns: page, next_cursor: None })
    }

    /// Learns what an entry before the page told of the surroundings.
    async fn learn(&self, id: &SessionId, entry_id: EntryId, turns: &mut Turns) -> Result<(), Error> {
        let request = GetMessageRequest { session_id: id.clone(), entry_id, include_image_data: None };
        if let Some(found) = self.get_message(request).await? {
            turns.learn(&found.entry);
        }
        Ok(())
    }
}
