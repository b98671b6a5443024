//! Listening while things happen: slow listeners, many listeners, the end.

use std::thread;

use banyan::model::Position;
use banyan::{Banyan, Delivery, Options, Start, Subscribe};
use serde_json::json;

use crate::support::*;

/// Reads to the end of a stream that must end because its reader was slow.
fn until_lagged(ears: &mut Ears) -> Vec<Heard> {
    let mut heard = Vec::new();
    loop {
        match ears.next() {
            Some(Delivery::Event(event)) => heard.push(Heard::of(&event)),
            Some(Delivery::Lagged) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(ears.next().is_none(), "lagged is the last delivery");
    heard
}

#[test]
fn a_slow_subscriber_is_told_that_it_lagged_and_can_come_back() {
    let few_events = Options { subscriber_events: 8, ..Options::default() };
    let few_bytes = Options { subscriber_bytes: 10_000, ..Options::default() };
    for options in [few_events, few_bytes] {
        let store = Banyan::in_memory(options).unwrap();
        let session = door(&store).session();
        let mut slow = Ears::open(&store);
        let mut slow_from_the_past = Ears::after(&store, Position::BEGINNING);
        let mut quick = Ears::open(&store);
        let mut all = Vec::new();
        for n in 0..100 {
            door(&store).say(&session, &n.to_string().repeat(200));
            all.extend(quick.heard());
        }
        assert_eq!(all.len(), 100, "others are not held up");
        let mut heard = until_lagged(&mut slow);
        assert!((1..=40).contains(&heard.len()), "what is kept for it is bounded: {}", heard.len());
        assert_eq!(types(&until_lagged(&mut slow_from_the_past))[..1], ["created"]);
        let last = heard.last().unwrap().position;
        heard.extend(Ears::after(&store, last).heard());
        assert_eq!(heard, all);
    }
}

#[test]
fn one_event_larger_than_the_bound_is_still_delivered() {
    let store = Banyan::in_memory(Options { subscriber_bytes: 1000, ..Options::default() }).unwrap();
    let session = door(&store).session();
    let mut ears = Ears::open(&store);
    for _ in 0..3 {
        door(&store).say(&session, &"x".repeat(5000));
        assert_eq!(ears.heard().len(), 1);
    }
}

#[test]
fn a_thousand_subscriptions_to_other_things_hear_nothing() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let other = |n: usize| match n % 4 {
        0 => vec![filter("session::message-added", &json!({"session_id": format!("other {n}")})).unwrap()],
        1 => vec![filter("session::created", &json!({"metadata": {"owner": n}})).unwrap()],
        2 => vec![filter("session::message-added", &json!({"roles": ["function_result"]})).unwrap()],
        _ => vec![filter("session::message-updated", &json!({"metadata": {"owner": "u", "n": n}})).unwrap()],
    };
    let mut others: Vec<Ears> =
        (0..1000).map(|n| Ears::of(&store, Subscribe { filters: other(n), start: Start::Now })).collect();
    let mut mine = Ears::open(&store);
    let session = door(&store).ok("create", json!({"metadata": {"owner": "u"}}))["session_id"].clone();
    let entry = door(&store).say(&session, "hi");
    door(&store).ok("update-message", json!({"session_id": session, "entry_id": entry, "content": text("ho")}));
    assert_eq!(types(&mine.heard()), ["created", "message-added", "message-updated"]);
    for ears in &mut others {
        assert_eq!(ears.heard(), []);
    }
}

#[test]
fn a_subscription_ends_when_the_store_is_closed() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let session = door(&store).session();
    let mut ears = Ears::open(&store);
    door(&store).say(&session, "last");
    store.close().unwrap();
    assert_eq!(types(&ears.take(1)), ["message-added"]);
    assert!(ears.next().is_none());
}

#[test]
fn a_waiting_subscriber_is_woken_by_an_event() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let session = door(&store).session();
    let mut ears = Ears::open(&store);
    thread::scope(|scope| {
        let waiting = scope.spawn(move || ears.take(3));
        for text in ["a", "b", "c"] {
            door(&store).say(&session, text);
        }
        let texts: Vec<String> =
            waiting.join().unwrap().iter().map(|heard| said_in(&heard.payload["message"])).collect();
        assert_eq!(texts, ["a", "b", "c"]);
    });
}

#[test]
fn whoever_subscribes_to_a_store_that_is_closed_is_at_the_end_at_once() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    door(&store).session();
    store.close().unwrap();
    assert!(Ears::open(&store).next().is_none());
}

#[test]
fn what_waits_for_all_subscribers_together_is_bounded_and_the_slowest_lag() {
    const MOST: usize = 1 << 20;
    let options = Options { waiting_event_bytes: MOST, search: banyan::SearchIndexing::Off, ..Options::default() };
    let store = Banyan::in_memory(options).unwrap();
    let session = door(&store).session();
    let other = door(&store).session();
    let of = |session: &serde_json::Value| {
        let id = Some(session.as_str().unwrap().into());
        let filters =
            everything().into_iter().map(|filter| banyan::model::EventFilter { session_id: id.clone(), ..filter });
        Ears::of(&store, Subscribe { filters: filters.collect(), start: Start::Now })
    };
    // None of them is beyond its own bounds.
    let mut deaf: Vec<Ears> = (0..8).map(|_| of(&session)).collect();
    let mut slow = of(&other);
    let mut quick = Ears::open(&store);
    let large = "x".repeat(100_000);
    let mut all = Vec::new();
    door(&store).say(&other, "one");
    door(&store).say(&other, "two");
    all.extend(quick.heard());
    for _ in 0..40 {
        door(&store).say(&session, &large);
        all.extend(quick.heard());
        assert!(store.waiting_event_bytes() <= MOST, "{} bytes wait", store.waiting_event_bytes());
    }
    assert_eq!(all.len(), 42, "one that keeps up is not held up");
    assert_eq!(slow.heard().len(), 2, "one that holds little stays");
    for ears in &mut deaf {
        // What was dropped is read again from where it was.
        let heard = until_lagged(ears);
        let last = heard.last().map_or(all[1].position, |heard| heard.position);
        let rest = Ears::after(&store, last).heard();
        assert_eq!(heard.len() + rest.len(), 40);
    }
    drop((deaf, slow, quick));
    assert_eq!(store.waiting_event_bytes(), 0);
}

#[test]
fn an_event_that_waits_for_many_is_counted_once() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let session = door(&store).session();
    let ears: Vec<Ears> = (0..50).map(|_| Ears::open(&store)).collect();
    door(&store).say(&session, &"x".repeat(100_000));
    let waiting = store.waiting_event_bytes();
    assert!((100_000..110_000).contains(&waiting), "{waiting} bytes");
    drop(ears);
    assert_eq!(store.waiting_event_bytes(), 0);
}
