//! A session as it is, then what follows.

use std::thread;

use banyan::model::{EventFilter, EventType, Position, SessionId};
use banyan::{Banyan, Delivery, Options, Start, Subscribe};
use serde_json::{Value, json};

use crate::support::*;

#[test]
fn a_snapshot_is_followed_by_what_happens_with_no_gap_and_nothing_twice() {
    for on_disk in [false, true] {
        let directory = on_disk.then(OnDisk::new);
        let store = directory
            .as_ref()
            .map_or_else(|| Banyan::in_memory(Options::default()).unwrap(), |it| it.store.clone());
        let session = door(&store).session();
        let streamed = door(&store).append(&session, json!({"message": assistant("")}));
        const EACH: usize = 60;
        thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|writer| {
                    let (store, session, streamed) = (&store, &session, &streamed);
                    scope.spawn(move || {
                        for n in 0..EACH {
                            match writer {
                                0 => {
                                    door(store).ok(
                                        "extend-message",
                                        json!({"session_id": session, "entry_id": streamed, "text": "x"}),
                                    );
                                }
                                _ => {
                                    door(store).say(session, &format!("{writer}/{n}"));
                                }
                            }
                        }
                    })
                })
                .collect();
            let listeners: Vec<_> =
                (0..4).map(|_| scope.spawn(|| follow(&store, &session, &streamed, EACH))).collect();
            for thread in writers.into_iter().chain(listeners) {
                thread.join().unwrap();
            }
        });
        follow(&store, &session, &streamed, EACH);
    }
}

/// Follows a session from a snapshot on, until everything has been seen, each thing once.
fn follow(store: &Banyan, session: &Value, streamed: &Value, each: usize) {
    let filters: Vec<EventFilter> =
        everything().into_iter().filter(|filter| filter.event_type != EventType::Created).collect();
    let start = Start::Snapshot(SessionId::from(session.as_str().unwrap()));
    let mut ears = Ears::of(store, Subscribe { filters, start });
    let mut entries: Vec<Value> = Vec::new();
    let mut revision = 0;
    let mut ended = None;
    while entries.len() < 1 + 2 * each || revision < each as u64 {
        let heard = match ears.next().unwrap() {
            Delivery::Snapshot(event) => {
                assert_eq!(ended, None);
                Heard::of(&event)
            }
            Delivery::SnapshotEnd(position) => {
                assert_eq!(ended.replace(position), None);
                continue;
            }
            Delivery::Event(event) => {
                assert!(event.position > ended.unwrap());
                Heard::of(&event)
            }
            other => panic!("{other:?}"),
        };
        match heard.event_type.as_str() {
            "session::created" => {
                assert_eq!((ended, heard.payload["session_id"].clone()), (None, session.clone()))
            }
            "session::message-added" => {
                assert!(!entries.contains(&heard.payload["entry_id"]), "an entry came twice");
                entries.push(heard.payload["entry_id"].clone());
            }
            "session::message-updated" => {
                assert_eq!(heard.payload["entry_id"], *streamed);
                let next = heard.payload["revision"].as_u64().unwrap();
                assert!(
                    if ended.is_none() { revision == 0 } else { next == revision + 1 },
                    "{next} after {revision}"
                );
                assert_eq!(said_in(&heard.payload["message"]).len() as u64, next);
                revision = next;
            }
            other => panic!("{other}"),
        }
    }
    let rest = ears.deliveries();
    assert!(rest.iter().all(|delivery| matches!(delivery, Delivery::SnapshotEnd(_))), "{rest:?}");
}

#[test]
fn a_subscriber_comes_back_after_a_snapshot() {
    let on_disk = OnDisk::new();
    let session = door(&on_disk.store).session();
    door(&on_disk.store).say(&session, "before");
    let start = Start::Snapshot(SessionId::from(session.as_str().unwrap()));
    let mut ears = Ears::of(&on_disk.store, Subscribe { filters: everything(), start });
    let deliveries = ears.deliveries();
    let Some(Delivery::SnapshotEnd(end)) = deliveries.last().cloned() else { panic!("{deliveries:?}") };
    door(&on_disk.store).say(&session, "after");
    let live = ears.heard();
    assert_eq!(types(&live), ["message-added"]);
    drop(ears);
    let end: Position = end.to_string().parse().unwrap();
    assert_eq!(Ears::after(&on_disk.store, end).heard(), live);
    assert_eq!(Ears::after(&on_disk.reopened().store, end).heard(), live);
}

#[test]
fn a_snapshot_of_what_does_not_exist_is_refused() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let refused = store.subscribe(Subscribe { filters: everything(), start: Start::Snapshot("nobody".into()) });
    assert_eq!(refused.err().unwrap().code.as_str(), "session/not_found");
}

#[test]
fn a_long_snapshot_is_read_as_it_is_told() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let session = door(&store).session();
    let messages: Vec<Value> = (0..400).map(|n| user(&n.to_string())).collect();
    for _ in 0..2 {
        door(&store).ok("append-many", json!({"session_id": session, "messages": messages}));
    }
    let subscribe = || {
        let start = Start::Snapshot(SessionId::from(session.as_str().unwrap()));
        Ears::of(&store, Subscribe { filters: everything(), start })
    };
    let mut ears = subscribe();
    let path = door(&store).ok("tree", json!({"session_id": session}));
    for n in 0..=800 {
        let Some(Delivery::Snapshot(event)) = ears.next() else { panic!("part {n} should come") };
        if n > 0 {
            assert_eq!(json!(event.payload)["entry_id"], path["entries"][n - 1]["entry_id"]);
        }
    }
    assert!(matches!(ears.next(), Some(Delivery::SnapshotEnd(_))));
    // A session that ends while it is told is told to have ended.
    let mut ears = subscribe();
    assert!(matches!(ears.next(), Some(Delivery::Snapshot(_))));
    door(&store).ok("delete", json!({"session_id": session}));
    assert!(matches!(ears.next(), Some(Delivery::SnapshotEnd(_))));
    let Some(Delivery::Event(last)) = ears.next() else { panic!("the end should be told") };
    assert_eq!(last.event_type(), EventType::Deleted);
}
