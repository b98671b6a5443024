//! Subscriptions: history and live are one stream, and a subscriber comes back by position.

mod support;

use std::thread;

use banyan::model::{CommitNo, EventFilter, EventType, Position, SessionId};
use banyan::{Banyan, Delivery, Durability, Options, Start, Subscribe};
use serde_json::{Value, json};
use support::*;

fn door(store: &Banyan) -> &dyn Door {
    store
}

/// Something of everything, with no session deleted. Returns the sessions.
fn a_busy_run(store: &dyn Door) -> Vec<Value> {
    let request = |n: usize| json!({"session_id": format!("s{n}"), "metadata": {"owner": "old"}});
    let ids: Vec<Value> = (0..3).map(|n| store.ok("ensure", request(n))["session_id"].clone()).collect();
    let entries: Vec<Value> = ids.iter().map(|id| store.append(id, json!({"message": assistant(""), "origin": {"n": 1}}))).collect();
    store.ok("set-status", json!({"session_id": ids[0], "status": "working"}));
    for token in ["a", "b", "", "c"] {
        for (id, entry) in ids.iter().zip(&entries) {
            store.ok("extend-message", json!({"session_id": id, "entry_id": entry, "text": token, "origin": {"t": token}}));
        }
    }
    store.ok("set-meta", json!({"session_id": ids[0], "title": "T", "metadata": {"owner": "new"}}));
    store.ok("extend-message", json!({"session_id": ids[0], "entry_id": entries[0], "text": "d"}));
    store.ok("set-status", json!({"session_id": ids[0], "status": "error", "reason": "why"}));
    store.ok("append-many", json!({"session_id": ids[1], "messages": [user("1"), assistant("2"), user(&"3".repeat(50_000))]}));
    store.ok("set-active-leaf", json!({"session_id": ids[1], "entry_id": entries[1]}));
    store.append(&ids[1], json!({"custom": {"custom_type": "mark", "data": {"x": 1}}}));
    store.ok("update-message", json!({"session_id": ids[1], "entry_id": entries[1], "content": text("new")}));
    let fork = store.ok("fork", json!({"session_id": ids[2], "entry_id": entries[2], "title": "F"}))["session_id"].clone();
    store.ok("extend-message", json!({"session_id": ids[2], "entry_id": entries[2], "text": "after the fork"}));
    let copy = store.ok("tree", json!({"session_id": fork}))["entries"][0]["entry_id"].clone();
    store.ok("extend-message", json!({"session_id": fork, "entry_id": copy, "text": " of the fork"}));
    store.say(&fork, "own");
    store.ok("set-meta", json!({"session_id": ids[0], "metadata": {}}));
    [ids, vec![fork]].concat()
}

/// Filters that choose differently.
fn choices(sessions: &[Value]) -> Vec<Vec<EventFilter>> {
    let of = |event_type: &str, config: Value| filter(event_type, &config).unwrap();
    let mut choices = vec![everything()];
    for session in sessions {
        let config = json!({"session_id": session});
        choices.push(["session::message-added", "session::message-updated", "session::status-changed", "session::meta-updated"]
            .map(|event_type| of(event_type, config.clone())).to_vec());
    }
    for owner in ["old", "new"] {
        choices.push(EventType::ALL.map(|event_type| of(event_type.as_str(), json!({"metadata": {"owner": owner}}))).to_vec());
    }
    choices.push(vec![of("session::message-added", json!({"roles": ["user"]})), of("session::message-updated", json!({"roles": ["assistant"]}))]);
    choices
}

fn after(store: &Banyan, filters: &[EventFilter], position: Position) -> Vec<Heard> {
    Ears::of(store, Subscribe { filters: filters.to_vec(), start: Start::After(position) }).heard()
}

fn rest_of(live: &[Heard], position: Position) -> Vec<Heard> {
    live.iter().filter(|heard| heard.position > position).cloned().collect()
}

