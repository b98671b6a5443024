//! Many callers at once: every session's calls happen one after another, in an order that everybody agrees on.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::*;
use banyan::model::{CreateRequest, Position};
use banyan::{Banyan, Options, block_on};
use serde_json::{Value, json};

const WRITERS: usize = 6;
const EACH: usize = 40;

/// Runs something in several threads at once and gives what each returned.
fn at_once<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|n| {
                let work = &work;
                scope.spawn(move || work(n))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// On each kind of store.
fn on_every_store(test: impl Fn(&Banyan)) {
    test(&Banyan::in_memory(Options::default()).unwrap());
    test(&OnDisk::new().store);
}

#[test]
fn concurrent_appends_form_one_chain_that_holds_each_acknowledged_entry_once() {
    on_every_store(|store| {
        let sessions: Vec<Value> = (0..3).map(|_| door(store).session()).collect();
        let mut live = Ears::open(store);
        let answers: Vec<Vec<(Value, Value)>> = at_once(WRITERS, |writer| {
            let one = |n: usize| {
                let session = sessions[(writer + n) % 3].clone();
                let request = json!({"session_id": session, "message": user(&format!("{writer}/{n}"))});
                (session, door(store).ok("append", request))
            };
            (0..EACH).map(one).collect()
        });
        let told = live.heard();
        for session in &sessions {
            check_chain(store, session, &answers, &told);
        }
        assert_eq!(told.len(), WRITERS * EACH);
        assert!(told.windows(2).all(|two| two[0].position < two[1].position));
        let replayed = Ears::after(store, Position::BEGINNING).heard();
        assert_eq!(replayed[3..], told);
    });
}

fn check_chain(store: &Banyan, session: &Value, answers: &[Vec<(Value, Value)>], told: &[Heard]) {
    let mine = |answers: &Vec<(Value, Value)>| -> Vec<Value> {
        answers.iter().filter(|(id, _)| id == session).map(|(_, answer)| answer.clone()).collect()
    };
    let by_writer: Vec<Vec<Value>> = answers.iter().map(mine).collect();
    let next: HashMap<String, Value> =
        by_writer.iter().flatten().map(|it| (it["parent_id"].to_string(), it["entry_id"].clone())).collect();
    let mut chain = Vec::new();
    let mut at = Value::Null;
    while let Some(following) = next.get(&at.to_string()) {
        at = following.clone();
        chain.push(at.clone());
    }
    assert_eq!(chain.len(), by_writer.iter().map(Vec::len).sum::<usize>(), "no two entries follow the same one");
    let page = door(store).ok("messages", json!({"session_id": session, "limit": 500}));
    assert_eq!(ids(&page["messages"]), chain, "the path is that chain");
    assert_eq!(door(store).meta(session)["message_count"], chain.len());
    for writer in by_writer {
        let places: Vec<usize> =
            writer.iter().map(|it| chain.iter().position(|id| *id == it["entry_id"]).unwrap()).collect();
        assert!(places.is_sorted(), "what one writer did first comes first");
    }
    let told: Vec<Value> = told
        .iter()
        .filter(|heard| heard.payload["session_id"] == *session)
        .map(|heard| heard.payload["entry_id"].clone())
        .collect();
    assert_eq!(told, chain, "events come in the order of commits");
}

#[test]
fn a_reader_sees_a_beginning_of_the_path_with_everything_acknowledged_before_it_asked() {
    on_every_store(|store| {
        let session = door(store).session();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut pages: Vec<(usize, Vec<String>)> = Vec::new();
                while !done.load(Ordering::Acquire) {
                    let acknowledged =
                        usize::try_from(door(store).meta(&session)["message_count"].as_u64().unwrap()).unwrap();
                    pages.push((acknowledged, door(store).path(&session)));
                }
                pages
            });
            for n in 0..200 {
                door(store).say(&session, &n.to_string());
            }
            done.store(true, Ordering::Release);
            let whole = door(store).path(&session);
            for (acknowledged, page) in reader.join().unwrap() {
                assert_eq!(page, whole[..page.len()]);
                assert!(page.len() >= acknowledged);
            }
        });
    });
}

#[test]
fn a_streamed_message_never_goes_back_for_a_reader() {
    on_every_store(|store| {
        let session = door(store).session();
        let entry = door(store).append(&session, json!({"message": assistant("")}));
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut last = 0;
                        while !done.load(Ordering::Acquire) {
                            let entry = door(store).entry(&session, &entry);
                            let revision = usize::try_from(entry["revision"].as_u64().unwrap()).unwrap();
                            assert_eq!(said_in(&entry["message"]), "x".repeat(revision));
                            assert!(revision >= last);
                            last = revision;
                        }
                    })
                })
                .collect();
            for n in 0..300 {
                if n % 50 == 49 {
                    door(store).ok("set-meta", json!({"session_id": session, "title": n.to_string()}));
                }
                door(store).ok("extend-message", json!({"session_id": session, "entry_id": entry, "text": "x"}));
            }
            done.store(true, Ordering::Release);
            for reader in readers {
                reader.join().unwrap();
            }
        });
    });
}

