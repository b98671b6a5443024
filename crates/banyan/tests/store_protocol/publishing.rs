//! Events of another instance's commits.

use banyan::model::{Event, EventPayload, Position};
use banyan::{Banyan, Delivery, Options, Start, Subscribe};
use serde_json::{Value, json};

use super::super::{meta, ok, put_meta};
use crate::support::*;

fn added(session: &str, entry: &str, said: Value) -> Value {
    json!({"trigger_type": "session::message-added", "session_metadata": {"owner": "u"}, "payload":
        {"session_id": session, "entry_id": entry, "parent_id": null, "message": said, "timestamp": 7}})
}

fn publish(main: &Banyan, events: Value) -> Value {
    ok(main, "publish-events", json!({"events": events}))["published"].clone()
}

#[test]
fn well_formed_events_are_told_as_they_are_and_the_others_dropped() {
    let main = Banyan::in_memory(Options::default()).unwrap();
    let mut all = Ears::open(&main);
    let roles = filter("session::message-added", &json!({"roles": ["user"], "metadata": {"owner": "u"}})).unwrap();
    let mut users = Ears::of(&main, Subscribe { filters: vec![roles], start: Start::Now });
    let deleted = json!({"trigger_type": "session::deleted", "payload": {"session_id": "s", "timestamp": 9}});
    let mut neither = added("s", "z", user("x"));
    neither["payload"].as_object_mut().unwrap().remove("message");
    let published = publish(
        &main,
        json!([
            added("s", "a", user("hello")),
            {"trigger_type": "session::nonsense", "payload": {}},
            {"trigger_type": "session::deleted", "payload": {"session_id": 7}},
            added("s", "b", json!({"role": "robot"})),
            neither,
            added("s", "c", assistant("hi")),
            deleted,
        ]),
    );
    assert_eq!(published, 3);
    let heard = all.heard();
    assert_eq!(types(&heard), ["message-added", "message-added", "deleted"]);
    assert_eq!(heard[0].payload, added("s", "a", user("hello"))["payload"]);
    assert!(heard.windows(2).all(|two| two[0].position < two[1].position));
    assert_eq!(users.heard(), heard[..1]);
    assert_eq!(Ears::after(&main, Position::BEGINNING).heard(), [], "they are in no record");
}

#[test]
fn they_stand_behind_the_newest_commit_and_who_saw_one_goes_on_from_there() {
    let on_disk = OnDisk::new();
    let main = &on_disk.store;
    let session = door(main).session();
    let mut ears = Ears::open(main);
    door(main).say(&session, "one");
    publish(main, json!([added("s", "a", user("a"))]));
    publish(main, json!([added("s", "b", user("b"))]));
    door(main).say(&session, "two");
    put_meta(main, &meta("raw", "silent", 0));
    publish(main, json!([added("s", "c", user("c"))]));
    let heard = ears.heard();
    assert_eq!(heard.len(), 5);
    assert!(heard.windows(2).all(|two| two[0].position < two[1].position), "{heard:?}");
    let replayed = |main: &Banyan, at: usize| Ears::after(main, heard[at].position).heard();
    assert_eq!(replayed(main, 0), [heard[3].clone()], "what was published is told once");
    assert_eq!(replayed(main, 1), [heard[3].clone()]);
    assert_eq!(replayed(main, 2), [heard[3].clone()]);
    assert_eq!(replayed(main, 4), []);
    // Who comes back is told what is published from then on, whatever it saw before.
    let mut back = Ears::after(main, heard[4].position);
    assert_eq!(back.heard(), []);
    publish(main, json!([added("s", "d", user("d"))]));
    assert_eq!(back.heard().len(), 1);
    drop((ears, back));
    let on_disk = on_disk.reopened();
    let mut back = Ears::after(&on_disk.store, heard[4].position);
    publish(&on_disk.store, json!([added("s", "e", user("e"))]));
    assert_eq!(back.heard().len(), 1);
}

#[test]
fn an_event_goes_to_other_instances_with_all_that_filters_need() {
    let main = Banyan::in_memory(Options::default()).unwrap();
    let mut ears = Ears::open(&main);
    let created = door(&main).ok("create", json!({"metadata": {"owner": "u"}}));
    let said = door(&main).say(&created["session_id"], "hello");
    let plain = door(&main).session();
    let envelopes: Vec<Value> = ears
        .deliveries()
        .into_iter()
        .map(|delivery| match delivery {
            Delivery::Event(event) => serde_json::from_str(&event.envelope()).unwrap(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(envelopes[0]["trigger_type"], "session::created");
    assert_eq!(envelopes[0]["session_metadata"], json!({"owner": "u"}));
    assert_eq!(envelopes[1]["payload"]["entry_id"], said);
    assert_eq!(envelopes[2]["payload"]["session_id"], plain);
    assert_eq!(envelopes[2].get("session_metadata"), None);
    // And they are taken in as they were sent.
    let other = Banyan::in_memory(Options::default()).unwrap();
    let mut there = Ears::open(&other);
    assert_eq!(publish(&other, json!(envelopes)), 3);
    let payloads: Vec<Value> = there.heard().into_iter().map(|heard| heard.payload).collect();
    let sent: Vec<Value> = envelopes.into_iter().map(|envelope| envelope["payload"].clone()).collect();
    assert_eq!(payloads, sent);
}

#[test]
fn an_envelope_is_one_line_whatever_the_event() {
    let payload = EventPayload::read(
        "session::deleted".parse().unwrap(),
        &json!({"session_id": "a\nb", "timestamp": 1}).to_string(),
    );
    let event = Event::new(Position::BEGINNING, payload.unwrap(), None, None);
    assert_eq!(
        event.envelope(),
        r#"{"trigger_type":"session::deleted","payload":{"session_id":"a\nb","timestamp":1}}"#
    );
}