#[test]
fn resuming_from_every_position_gives_exactly_the_rest_before_and_after_a_restart() {
    let mut on_disk = OnDisk::new();
    let mut everything_live = Ears::open(&on_disk.store);
    // Subscribed before anything happens: sessions have their names already, the fork has not.
    let named: Vec<Value> = (0..3).map(|n| json!(format!("s{n}"))).collect();
    let mut live: Vec<(Vec<EventFilter>, Ears)> = choices(&named)
        .into_iter()
        .map(|filters| (filters.clone(), Ears::of(&on_disk.store, Subscribe { filters, start: Start::Now })))
        .collect();
    a_busy_run(&on_disk.store);
    let all = everything_live.heard();
    assert!(all.len() > 30);
    let live: Vec<(Vec<EventFilter>, Vec<Heard>)> = live.iter_mut().map(|(filters, ears)| (filters.clone(), ears.heard())).collect();
    drop(everything_live);
    for stop in ["none", "close", "kill"] {
        on_disk = match stop {
            "close" => on_disk.reopened(),
            "kill" => on_disk.killed(),
            _ => on_disk,
        };
        for (filters, live) in &live {
            let positions = [Position::BEGINNING].into_iter().chain(all.iter().map(|heard| heard.position));
            for position in positions {
                assert_eq!(after(&on_disk.store, filters, position), rest_of(live, position), "{stop}: {filters:?} after {position}");
            }
        }
    }
}

#[test]
fn a_subscriber_that_comes_back_hears_what_it_missed_and_then_what_happens() {
    let on_disk = OnDisk::new();
    let mut first = Ears::open(&on_disk.store);
    a_busy_run(&on_disk.store);
    let seen = first.heard();
    drop(first);
    let on_disk = on_disk.reopened();
    let store = &on_disk.store;
    let mut back = Ears::after(store, seen[4].position);
    let session = door(store).session();
    door(store).say(&session, "live");
    let heard = back.heard();
    assert_eq!(heard[..seen.len() - 5], seen[5..]);
    assert_eq!(types(&heard[seen.len() - 5..]), ["created", "message-added"]);
    assert!(heard.windows(2).all(|two| two[0].position < two[1].position), "positions are not given twice over a restart");
}

#[test]
fn a_session_far_back_is_replayed_from_its_own_records() {
    let options = Options { durability: Durability::Buffered, ..Options::default() };
    let store = Banyan::in_memory(options).unwrap();
    let mut live = Ears::open(&store);
    let sessions = a_busy_run(&store);
    let early = live.heard();
    let other = door(&store).session();
    let messages: Vec<Value> = (0..10).map(|n| user(&n.to_string())).collect();
    let entry = door(&store).append(&other, json!({"message": assistant("")}));
    drop(live);
    for _ in 0..10_050 {
        door(&store).ok("extend-message", json!({"session_id": other, "entry_id": entry, "text": ""}));
    }
    door(&store).ok("append-many", json!({"session_id": sessions[0], "messages": messages}));
    let late = Ears::after(&store, Position::new(store.head(), 0)).heard();
    for session in &sessions[..3] {
        let filters = EventType::ALL[1..].iter().map(|event_type| EventFilter {
            session_id: Some(SessionId::from(session.as_str().unwrap())),
            ..EventFilter::all(*event_type)
        });
        let filters: Vec<EventFilter> = filters.collect();
        let wanted = |heard: &&Heard| heard.payload["session_id"] == *session && heard.event_type != "session::created";
        let last_commit: Vec<&Heard> = late.iter().filter(wanted).collect();
        for position in early.iter().map(|heard| heard.position) {
            let told = after(&store, &filters, position);
            let rest = rest_of(&early, position);
            let expected: Vec<&Heard> = rest.iter().filter(wanted).collect();
            assert_eq!(told[..expected.len()].iter().collect::<Vec<_>>(), expected, "after {position}");
            let batch = if *session == sessions[0] { 10 } else { 0 };
            assert_eq!(told.len(), expected.len() + batch);
            assert!(told.ends_with(&last_commit.iter().map(|heard| (*heard).clone()).collect::<Vec<_>>()));
        }
    }
}

#[test]
fn positions_that_never_existed_are_refused() {
    let on_disk = OnDisk::new();
    let session = door(&on_disk.store).session();
    door(&on_disk.store).ok("append-many", json!({"session_id": session, "messages": [user("a"), user("b")]}));
    for on_disk in [on_disk].into_iter().flat_map(|on_disk| [on_disk.reopened()]) {
        let store = &on_disk.store;
        let head = store.head();
        for never in [(CommitNo(head.0 + 1), 0), (CommitNo(u64::MAX >> 16), 0), (CommitNo(0), 1), (head, 1000), (head, 2), (CommitNo(1), 1)] {
            let position = Position::new(never.0, never.1);
            let refused = store.subscribe(Subscribe { filters: everything(), start: Start::After(position) });
            let error = refused.err().unwrap_or_else(|| panic!("{position} should be refused"));
            assert_eq!(error.code.as_str(), "session/invalid_cursor");
        }
        for there in [(CommitNo(1), 0), (head, 0), (head, 1)] {
            Ears::after(store, Position::new(there.0, there.1));
        }
    }
    for text in ["", "1", "x", "000000000001", "000000000001-0", "000000000001-00000G", "00000000000A-000000"] {
        assert_eq!(text.parse::<Position>().unwrap_err().code.as_str(), "session/invalid_cursor", "{text:?}");
    }
}