#[test]
fn of_many_who_expect_the_same_revision_one_wins() {
    on_every_store(|store| {
        let session = door(store).session();
        let entry = door(store).say(&session, "0");
        for revision in 0..10 {
            let request = json!({"session_id": session, "entry_id": entry, "content": text("new"), "expected_revision": revision});
            let answers = at_once(WRITERS, |_| door(store).ok("update-message", request.clone()));
            assert_eq!(answers.iter().filter(|answer| answer["updated"] == json!(true)).count(), 1);
            assert!(answers.iter().all(|answer| answer["revision"] == json!(revision + 1)));
        }
    });
}

#[test]
fn of_many_who_expect_the_same_leaf_one_wins() {
    on_every_store(|store| {
        let session = door(store).session();
        let mut leaf = door(store).say(&session, "root");
        for _ in 0..10 {
            let request = json!({"session_id": session, "message": user("x"), "expected_leaf": leaf});
            let answers = at_once(WRITERS, |_| door(store).call("append", request.clone()));
            let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
            assert_eq!(won.len(), 1);
            assert!(lost.into_iter().all(|lost| lost.unwrap_err().code == "session/conflict"));
            leaf = won[0].as_ref().unwrap()["entry_id"].clone();
        }
        assert_eq!(door(store).path(&session).len(), 11);
    });
}

#[test]
fn an_entry_that_many_deliver_at_once_is_appended_once() {
    on_every_store(|store| {
        let session = door(store).session();
        for n in 0..10 {
            let request = json!({"session_id": session, "message": user("x"), "entry_id": format!("e{n}")});
            let answers = at_once(WRITERS, |_| door(store).ok("append", request.clone()).to_string());
            assert_eq!(answers.into_iter().collect::<HashSet<_>>().len(), 1, "all get the same answer");
        }
        assert_eq!(door(store).meta(&session)["message_count"], 10);
    });
}

#[test]
fn a_session_that_many_ensure_at_once_is_created_once() {
    on_every_store(|store| {
        let mut events = Ears::open(store);
        for n in 0..10 {
            let answers = at_once(WRITERS, |_| door(store).ok("ensure", json!({"session_id": format!("s{n}")})));
            assert_eq!(answers.iter().filter(|answer| answer["created"] == json!(true)).count(), 1);
        }
        assert_eq!(events.heard().len(), 10);
    });
}

#[test]
fn forks_taken_while_a_message_streams_each_keep_one_moment_of_it() {
    on_every_store(|store| {
        let session = door(store).session();
        let entry = door(store).append(&session, json!({"message": assistant("")}));
        let forks: Vec<Vec<Value>> = at_once(3, |worker| {
            (0..25)
                .filter_map(|_| {
                    if worker == 0 {
                        door(store)
                            .ok("extend-message", json!({"session_id": session, "entry_id": entry, "text": "x"}));
                        return None;
                    }
                    Some(
                        door(store).ok("fork", json!({"session_id": session, "entry_id": entry}))["session_id"]
                            .clone(),
                    )
                })
                .collect()
        });
        let texts = |store: &Banyan| -> Vec<Vec<String>> {
            forks.iter().flatten().map(|fork| door(store).path(fork)).collect()
        };
        let before = texts(store);
        assert!(
            before
                .iter()
                .all(|path| path.len() == 1 && path[0].len() <= 25 && path[0].bytes().all(|byte| byte == b'x'))
        );
        door(store).ok("delete", json!({"session_id": session}));
        assert_eq!(texts(store), before);
    });
}

#[test]
fn sessions_made_changed_and_deleted_at_once_leave_nothing_behind() {
    on_every_store(|store| {
        at_once(WRITERS, |writer| {
            for n in 0..20 {
                let id = json!(format!("s{}", (writer + n) % 4));
                door(store).ok("ensure", json!({"session_id": id}));
                let appended = door(store).call("append", json!({"session_id": id, "message": user("x")}));
                if let Ok(appended) = &appended {
                    let _ = door(store).call("fork", json!({"session_id": id, "entry_id": appended["entry_id"]}));
                }
                door(store).ok("delete", json!({"session_id": id}));
            }
        });
        let listed = door(store).ok("list", json!({"limit": 500}));
        for meta in listed["sessions"].as_array().unwrap() {
            assert!(meta.get("forked_from").is_some(), "only forks are left");
            let path = door(store).path(&meta["session_id"]);
            assert_eq!(meta["message_count"], path.len());
            assert!(path.iter().all(|text| text == "x"));
        }
    });
}

#[test]
fn what_many_wrote_at_once_is_there_after_a_kill() {
    let on_disk = OnDisk::new();
    let sessions: Vec<Value> = (0..3).map(|_| door(&on_disk.store).session()).collect();
    at_once(WRITERS, |writer| {
        for n in 0..EACH {
            door(&on_disk.store).say(&sessions[n % 3], &format!("{writer}/{n}"));
        }
    });
    let paths = |store: &Banyan| -> Vec<Vec<String>> {
        sessions.iter().map(|session| door(store).path(session)).collect()
    };
    let before = paths(&on_disk.store);
    let told = Ears::after(&on_disk.store, Position::BEGINNING).heard();
    let after = on_disk.killed();
    assert_eq!(paths(&after.store), before);
    assert_eq!(Ears::after(&after.store, Position::BEGINNING).heard(), told);
}

#[test]
fn calls_are_waited_for_on_a_thread_of_a_runtime_too_however_many_there_were() {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for _ in 0..1000 {
            block_on(store.create(CreateRequest::default())).unwrap();
        }
    });
}
