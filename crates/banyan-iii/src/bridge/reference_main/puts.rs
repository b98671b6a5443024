//! Storing what was decided: the records are applied here, and what they make of the session is put.

use banyan::model::store::{
    EntryIdRequest, EventEnvelope, OkResponse, PublishEventsRequest, PublishEventsResponse, PutEntryRequest,
    PutMetaRequest, SessionIdRequest,
};
use banyan::model::{
    CommitNo, CustomEntry, EntryId, Error, Event, MessageEntry, Origin, Raw, Revision, Seq, SessionEntry,
    SessionId, SessionMeta,
};
use banyan::rules::event::{self, Narrator};
use banyan::rules::fork_ids::ForkIds;
use banyan::rules::record::{Envelope, Record};
use banyan::rules::state::extend_text;
use serde::Serialize;

use super::{Fetched, ReferenceMain};
use crate::bridge::seen::apply;
use crate::bridge::{Change, Place, Seen};

const PUT_META: &str = "session::store::put-meta";
const DELETE_META: &str = "session::store::delete-meta";
const PUT_ENTRY: &str = "session::store::put-entry";
const DELETE_ENTRIES: &str = "session::store::delete-entries";
const SET_LEAF: &str = "session::store::set-active-leaf";
const DELETE_LEAF: &str = "session::store::delete-active-leaf";
const PUBLISH: &str = "session::store::publish-events";

/// What is put into a session, in this order.
struct Puts {
    session_id: SessionId,
    entries: Vec<SessionEntry>,
    leaf: Option<EntryId>,
    meta: Option<SessionMeta>,
    events: Vec<Event>,
}

impl ReferenceMain {
    /// Stores what was decided. Somebody else's change in between is not noticed. What is begun is finished if the main
    /// answers each call in time.
    pub(in crate::bridge) async fn commit(&self, seen: &Seen, change: Change, time_ms: i64) -> Result<(), Error> {
        Self(self.0.each_in_time()).carry_out(seen, change, time_ms).await
    }

    async fn carry_out(&self, seen: &Seen, change: Change, time_ms: i64) -> Result<(), Error> {
        let Place::Reference(fetched) = &seen.place else {
            return Err(Error::storage("the main instance is another by now; call again").retryable());
        };
        match change {
            Change::Records(records, _) => self.put(records_as_puts(seen, fetched, &records, time_ms)?).await?,
            Change::Fork(session_id, records) => {
                self.put(fork_as_puts(seen, fetched, session_id, &records, time_ms)?).await?;
            }
            Change::Delete => self.delete(seen, time_ms).await?,
        }
        Ok(())
    }

    async fn put(&self, puts: Puts) -> Result<(), Error> {
        let id = &puts.session_id;
        for entry in puts.entries {
            self.done(PUT_ENTRY, &PutEntryRequest { session_id: id.clone(), entry }).await?;
        }
        if let Some(entry_id) = puts.leaf {
            self.done(SET_LEAF, &EntryIdRequest { session_id: id.clone(), entry_id }).await?;
        }
        if let Some(meta) = puts.meta {
            self.done(PUT_META, &PutMetaRequest { meta }).await?;
        }
        self.publish(&puts.events).await;
        Ok(())
    }

    async fn delete(&self, seen: &Seen, time_ms: i64) -> Result<(), Error> {
        let request = SessionIdRequest { session_id: seen.state.session_id().clone() };
        self.done(DELETE_ENTRIES, &request).await?;
        self.done(DELETE_LEAF, &request).await?;
        self.done(DELETE_META, &request).await?;
        self.publish(&[event::deleted(&seen.state, CommitNo(0), time_ms)]).await;
        Ok(())
    }

    /// Has the main tell of a change. It is stored by now, so a failure does not undo it.
    async fn publish(&self, events: &[Event]) {
        if events.is_empty() {
            return;
        }
        let envelope = |event: &Event| serde_json::from_str::<EventEnvelope>(&event.envelope());
        let events = match events.iter().map(envelope).collect() {
            Ok(events) => events,
            Err(error) => {
                tracing::warn!("{PUBLISH}: events could not be written, so nobody is told of them: {error}");
                return;
            }
        };
        let published = self.0.store::<PublishEventsResponse>(PUBLISH, &PublishEventsRequest { events }).await;
        if let Err(error) = published {
            tracing::warn!("nobody is told of a change that was stored: {error}");
        }
    }

    async fn done(&self, function_id: &str, request: &impl Serialize) -> Result<(), Error> {
        let done: OkResponse = self.0.store(function_id, request).await?;
        if done.ok {
            return Ok(());
        }
        Err(Error::storage(format!("{function_id}: the main instance answered that it is not done")))
    }
}

