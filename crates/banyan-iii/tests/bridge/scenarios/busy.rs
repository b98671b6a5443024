//! Several instances change one session at the same time, and nobody loses anything.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use banyan::{Banyan, Options};
use banyan_iii::bridge::{Main, MainFailed};
use futures_util::future::BoxFuture;
use serde_json::json;
use serde_json::value::RawValue;

use crate::doors::{OverBanyan, bridge, call};
use crate::faulty::{Fault, Faulty};
use crate::mains::BanyanMain;
use crate::support::*;

const EACH: usize = 40;

#[test]
fn two_bridges_and_the_main_lose_nothing_of_each_other() {
    let on_disk = OnDisk::new();
    let main = &on_disk.store;
    let session = door(main).session();
    let grown = door(main).append(&session, json!({"message": assistant("")}));
    let mut ears = Ears::open(main);
    let statuses = ["working", "done", "idle"];
    thread::scope(|scope| {
        for writer in 0..3 {
            let (session, grown) = (session.clone(), grown.clone());
            scope.spawn(move || {
                let bridge = OverBanyan::to(main.clone());
                let store: &dyn Door = if writer == 0 { main } else { &bridge };
                for number in 0..EACH {
                    store.say(&session, &format!("{writer}-{number}"));
                    store.ok(
                        "extend-message",
                        json!({"session_id": session, "entry_id": grown, "text": format!("{writer}.{number} ")}),
                    );
                    let status = statuses[(writer + number) % 3];
                    store.ok("set-status", json!({"session_id": session, "status": status}));
                    store.ok("set-meta", json!({"session_id": session, "title": format!("{writer}-{number}")}));
                }
            });
        }
    });
    let check = |main: &Banyan| {
        let store = door(main);
        assert_eq!(store.meta(&session)["message_count"], 3 * EACH + 1);
        let path = store.path(&session);
        assert_eq!(path.len(), 3 * EACH + 1, "each append follows the one before");
        for writer in 0..3 {
            let said = path.iter().filter(|text| text.starts_with(&format!("{writer}-")));
            let expected: Vec<String> = (0..EACH).map(|number| format!("{writer}-{number}")).collect();
            assert_eq!(said.cloned().collect::<Vec<_>>(), expected);
        }
        let entry = store.entry(&session, &grown);
        assert_eq!(entry["revision"], 3 * EACH);
        let mut added: Vec<&str> = path[0].split_whitespace().collect();
        added.sort_unstable();
        let mut expected: Vec<String> =
            (0..3).flat_map(|writer| (0..EACH).map(move |number| format!("{writer}.{number}"))).collect();
        expected.sort_unstable();
        assert_eq!(added, expected);
    };
    check(main);
    let heard = ears.heard();
    let count = |kind: &str| types(&heard).into_iter().filter(|heard| *heard == kind).count();
    assert_eq!(count("message-added"), 3 * EACH);
    assert_eq!(count("message-updated"), 3 * EACH);
    assert_eq!(count("meta-updated"), 3 * EACH);
    let changes = heard.iter().filter(|heard| heard.event_type == "session::status-changed");
    let changes: Vec<_> = changes.map(|heard| &heard.payload).collect();
    for two in changes.windows(2) {
        assert_eq!(two[0]["status"], two[1]["previous_status"], "no status is skipped");
    }
    drop(ears);
    check(&on_disk.killed().store);
}

#[test]
fn who_comes_in_between_is_seen_and_the_call_is_decided_again() {
    let main = Banyan::in_memory(Options::default()).unwrap();
    let way = Arc::new(Faulty::new(BanyanMain(main.clone())));
    let bridge = bridge(Arc::clone(&way) as Arc<dyn Main>);
    let session = door(&main).session();
    let other = |main: Banyan, session: serde_json::Value| move || drop(door(&main).say(&session, "other"));
    for _ in 0..3 {
        way.fail("commit", Fault::First(Arc::new(other(main.clone(), session.clone()))));
    }
    let request = json!({"session_id": session, "message": user("mine")}).to_string();
    call(&bridge, "session::append", &request).unwrap();
    assert_eq!(door(&main).path(&session), ["other", "other", "other", "mine"]);
    // A leaf that was expected is not there any more, and the caller is told.
    let leaf = door(&main).ok("tree", json!({"session_id": session}))["active_leaf"].clone();
    way.fail("commit", Fault::First(Arc::new(other(main.clone(), session.clone()))));
    let request = json!({"session_id": session, "message": user("mine"), "expected_leaf": leaf}).to_string();
    assert_eq!(call(&bridge, "session::append", &request).unwrap_err().code, "session/conflict");
}