#[test]
fn a_session_deleted_meanwhile_is_told_as_deleted() {
    let on_disk = OnDisk::new();
    let store = &on_disk.store;
    let id = json!("mine");
    let mut live = Ears::open(store);
    door(store).ok("ensure", json!({"session_id": id, "metadata": {"owner": "u"}}));
    door(store).say(&id, "first");
    let seen = live.heard();
    door(store).say(&id, "missed");
    door(store).ok("delete", json!({"session_id": id}));
    door(store).ok("ensure", json!({"session_id": id}));
    door(store).say(&id, "again");
    let missed = live.heard();
    drop(live);
    let on_disk = on_disk.reopened();
    let owned = vec![filter("session::deleted", &json!({"session_id": "mine", "metadata": {"owner": "u"}})).unwrap()];
    for filters in [everything(), everything().into_iter().map(|filter| EventFilter { session_id: Some("mine".into()), ..filter }).collect(), owned] {
        for position in [Position::BEGINNING, seen[0].position, seen[1].position, missed[0].position] {
            let told = after(&on_disk.store, &filters, position);
            assert_eq!(told.iter().filter(|heard| heard.event_type == "session::deleted").count(), 1, "{filters:?} after {position}");
            assert!(told.iter().all(|heard| seen.contains(heard) || missed.contains(heard)));
            if filters.len() > 1 {
                assert!(told.ends_with(&missed[1..]), "{told:?}");
            }
        }
    }
}

#[test]
fn a_snapshot_is_followed_by_what_happens_with_no_gap_and_nothing_twice() {
    for on_disk in [false, true] {
        let directory = on_disk.then(OnDisk::new);
        let store = directory.as_ref().map_or_else(|| Banyan::in_memory(Options::default()).unwrap(), |it| it.store.clone());
        let session = door(&store).session();
        let streamed = door(&store).append(&session, json!({"message": assistant("")}));
        const EACH: usize = 60;
        thread::scope(|scope| {
            let writers: Vec<_> = (0..3).map(|writer| {
                let (store, session, streamed) = (&store, &session, &streamed);
                scope.spawn(move || for n in 0..EACH {
                    match writer {
                        0 => { door(store).ok("extend-message", json!({"session_id": session, "entry_id": streamed, "text": "x"})); }
                        _ => { door(store).say(session, &format!("{writer}/{n}")); }
                    }
                })
            }).collect();
            let listeners: Vec<_> = (0..4).map(|_| scope.spawn(|| follow(&store, &session, &streamed, EACH))).collect();
            for thread in writers.into_iter().chain(listeners) {
                thread.join().unwrap();
            }
        });
        follow(&store, &session, &streamed, EACH);
    }
}

/// Follows a session from a snapshot on, until everything has been seen, each thing once.
fn follow(store: &Banyan, session: &Value, streamed: &Value, each: usize) {
    let filters: Vec<EventFilter> = everything().into_iter().filter(|filter| filter.event_type != EventType::Created).collect();
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
            "session::created" => assert_eq!((ended, heard.payload["session_id"].clone()), (None, session.clone())),
            "session::message-added" => {
                assert!(!entries.contains(&heard.payload["entry_id"]), "an entry came twice");
                entries.push(heard.payload["entry_id"].clone());
            }
            "session::message-updated" => {
                assert_eq!(heard.payload["entry_id"], *streamed);
                let next = heard.payload["revision"].as_u64().unwrap();
                assert!(if ended.is_none() { revision == 0 } else { next == revision + 1 }, "{next} after {revision}");
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
    let mut others: Vec<Ears> = (0..1000).map(|n| Ears::of(&store, Subscribe { filters: other(n), start: Start::Now })).collect();
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
        let texts: Vec<String> = waiting.join().unwrap().iter().map(|heard| said_in(&heard.payload["message"])).collect();
        assert_eq!(texts, ["a", "b", "c"]);
    });
}
