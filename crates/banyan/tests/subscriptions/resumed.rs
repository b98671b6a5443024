//! Coming back by position.

use banyan::model::{CommitNo, EventFilter, EventType, Position, SessionId};
use banyan::{Banyan, Start, Subscribe};
use serde_json::{Value, json};

use crate::support::*;

/// Something of everything, with no session deleted. Returns the sessions.
fn a_busy_run(store: &dyn Door) -> Vec<Value> {
    let request = |n: usize| json!({"session_id": format!("s{n}"), "metadata": {"owner": "old"}});
    let ids: Vec<Value> = (0..3).map(|n| store.ok("ensure", request(n))["session_id"].clone()).collect();
    let entries: Vec<Value> =
        ids.iter().map(|id| store.append(id, json!({"message": assistant(""), "origin": {"n": 1}}))).collect();
    store.ok("set-status", json!({"session_id": ids[0], "status": "working"}));
    for token in ["a", "b", "", "c"] {
        for (id, entry) in ids.iter().zip(&entries) {
            store.ok(
                "extend-message",
                json!({"session_id": id, "entry_id": entry, "text": token, "origin": {"t": token}}),
            );
        }
    }
    store.ok("set-meta", json!({"session_id": ids[0], "title": "T", "metadata": {"owner": "new"}}));
    store.ok("extend-message", json!({"session_id": ids[0], "entry_id": entries[0], "text": "d"}));
    store.ok("set-status", json!({"session_id": ids[0], "status": "error", "reason": "why"}));
    store.ok(
        "append-many",
        json!({"session_id": ids[1], "messages": [user("1"), assistant("2"), user(&"3".repeat(50_000))]}),
    );
    store.ok("set-active-leaf", json!({"session_id": ids[1], "entry_id": entries[1]}));
    store.append(&ids[1], json!({"custom": {"custom_type": "mark", "data": {"x": 1}}}));
    store.ok("update-message", json!({"session_id": ids[1], "entry_id": entries[1], "content": text("new")}));
    let fork = store.ok("fork", json!({"session_id": ids[2], "entry_id": entries[2], "title": "F"}))["session_id"]
        .clone();
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
        choices.push(
            [
                "session::message-added",
                "session::message-updated",
                "session::status-changed",
                "session::meta-updated",
            ]
            .map(|event_type| of(event_type, config.clone()))
            .to_vec(),
        );
    }
    for owner in ["old", "new"] {
        choices.push(
            EventType::ALL
                .map(|event_type| of(event_type.as_str(), json!({"metadata": {"owner": owner}})))
                .to_vec(),
        );
    }
    choices.push(vec![
        of("session::message-added", json!({"roles": ["user"]})),
        of("session::message-updated", json!({"roles": ["assistant"]})),
    ]);
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
    let live: Vec<(Vec<EventFilter>, Vec<Heard>)> =
        live.iter_mut().map(|(filters, ears)| (filters.clone(), ears.heard())).collect();
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
                assert_eq!(
                    after(&on_disk.store, filters, position),
                    rest_of(live, position),
                    "{stop}: {filters:?} after {position}"
                );
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
    assert!(
        heard.windows(2).all(|two| two[0].position < two[1].position),
        "positions are not given twice over a restart"
    );
}

#[test]
fn a_sessions_own_stream_is_told_from_its_records_when_the_order_over_all_is_gone() {
    let on_disk = OnDisk::new();
    let mut live = Ears::open(&on_disk.store);
    let sessions = a_busy_run(&on_disk.store);
    let early = live.heard();
    drop(live);
    let dir = on_disk.close();
    std::fs::remove_dir_all(dir.path().join(".banyan/journal")).unwrap();
    let on_disk = OnDisk::with(dir);
    let mut live = Ears::open(&on_disk.store);
    let messages: Vec<Value> = (0..10).map(|n| user(&n.to_string())).collect();
    for session in &sessions {
        door(&on_disk.store).ok("append-many", json!({"session_id": session, "messages": messages}));
    }
    let all = [early, live.heard()].concat();
    for session in &sessions {
        let id = Some(SessionId::from(session.as_str().unwrap()));
        let filters = everything().into_iter().map(|filter| EventFilter { session_id: id.clone(), ..filter });
        let filters: Vec<EventFilter> = filters.collect();
        let own: Vec<Heard> =
            all.iter().filter(|heard| heard.payload["session_id"] == *session).cloned().collect();
        for position in [Position::BEGINNING].into_iter().chain(all.iter().map(|heard| heard.position)) {
            assert_eq!(
                after(&on_disk.store, &filters, position),
                rest_of(&own, position),
                "{session} after {position}"
            );
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
        for never in [
            (CommitNo(head.0 + 1), 0),
            (CommitNo(u64::MAX >> 16), 0),
            (CommitNo(0), 1),
            (head, 1000),
            (head, 2),
            (CommitNo(1), 1),
        ] {
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
    let owned =
        vec![filter("session::deleted", &json!({"session_id": "mine", "metadata": {"owner": "u"}})).unwrap()];
    for filters in [
        everything(),
        everything().into_iter().map(|filter| EventFilter { session_id: Some("mine".into()), ..filter }).collect(),
        owned,
    ] {
        for position in [Position::BEGINNING, seen[0].position, seen[1].position, missed[0].position] {
            let told = after(&on_disk.store, &filters, position);
            assert_eq!(
                told.iter().filter(|heard| heard.event_type == "session::deleted").count(),
                1,
                "{filters:?} after {position}"
            );
            assert!(told.iter().all(|heard| seen.contains(heard) || missed.contains(heard)));
            if filters.len() > 1 {
                assert!(told.ends_with(&missed[1..]), "{told:?}");
            }
        }
    }
}

#[test]
fn a_long_past_is_told_whole_though_it_is_told_some_at_a_time() {
    let on_disk = OnDisk::new();
    let mut live = Ears::open(&on_disk.store);
    let mut all = Vec::new();
    {
        let store = door(&on_disk.store);
        let (one, other) = (store.session(), store.session());
        let grows = store.append(&one, json!({"message": assistant("")}));
        for n in 0..150 {
            let text = format!("{n} {}", "x".repeat(n * 20));
            store.ok("extend-message", json!({"session_id": one, "entry_id": grows, "text": text}));
            if n % 40 == 39 {
                store.say(&other, &"a larger thing ".repeat(30_000));
            }
            all.extend(live.heard());
        }
        for n in 0..300 {
            store.say(&one, &n.to_string());
            all.extend(live.heard());
        }
    }
    drop(live);
    let one = all[0].payload["session_id"].clone();
    let id = Some(SessionId::from(one.as_str().unwrap()));
    let own_filters: Vec<EventFilter> =
        everything().into_iter().map(|filter| EventFilter { session_id: id.clone(), ..filter }).collect();
    let own: Vec<Heard> = all.iter().filter(|heard| heard.payload["session_id"] == one).cloned().collect();
    let positions: Vec<Position> = all.iter().step_by(29).map(|heard| heard.position).collect();
    for position in &positions {
        assert_eq!(after(&on_disk.store, &everything(), *position), rest_of(&all, *position), "after {position}");
    }
    let dir = on_disk.close();
    std::fs::remove_dir_all(dir.path().join(".banyan/journal")).unwrap();
    let on_disk = OnDisk::with(dir);
    for position in [Position::BEGINNING].into_iter().chain(positions) {
        assert_eq!(after(&on_disk.store, &own_filters, position), rest_of(&own, position), "own after {position}");
    }
}