#[test]
fn a_session_that_never_holds_still_is_changed_by_the_main_in_the_end() {
    let main = Banyan::in_memory(Options::default()).unwrap();
    let way = Arc::new(Faulty::new(BanyanMain(main.clone())));
    let bridge = bridge(Arc::clone(&way) as Arc<dyn Main>);
    let session = door(&main).session();
    let times = Arc::new(AtomicUsize::new(0));
    for _ in 0..1000 {
        let (main, session, times) = (main.clone(), session.clone(), Arc::clone(&times));
        way.fail(
            "commit",
            Fault::First(Arc::new(move || {
                times.fetch_add(1, Ordering::Relaxed);
                door(&main).say(&session, "other");
            })),
        );
    }
    let request = json!({"session_id": session, "message": user("mine")}).to_string();
    call(&bridge, "session::append", &request).unwrap();
    let times = times.load(Ordering::Relaxed);
    assert!((1..1000).contains(&times), "{times}");
    let mut expected = vec!["other"; times];
    expected.push("mine");
    assert_eq!(door(&main).path(&session), expected);
}

#[test]
fn calls_of_one_bridge_on_one_session_do_not_fight() {
    let on = OverBanyan::new();
    let store: &dyn Door = &on;
    let session = store.session();
    thread::scope(|scope| {
        for writer in 0..4 {
            let (on, session) = (&on, session.clone());
            scope.spawn(move || {
                for number in 0..EACH {
                    (on as &dyn Door).say(&session, &format!("{writer}-{number}"));
                }
            });
        }
    });
    assert_eq!(store.meta(&session)["message_count"], 4 * EACH);
    assert_eq!(store.path(&session).len(), 4 * EACH);
}

#[test]
fn who_streams_alone_looks_once_and_sends_each_token_once() {
    let main = Banyan::in_memory(Options::default()).unwrap();
    let way = Arc::new(Counting { main: BanyanMain(main.clone()), calls: Mutex::default() });
    let bridge = bridge(Arc::clone(&way) as Arc<dyn Main>);
    let session = door(&main).session();
    let entry = door(&main).append(&session, json!({"message": assistant(&"long ".repeat(10_000))}));
    let extend = |text: &str| {
        let request = json!({"session_id": session, "entry_id": entry, "text": text}).to_string();
        call(&bridge, "session::extend-message", &request).unwrap()["revision"].clone()
    };
    assert_eq!(extend("one"), 1);
    way.calls.lock().unwrap().clear();
    assert_eq!([extend("two"), extend("three")], [2, 3]);
    let calls = std::mem::take(&mut *way.calls.lock().unwrap());
    assert!(
        calls.iter().all(|(function, bytes)| function == "session::store::commit" && *bytes < 1000),
        "{calls:?}"
    );
    assert_eq!(calls.len(), 2);
    // Somebody else adds something, which is seen before the next token.
    door(&main).ok("extend-message", json!({"session_id": session, "entry_id": entry, "text": "four"}));
    assert_eq!(extend("five"), 5);
    assert!(door(&main).path(&session)[0].ends_with("onetwothreefourfive"));
    // What changes nothing is answered from what is so now, not from what was.
    door(&main).ok("set-status", json!({"session_id": session, "status": "working"}));
    let request = json!({"session_id": session, "status": "idle"}).to_string();
    let answer = call(&bridge, "session::set-status", &request).unwrap();
    assert_eq!(answer, json!({"status": "idle", "previous_status": "working"}));
    door(&main).ok("delete", json!({"session_id": session}));
    assert_eq!(call(&bridge, "session::set-status", &request).unwrap_err().code, "session/not_found");
}

/// Notes which functions are called, and how much is sent.
struct Counting {
    main: BanyanMain,
    calls: Mutex<Vec<(String, usize)>>,
}

impl Main for Counting {
    fn call<'a>(
        &'a self,
        function_id: &'a str,
        body: String,
        within: Option<Duration>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, MainFailed>> {
        self.calls.lock().unwrap().push((function_id.to_owned(), body.len()));
        self.main.call(function_id, body, within)
    }
}
