//! A main that cannot be reached, is too slow or talks nonsense: told as such, and nothing half done.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use banyan::{Banyan, CallError, Options};
use banyan_iii::bridge::{Bridge, Main, MainFailed};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::doors::{bridge, call};
use crate::faulty::{Fault, Faulty};
use crate::mains::{BanyanMain, ReferenceMain};
use crate::support::*;

struct Setup {
    main: Banyan,
    way: Arc<Faulty<BanyanMain>>,
    bridge: Bridge,
    session: Value,
}

fn setup() -> Setup {
    let main = Banyan::in_memory(Options::default()).unwrap();
    let way = Arc::new(Faulty::new(BanyanMain(main.clone())));
    let bridge = bridge(Arc::clone(&way) as Arc<dyn Main>);
    let session = call(&bridge, "session::create", "{}").unwrap()["session_id"].clone();
    Setup { main, way, bridge, session }
}

impl Setup {
    fn append(&self, id: &str) -> Result<Value, Refusal> {
        let request = json!({"session_id": self.session, "entry_id": id, "message": user(id)});
        call(&self.bridge, "session::append", &request.to_string())
    }
}

#[test]
fn a_failed_call_is_a_storage_error_that_names_the_function() {
    let on = setup();
    for (function, fault, says) in [
        ("look", Fault::Unreachable, "session::store::look: the main instance cannot be reached"),
        ("look", Fault::LostCall, "session::store::look: the main instance was lost before it answered"),
        ("look", Fault::Late, "session::store::look: the main instance did not answer within 5000 ms"),
        ("look", Fault::Answer("[]"), "session::store::look: the main instance answered nonsense"),
        ("look", Fault::Answer("null"), "session::store::look: the main instance answered nonsense"),
        ("look", Fault::Refused, "session::store::look: the main instance refused"),
        ("commit", Fault::Answer("{}"), "session::store::commit: the main instance answered nonsense"),
        ("commit", Fault::Refused, "session::store::commit: the main instance refused"),
    ] {
        on.way.fail(function, fault);
        let refusal = on.append("e").unwrap_err();
        assert_eq!(refusal.code, "session/storage");
        assert!(refusal.message.starts_with(says), "{}", refusal.message);
    }
    assert_eq!(door(&on.main).path(&on.session), [""; 0]);
    let read = json!({"session_id": on.session}).to_string();
    on.way.fail("session::messages", Fault::Unreachable);
    let refusal = call(&on.bridge, "session::messages", &read).unwrap_err();
    assert_eq!(refusal.code, "session/storage");
    assert!(refusal.message.starts_with("session::messages: "), "{}", refusal.message);
    assert_eq!(on.append("e").unwrap()["entry_id"], "e");
}

#[test]
fn a_main_that_is_away_from_the_start_is_asked_again_by_the_next_call() {
    let way = Arc::new(Faulty::new(ReferenceMain::default()));
    let bridge = bridge(Arc::clone(&way) as Arc<dyn Main>);
    way.fail("look", Fault::Unreachable);
    assert_eq!(call(&bridge, "session::create", "{}").unwrap_err().code, "session/storage");
    assert!(way.main.kept().metas.is_empty());
    call(&bridge, "session::create", "{}").unwrap();
    assert_eq!(way.main.kept().metas.len(), 1);
}

