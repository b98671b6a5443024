//! What subscribers are told: the past again is what was told live, and leads to the present.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use banyan::{Banyan, Delivery, Start, Subscribe, Subscription};
use banyan_model::{Error, Event, EventFilter, EventType, Position};
use serde_json::Value;

use crate::model::{Body, Model};

/// An event as a subscriber sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// Its place in the order over all sessions.
    pub position: Position,
    /// Its type.
    pub kind: EventType,
    /// What it says.
    pub payload: Value,
}

impl Told {
    fn new(event: &Event) -> Self {
        let payload = serde_json::to_value(&event.payload).unwrap();
        Self { position: event.position, kind: event.event_type(), payload }
    }

    fn text(&self, field: &str) -> String {
        self.payload[field].as_str().unwrap_or_else(|| panic!("no `{field}` in {self:?}")).to_owned()
    }

    fn session(&self) -> String {
        self.text("session_id")
    }
}

/// Subscribes to everything.
pub fn subscribe(store: &Banyan, start: Start) -> Result<Subscription, Error> {
    let filters = EventType::ALL.map(EventFilter::all).to_vec();
    store.subscribe(Subscribe { filters, start })
}

/// What a subscription has to tell by now.
pub fn drain(subscription: &mut Subscription) -> Result<Vec<Told>, Error> {
    Ok(events(subscription)?.iter().map(|event| Told::new(event)).collect())
}

fn events(subscription: &mut Subscription) -> Result<Vec<Arc<Event>>, Error> {
    let mut events = Vec::new();
    while let Some(delivery) = subscription.try_next()? {
        let Delivery::Event(event) = delivery else { panic!("{delivery:?} after {} events", events.len()) };
        events.push(event);
    }
    Ok(events)
}

/// Every event from the beginning on.
pub fn all(store: &Banyan) -> Vec<Arc<Event>> {
    all_after(store, Position::BEGINNING)
}

/// Every event after a position.
pub fn all_after(store: &Banyan, position: Position) -> Vec<Arc<Event>> {
    events(&mut subscribe(store, Start::After(position)).unwrap()).unwrap()
}

/// Every event from the beginning on, as a subscriber sees them.
pub fn replay(store: &Banyan) -> Vec<Told> {
    told(&all(store))
}

/// Events as a subscriber sees them.
pub fn told(events: &[Arc<Event>]) -> Vec<Told> {
    let told: Vec<Told> = events.iter().map(|event| Told::new(event)).collect();
    let in_order = told.windows(2).all(|pair| pair[0].position < pair[1].position);
    assert!(in_order, "positions grow: {:?}", told.iter().map(|event| event.position).collect::<Vec<_>>());
    told
}

/// What was told live is told again, in the same words. At most one call's events may follow.
/// Earlier events of a session that was deleted since are left out.
pub fn check_same(live: &[Told], again: &[Told]) {
    let mut ends: HashMap<String, Position> = HashMap::new();
    for event in again.iter().filter(|event| event.kind == EventType::Deleted) {
        ends.insert(event.session(), event.position);
    }
    let kept = |event: &&Told| {
        event.kind == EventType::Deleted || ends.get(&event.session()).is_none_or(|end| *end < event.position)
    };
    let expected: Vec<&Told> = live.iter().filter(kept).collect();
    for (at, expected) in expected.iter().enumerate() {
        assert_eq!(Some(*expected), again.get(at), "event {at} of the replay");
    }
    let more = &again[expected.len()..];
    let one_call = more.windows(2).all(|pair| pair[0].position.commit == pair[1].position.commit);
    assert!(one_call, "more than one call that nobody heard of: {more:?}");
}

#[derive(Default)]
struct Folded {
    title: String,
    status: String,
    entries: Vec<(String, Option<String>)>,
    bodies: HashMap<String, (u64, Body)>,
}

/// The events from the beginning on lead to what is there.
pub fn check_leads_to(told: &[Told], found: &Model) {
    let mut folded: BTreeMap<String, Folded> = BTreeMap::new();
    for event in told {
        fold(&mut folded, event);
    }
    let ids = |model: Vec<&String>| model.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(
        ids(folded.keys().collect()),
        ids(found.sessions.keys().collect()),
        "sessions by events and by list"
    );
    for (id, session) in &found.sessions {
        let folded = &folded[id];
        assert_eq!((&folded.title, &folded.status), (&session.title, &session.status), "{id}");
        let inherited = session.entries.len().saturating_sub(folded.entries.len());
        assert!(inherited == 0 || session.forked_from.is_some(), "{id} has entries that no event told of");
        let own = session.entries[inherited..].iter().map(|entry| (entry.id.clone(), entry.parent.clone()));
        assert_eq!(folded.entries, own.collect::<Vec<_>>(), "{id}");
        for entry in &session.entries {
            match folded.bodies.get(&entry.id) {
                Some(told) => assert_eq!(told, &(entry.revision, entry.body.clone()), "{} of {id}", entry.id),
                None => assert_eq!(entry.revision, 0, "{} of {id}", entry.id),
            }
        }
    }
}

fn fold(sessions: &mut BTreeMap<String, Folded>, event: &Told) {
    let id = event.session();
    if event.kind == EventType::Deleted {
        sessions.remove(&id);
        return;
    }
    let session = sessions.entry(id).or_default();
    let message = || event.payload.get("message").map(|message| Body::Message(message.clone()));
    match event.kind {
        EventType::Created => {
            *session = Folded { title: event.text("title"), status: event.text("status"), ..Folded::default() };
        }
        EventType::MessageAdded => {
            let parent = event.payload["parent_id"].as_str().map(str::to_owned);
            session.entries.push((event.text("entry_id"), parent));
            let body = message().unwrap_or_else(|| Body::Custom(event.payload["custom"].clone()));
            session.bodies.insert(event.text("entry_id"), (0, body));
        }
        EventType::MessageUpdated => {
            let revision = event.payload["revision"].as_u64().unwrap();
            let before = session.bodies.insert(event.text("entry_id"), (revision, message().unwrap()));
            let before = before.map_or(0, |(revision, _)| revision);
            assert_eq!(before + 1, revision, "no revision is skipped: {event:?}");
        }
        EventType::StatusChanged => session.status = event.text("status"),
        EventType::MetaUpdated => session.title = event.text("title"),
        EventType::Deleted => {}
    }
}
