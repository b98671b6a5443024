//! An id that goes from one tenant to another and back, while both use it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use banyan::model::{EventFilter, Position};
use banyan::{Banyan, Delivery, Options, Start, Subscribe};
use serde_json::{Value, json};

use super::tenants::{Tenants, all_of};
use crate::support::*;

const ROUNDS: usize = 150;

/// What each tenant says is equally long, so that the files of both have their lines in the same places.
const MINE: &str = "said by a";
const THEIRS: &str = "said by b";

/// Fails when something of theirs is in what I was told.
fn must_not_be_theirs(told: &impl ToString) {
    let told = told.to_string();
    assert!(!told.contains(THEIRS) && !told.contains(r#""tenant":"b""#), "{told}");
}

/// Begins the session for a tenant and says something, until the other tenant's is out of the way.
fn take(store: &Banyan, id: &Value, said: &str) {
    door(store).ok("ensure", json!({"session_id": id}));
    for n in 0..4 {
        door(store).append(id, json!({"message": user(said), "entry_id": format!("entry {n}")}));
    }
}

/// Works until it is over, and counts how often something was answered.
fn until_over(over: &AtomicBool, answered: &AtomicUsize, mut work: impl FnMut() -> bool) {
    while !over.load(Ordering::Acquire) {
        answered.fetch_add(usize::from(work()), Ordering::Relaxed);
    }
}

fn writes(store: &Banyan, id: &Value, n: usize) -> bool {
    let store = door(store);
    let (function, request) = match n % 5 {
        0 => ("append", json!({"message": user(MINE)})),
        1 => ("set-meta", json!({"title": MINE, "metadata": {"x": MINE}})),
        2 => ("extend-message", json!({"entry_id": "entry 1", "text": MINE})),
        3 => ("put-attachment", json!({"name": MINE, "mime": "m", "data": base64(MINE.as_bytes())})),
        _ => ("update-message", json!({"entry_id": "entry 2", "content": text(MINE)})),
    };
    let mut request = request;
    request["session_id"] = id.clone();
    match store.call(function, request) {
        Ok(answer) => {
            must_not_be_theirs(&answer);
            true
        }
        Err(refusal) => {
            assert!(
                ["session/not_found", "session/entry_not_found"].contains(&refusal.code.as_str()),
                "{refusal:?}"
            );
            false
        }
    }
}

fn reads(store: &Banyan, id: &Value) -> bool {
    let about = |rest: Value| {
        let mut request = rest;
        request["session_id"] = id.clone();
        request
    };
    let mut seen = false;
    for (function, request) in [
        ("messages", json!({"include_custom": true})),
        ("messages-tail", json!({})),
        ("get-message", json!({"entry_id": "entry 0"})),
        ("get", json!({})),
        ("list-attachments", json!({})),
    ] {
        if let Ok(answer) = door(store).call(function, about(request)) {
            must_not_be_theirs(&answer);
            seen |= !answer.is_null();
        }
    }
    must_not_be_theirs(&door(store).ok("list", json!({})));
    seen
}

fn listens(store: &Banyan, id: &Value) -> bool {
    let session: banyan::model::SessionId = id.as_str().unwrap().into();
    let filters: Vec<EventFilter> = everything()
        .into_iter()
        .map(|filter| EventFilter { session_id: Some(session.clone()), ..filter })
        .collect();
    let mut heard = false;
    for start in [Start::After(Position::BEGINNING), Start::Snapshot(session)] {
        let Ok(subscription) = store.subscribe(Subscribe { filters: filters.clone(), start }) else { continue };
        for delivery in Ears(subscription).deliveries() {
            if let Delivery::Event(event) = &delivery {
                must_not_be_theirs(&json!(event.payload));
                heard = true;
            }
            if let Delivery::Snapshot(event) = &delivery {
                must_not_be_theirs(&json!(event.payload));
            }
        }
    }
    heard
}

/// One round: the session is mine, is deleted, is theirs, is deleted.
fn hand_over(tenants: &Tenants, id: &Value) {
    take(&tenants.mine, id, MINE);
    door(&tenants.all).ok("delete", json!({"session_id": id}));
    take(&tenants.theirs, id, THEIRS);
    let kept = all_of(&tenants.all, id);
    assert!(!kept.to_string().contains(MINE), "mine came into theirs: {kept}");
    assert_eq!(kept["path"], json!(vec![THEIRS; 4]));
    assert_eq!((&kept["meta"]["title"], &kept["files"]), (&json!(""), &json!([])));
    door(&tenants.all).ok("delete", json!({"session_id": id}));
}

fn an_id_changes_hands(store: Banyan, rounds: usize) {
    let tenants = Tenants::on(store, &json!({"tenant": "a"}), &json!({"tenant": "b"}));
    let id = json!("shared");
    let (over, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    let met: [AtomicUsize; 5] = Default::default();
    let mut live = Ears::open(&tenants.mine);
    thread::scope(|scope| {
        let write = |at: usize| {
            until_over(&over, &met[at], || writes(&tenants.mine, &id, calls.fetch_add(1, Ordering::Relaxed)))
        };
        let workers = [
            scope.spawn(move || write(0)),
            scope.spawn(move || write(1)),
            scope.spawn(|| until_over(&over, &met[2], || reads(&tenants.mine, &id))),
            scope.spawn(|| until_over(&over, &met[3], || listens(&tenants.mine, &id))),
            scope.spawn(|| {
                until_over(&over, &met[4], || match live.0.try_next().unwrap() {
                    Some(Delivery::Event(event)) => {
                        must_not_be_theirs(&json!(event.payload));
                        true
                    }
                    Some(Delivery::Lagged) | None => {
                        thread::yield_now();
                        false
                    }
                    Some(other) => panic!("{other:?}"),
                })
            }),
        ];
        let everybody_met_it = || met.iter().all(|met| met.load(Ordering::Relaxed) > 0);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            // A worker that failed meets nothing any more; then it is what it said that matters.
            let failed = || workers.iter().any(|worker| worker.is_finished());
            let mut round = 0;
            while !failed() && (round < rounds || !everybody_met_it()) {
                hand_over(&tenants, &id);
                round += 1;
            }
        }));
        over.store(true, Ordering::Release);
        for worker in workers {
            worker.join().unwrap();
        }
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}

#[test]
fn nothing_of_one_tenant_comes_to_the_other_when_an_id_changes_hands_in_memory() {
    an_id_changes_hands(Banyan::in_memory(Options::default()).unwrap(), ROUNDS);
}

#[test]
fn nothing_of_one_tenant_comes_to_the_other_when_an_id_changes_hands_in_a_directory() {
    let on_disk = OnDisk::new();
    an_id_changes_hands(on_disk.store.clone(), ROUNDS / 3);
}