fn records_as_puts(seen: &Seen, fetched: &Fetched, records: &[Record], time_ms: i64) -> Result<Puts, Error> {
    let mut state = seen.state.clone();
    let mut narrator = Narrator::of(&state);
    let session_id = state.session_id().clone();
    let mut puts = Puts { session_id, entries: Vec::new(), leaf: None, meta: None, events: Vec::new() };
    for (at, record) in records.iter().enumerate() {
        let seq = Seq(seen.state.next_seq().0 + at as u64);
        let envelope = Envelope { seq, time_ms, commit: CommitNo(0) };
        apply(&mut state, record, time_ms);
        puts.take(seen, fetched, record, time_ms)?;
        let known = |id: &EntryId, _: Seq| {
            let entry = fetched.entries.get(id).cloned();
            entry.ok_or_else(|| Error::entry_not_found(seen.state.session_id(), id))
        };
        puts.events.extend(narrator.tell(envelope, record, &mut { known })?);
    }
    // Only choosing a leaf leaves no trace in what a session is known by.
    if records.iter().any(|record| !matches!(record, Record::LeafMoved(_))) {
        puts.meta = Some(state.meta().as_ref().clone());
    }
    Ok(puts)
}

impl Puts {
    /// What a record makes of the session's entries and of its leaf.
    fn take(&mut self, seen: &Seen, fetched: &Fetched, record: &Record, timestamp: i64) -> Result<(), Error> {
        match record {
            Record::Message(added) => {
                self.leaf = Some(added.entry_id.clone());
                self.entries.push(SessionEntry::Message(MessageEntry {
                    id: added.entry_id.clone(),
                    parent_id: added.parent_id.clone(),
                    timestamp,
                    revision: Revision(0),
                    origin: added.origin.clone().map(Origin::from),
                    message: added.message.clone(),
                }));
            }
            Record::Custom(added) => {
                self.leaf = Some(added.entry_id.clone());
                self.entries.push(SessionEntry::Custom(CustomEntry {
                    id: added.entry_id.clone(),
                    parent_id: added.parent_id.clone(),
                    timestamp,
                    revision: Revision(0),
                    origin: added.origin.clone().map(Origin::from),
                    custom_type: added.custom_type.clone(),
                    data: added.data.clone(),
                }));
            }
            Record::Updated(updated) => {
                let (id, message) = (&updated.entry_id, updated.message.clone());
                self.change(fetched, id, |entry| MessageEntry { revision: updated.revision, message, ..entry })?;
            }
            Record::Grew(grew) => {
                let Some(mut message) = seen.message().cloned() else { return Err(unread(&grew.entry_id)) };
                for add in &grew.adds {
                    extend_text(&mut message, grew.block, &add.text);
                }
                let message = Raw::of(&message)?;
                self.change(fetched, &grew.entry_id, |entry| MessageEntry {
                    revision: grew.revision,
                    message,
                    ..entry
                })?;
            }
            Record::LeafMoved(moved) => self.leaf = Some(moved.entry_id.clone()),
            _ => {}
        }
        Ok(())
    }

    fn change(
        &mut self,
        fetched: &Fetched,
        id: &EntryId,
        change: impl FnOnce(MessageEntry) -> MessageEntry,
    ) -> Result<(), Error> {
        match fetched.entries.get(id) {
            Some(SessionEntry::Message(entry)) => {
                self.entries.push(SessionEntry::Message(change(entry.clone())));
                Ok(())
            }
            _ => Err(unread(id)),
        }
    }
}

/// A fork at such a main is a copy of the path.
fn fork_as_puts(
    seen: &Seen,
    fetched: &Fetched,
    session_id: SessionId,
    records: &[Record],
    time_ms: i64,
) -> Result<Puts, Error> {
    let Some(Record::Created(created)) = records.first() else {
        return Err(Error::storage("a fork that does not begin"));
    };
    let meta = banyan::rules::decide::meta_of(created, time_ms);
    let at = created.base.as_ref().and_then(|base| seen.state.find(&base.entry_id));
    let chain = at.and_then(|ix| seen.state.chain(ix)).unwrap_or_default();
    let ids = ForkIds::new(&session_id);
    let mut entries: Vec<SessionEntry> = Vec::with_capacity(chain.len());
    for ix in chain {
        let original = fetched.listing.as_ref().and_then(|listing| listing.entry(ix));
        let original = original.ok_or_else(|| unread(&seen.state.id(ix)))?.clone();
        let id = ids.derive(original.id());
        let parent_id = entries.last().map(|entry| entry.id().clone());
        let revision = Revision(0);
        entries.push(match original {
            SessionEntry::Message(entry) => {
                SessionEntry::Message(MessageEntry { id, parent_id, revision, ..entry })
            }
            SessionEntry::Custom(entry) => SessionEntry::Custom(CustomEntry { id, parent_id, revision, ..entry }),
        });
    }
    let envelope = Envelope { seq: Seq(0), time_ms, commit: CommitNo(0) };
    let mut narrator = Narrator::new(session_id.clone());
    let unknown = |id: &EntryId, _: Seq| Err(unread(id));
    let events = narrator.tell(envelope, &records[0], &mut { unknown })?;
    let leaf = entries.last().map(|entry| entry.id().clone());
    Ok(Puts { session_id, entries, leaf, meta: Some(meta), events })
}

fn unread(id: &EntryId) -> Error {
    Error::storage(format!("the main instance did not give entry `{id}`, so it can be neither changed nor copied"))
}