#[test]
fn a_banyan_that_has_not_joined_its_bus_yet_is_not_taken_for_a_session_manager() {
    let main = Banyan::in_memory(Options::default()).unwrap();
    let way = Arc::new(Faulty::new(BanyanMain(main)));
    let bridge = bridge(Arc::clone(&way) as Arc<dyn Main>);
    let attach = || {
        call(&bridge, "session::ensure", r#"{"session_id":"s"}"#)?;
        let attachment = json!({"session_id": "s", "name": "n", "mime": "text/plain", "data": "aGk="});
        call(&bridge, "session::put-attachment", &attachment.to_string())
    };
    way.fail("look", Fault::Missing);
    way.fail("get-meta", Fault::Missing);
    let refusal = attach().unwrap_err();
    assert_eq!(refusal.code, "session/storage");
    assert!(refusal.message.ends_with("it may still be starting"), "{}", refusal.message);
    // It joins while it is asked.
    way.fail("look", Fault::Missing);
    attach().unwrap();
    // It is gone for a moment.
    way.fail("look", Fault::Missing);
    assert_eq!(attach().unwrap_err().code, "session/storage");
    attach().unwrap();
}

#[test]
fn a_session_manager_that_lacks_a_function_is_asked_again_what_it_is() {
    let way = Arc::new(Faulty::new(ReferenceMain::default()));
    let bridge = bridge(Arc::clone(&way) as Arc<dyn Main>);
    call(&bridge, "session::ensure", r#"{"session_id":"s"}"#).unwrap();
    way.fail("get-meta", Fault::Missing);
    let get = || call(&bridge, "session::get", r#"{"session_id":"s"}"#);
    assert_eq!(get().unwrap_err().code, "session/storage");
    way.main.kept().calls.clear();
    assert_eq!(get().unwrap()["meta"]["session_id"], "s");
    assert_eq!(way.main.kept().calls, ["look", "get-meta", "look", "get-meta"]);
}

#[test]
fn a_commit_whose_answer_was_lost_is_asked_for_again_and_made_once() {
    let on = setup();
    let mut ears = Ears::open(&on.main);
    on.way.fail("commit", Fault::LostAnswer);
    on.append("e").unwrap();
    on.way.fail("commit", Fault::LostCall);
    on.append("f").unwrap();
    on.way.fail("commit", Fault::LostAnswer);
    let extend = json!({"session_id": on.session, "entry_id": "e", "text": "!"}).to_string();
    assert_eq!(call(&on.bridge, "session::extend-message", &extend).unwrap()["revision"], 1);
    on.way.fail("commit", Fault::LostAnswer);
    let fork = json!({"session_id": on.session, "entry_id": "f"}).to_string();
    call(&on.bridge, "session::fork", &fork).unwrap();
    on.way.fail("commit", Fault::LostAnswer);
    let delete = json!({"session_id": on.session}).to_string();
    assert_eq!(call(&on.bridge, "session::delete", &delete).unwrap(), json!({"deleted": true}));
    let heard = ears.heard();
    assert_eq!(types(&heard), ["message-added", "message-added", "message-updated", "created", "deleted"]);
    let listed = door(&on.main).ok("list", json!({}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn a_commit_with_which_the_connection_is_lost_each_time_is_not_repeated_for_ever() {
    let on = setup();
    for _ in 0..5 {
        on.way.fail("commit", Fault::LostCall);
    }
    let refusal = on.append("e").unwrap_err();
    assert_eq!(refusal.code, "session/storage");
    assert!(refusal.message.starts_with("session::store::commit: the main instance was lost"), "{refusal:?}");
    assert_eq!(door(&on.main).path(&on.session), [""; 0]);
    on.append("e").unwrap();
}

#[test]
fn a_commit_that_a_main_may_have_made_before_it_was_started_anew_is_not_made_twice() {
    let on = setup();
    let (main, session) = (on.main.clone(), on.session.clone());
    on.way.fail("commit", Fault::LostCall);
    // What it committed is there, and the token is forgotten.
    let made = move || drop(door(&main).append(&session, json!({"message": user("said once")})));
    on.way.fail("commit", Fault::First(Arc::new(made)));
    let request = json!({"session_id": on.session, "message": user("said once")}).to_string();
    let refusal = call(&on.bridge, "session::append", &request).unwrap_err();
    assert_eq!(refusal.code, "session/storage");
    assert!(refusal.message.contains("has changed since"), "{refusal:?}");
    assert_eq!(door(&on.main).path(&on.session), ["said once"]);
}

#[test]
fn a_late_answer_is_an_error_and_the_same_append_again_changes_nothing() {
    let on = setup();
    on.way.fail("commit", Fault::Late);
    assert_eq!(on.append("e").unwrap_err().code, "session/storage");
    assert_eq!(on.append("e").unwrap()["parent_id"], Value::Null);
    assert_eq!(door(&on.main).meta(&on.session)["message_count"], 1);
}

#[test]
fn at_a_session_manager_a_failed_put_is_an_error_and_a_failed_publish_is_not() {
    let way = Arc::new(Faulty::new(ReferenceMain::default()));
    let bridge = bridge(Arc::clone(&way) as Arc<dyn Main>);
    call(&bridge, "session::ensure", r#"{"session_id":"s"}"#).unwrap();
    let append = |id: &str| {
        let request = json!({"session_id": "s", "entry_id": id, "message": user(id)});
        call(&bridge, "session::append", &request.to_string())
    };
    way.fail("put-entry", Fault::Unreachable);
    let refusal = append("a").unwrap_err();
    assert_eq!(refusal.code, "session/storage");
    assert!(refusal.message.starts_with("session::store::put-entry: "), "{}", refusal.message);
    assert!(way.main.kept().entries.is_empty());
    way.fail("set-active-leaf", Fault::Answer(r#"{"ok":false}"#));
    assert!(append("a").unwrap_err().message.starts_with("session::store::set-active-leaf: "));
    way.fail("publish-events", Fault::Unreachable);
    append("b").unwrap();
    assert_eq!(way.main.kept().leaves["s"], "b");
    assert_eq!(way.main.kept().published.len(), 1, "only that the session began");
}

#[test]
fn another_kind_of_main_is_noticed_after_a_reconnect() {
    let main = Banyan::in_memory(Options::default()).unwrap();
    let way = Arc::new(Faulty::new(BanyanMain(main.clone())));
    let bridge = bridge(Arc::clone(&way) as Arc<dyn Main>);
    call(&bridge, "session::ensure", r#"{"session_id":"s"}"#).unwrap();
    bridge.reconnected();
    way.fail("look", Fault::Unreachable);
    assert_eq!(call(&bridge, "session::get", r#"{"session_id":"s"}"#).unwrap_err().code, "session/storage");
    assert_eq!(call(&bridge, "session::get", r#"{"session_id":"s"}"#).unwrap()["meta"]["session_id"], "s");
}

#[test]
fn every_function_is_served() {
    for main in [Arc::new(ReferenceMain::default()) as Arc<dyn Main>, Arc::new(BanyanMain(setup().main))] {
        let bridge = bridge(main);
        for function in banyan::functions() {
            if let Err(refusal) = call(&bridge, function.id, "{}") {
                assert_eq!(refusal.code, "session/invalid_request", "{}: {}", function.id, refusal.message);
            }
        }
    }
}

#[test]
fn a_call_can_be_made_on_any_thread() {
    fn on_any_thread<T: Send>(_: &T) {}
    let on = setup();
    on_any_thread(&on.bridge.call("session::create", b"{}"));
    on_any_thread(&on.main.store_call("session::store::list-metas", b"{}"));
}

/// A main that never answers.
struct Hung(tokio::sync::Notify);

impl Main for Hung {
    fn call<'a>(
        &'a self,
        _: &'a str,
        _: String,
        _: Option<Duration>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, MainFailed>> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }

    fn within(&self) -> Option<Duration> {
        Some(Duration::from_millis(20))
    }
}

#[tokio::test]
async fn whoever_waits_for_a_call_on_the_same_session_waits_no_longer_than_a_call_may_take() {
    let main = Arc::new(Hung(tokio::sync::Notify::new()));
    let bridge = bridge(Arc::clone(&main) as Arc<dyn Main>);
    let first = bridge.call("session::ensure", br#"{"session_id":"s"}"#);
    let second = async {
        main.0.notified().await;
        bridge.call("session::ensure", br#"{"session_id":"s"}"#).await
    };
    let refused = tokio::select! {
        answer = first => answer,
        answer = tokio::time::timeout(Duration::from_secs(20), second) => answer.expect("it does not wait for ever"),
    };
    let Err(CallError::Refused(error)) = refused else { panic!("it was answered") };
    assert_eq!((error.code.as_str(), error.retryable), ("session/storage", true));
    assert!(error.message.contains("did not answer within 20 ms"), "{}", error.message);
}

/// A main whose first answer comes when it is told to, and that notes how much time it is given.
struct Patient {
    main: BanyanMain,
    may_answer: tokio::sync::Notify,
    given: Mutex<Vec<Duration>>,
}

const PLENTY: Duration = Duration::from_secs(3600);

impl Main for Patient {
    fn call<'a>(
        &'a self,
        function_id: &'a str,
        body: String,
        within: Option<Duration>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, MainFailed>> {
        Box::pin(async move {
            let is_first = {
                let mut given = self.given.lock().unwrap();
                given.push(within.unwrap());
                given.len() == 1
            };
            if is_first {
                self.may_answer.notified().await;
            }
            self.main.call(function_id, body, within).await
        })
    }

    fn within(&self) -> Option<Duration> {
        Some(PLENTY)
    }
}

#[tokio::test]
async fn a_call_has_one_time_for_waiting_its_turn_and_for_all_that_it_asks() {
    let main = Arc::new(Patient {
        main: BanyanMain(Banyan::in_memory(Options::default()).unwrap()),
        may_answer: tokio::sync::Notify::new(),
        given: Mutex::default(),
    });
    let bridge = bridge(Arc::clone(&main) as Arc<dyn Main>);
    let ensure = || bridge.call("session::ensure", br#"{"session_id":"s"}"#);
    // The second one waits for its turn from before the first one is answered.
    let (first, second, ()) = tokio::join!(ensure(), ensure(), async { main.may_answer.notify_one() });
    assert!(first.is_ok() && second.is_ok());
    let given = main.given.lock().unwrap();
    let (of_first, of_second) = given.split_at(3);
    assert!(of_first.is_sorted_by(|before, after| after < before), "{given:?}");
    assert!(of_second.iter().all(|given| *given < PLENTY), "{given:?}");
}
