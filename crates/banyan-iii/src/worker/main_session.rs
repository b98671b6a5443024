//! One session of a main instance, told as events, parents before children.

use std::sync::Arc;

use banyan::model::{
    CreatedEvent, Event, EventPayload, MessageUpdatedEvent, Object, Origin, Position, Revision, Role,
    SessionEntry, SessionId, SessionMeta,
};
use banyan::rules::event::added;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::bridge::{Main, parents_first};

#[derive(Deserialize)]
struct Entries {
    entries: Vec<SessionEntry>,
}

/// The session as it is. One that is gone by now has nothing to tell.
pub(super) async fn events(main: &dyn Main, id: &SessionId) -> Result<Vec<Event>, String> {
    let Some(meta) = ask::<Option<SessionMeta>>(main, "session::store::get-meta", id).await? else {
        return Ok(Vec::new());
    };
    let Entries { entries } = ask(main, "session::store::list-entries", id).await?;
    let metadata = meta.metadata.clone().map(Arc::new);
    let created = EventPayload::Created(CreatedEvent {
        session_id: id.clone(),
        title: meta.title,
        description: meta.description,
        status: meta.status,
        forked_from: meta.forked_from,
        created_at: meta.created_at,
    });
    let mut events = vec![event(created, None, &metadata)];
    for entry in parents_first(entries) {
        let updated = updated(id, &entry);
        let (payload, role) = added(id.clone(), entry).map_err(|error| error.to_string())?;
        events.push(event(payload, role, &metadata));
        events.extend(updated.map(|payload| event(payload, role, &metadata)));
    }
    Ok(events)
}

fn event(payload: EventPayload, role: Option<Role>, metadata: &Option<Arc<Object>>) -> Event {
    Event::new(Position::BEGINNING, payload, role, metadata.clone())
}

/// For a message that has changed: its revision, so that a later update is not taken for an older one.
fn updated(session: &SessionId, entry: &SessionEntry) -> Option<EventPayload> {
    let SessionEntry::Message(entry) = entry else { return None };
    (entry.revision > Revision(0)).then(|| {
        EventPayload::MessageUpdated(MessageUpdatedEvent {
            session_id: session.clone(),
            entry_id: entry.id.clone(),
            message: entry.message.clone(),
            revision: entry.revision,
            origin: entry.origin.as_ref().map(Origin::object),
            timestamp: entry.timestamp,
        })
    })
}

async fn ask<A: DeserializeOwned>(main: &dyn Main, function_id: &str, id: &SessionId) -> Result<A, String> {
    let answer = main.call(function_id, json!({"session_id": id}).to_string(), main.within()).await;
    let answer = answer.map_err(|error| format!("{function_id}: {error}"))?;
    serde_json::from_str(answer.get()).map_err(|error| format!("{function_id}: {error}"))
}
