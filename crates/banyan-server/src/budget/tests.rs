#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use bytes::Bytes;
use futures_util::FutureExt;
use hyper::StatusCode;

use super::*;
use crate::problem::Problem;

const SUBJECT: Subject = Subject { label: "test", setting: "limits.test", what: "units", code: "test/full" };

fn budget(limit: u64) -> Arc<Budget> {
    Budget::new(SUBJECT, limit, Refusals::default())
}

fn key(name: &str) -> Holder {
    Holder::Key(name.into())
}

/// How many wait within their half, and in all.
fn waiting(budget: &Budget) -> (usize, usize) {
    let state = budget.lock();
    (state.waiting, state.all_waiting)
}

fn reason(taken: Result<Lease, Refusal>) -> Option<Reason> {
    taken.err().map(|refusal| refusal.reason)
}

#[tokio::test]
async fn one_holder_gets_all_but_an_eighth_and_others_get_that() {
    let budget = budget(80);
    let most = budget.try_take(key("a"), 70).unwrap();
    assert_eq!(reason(budget.try_take(key("a"), 1)), Some(Reason::Share));
    assert!(!budget.is_pressed());
    let rest = budget.try_take(key("b"), 10).unwrap();
    assert!(budget.is_pressed());
    assert_eq!(budget.used(), 80);
    drop((most, rest));
    assert_eq!((budget.used(), budget.is_pressed()), (0, false));
    assert!(budget.lock().holders.is_empty());
}

#[tokio::test]
async fn beyond_its_half_a_holder_gets_nothing_while_another_was_refused_lately() {
    let budget = budget(80);
    let half = budget.try_take(key("a"), 40).unwrap();
    let other = budget.try_take(key("b"), 30).unwrap();
    assert_eq!(reason(budget.try_take(key("c"), 11)), Some(Reason::Full));
    drop(other);
    assert_eq!(reason(budget.try_take(key("a"), 1)), Some(Reason::Share));
    // Within its half each gets what there is.
    drop(budget.try_take(key("c"), 40).unwrap());
    let long_ago = Instant::now().checked_sub(UNMET).unwrap();
    budget.lock().unmet = Some((key("c"), long_ago));
    drop(budget.try_take(key("a"), 30).unwrap());
    drop(half);
}

#[tokio::test]
async fn who_waits_gets_what_is_given_back_and_is_refused_after_a_while() {
    let budget = budget(80);
    let (a, b) = (budget.try_take(key("a"), 40).unwrap(), budget.try_take(key("b"), 40).unwrap());
    let mut waits = Box::pin(budget.take(key("c"), 20));
    assert!(waits.as_mut().now_or_never().is_none());
    assert_eq!(waiting(&budget), (1, 1));
    drop(a);
    assert_eq!(waits.await.unwrap().amount(), 20);
    let a = budget.try_take(key("a"), 40).unwrap();
    assert_eq!(reason(budget.take_within(key("c"), 20, Duration::from_millis(1)).await), Some(Reason::Full));
    // One that stops waiting is forgotten.
    let mut waits = Box::pin(budget.take(key("c"), 20));
    assert!(waits.as_mut().now_or_never().is_none());
    drop(waits);
    assert_eq!(waiting(&budget), (0, 0));
    drop((a, b));
    assert!(budget.lock().holders.is_empty());
}

#[tokio::test]
async fn who_waits_within_its_half_takes_the_newest_from_who_is_beyond() {
    let budget = budget(80);
    let mut greedy: Vec<Lease> = (0..7).map(|_| budget.try_take(key("a"), 10).unwrap()).collect();
    let signals: Vec<Arc<Notify>> = greedy.iter_mut().map(Lease::allow_revoking).collect();
    greedy[6].forbid_revoking();
    let mut waits = Box::pin(budget.take(key("b"), 30));
    assert!(waits.as_mut().now_or_never().is_none());
    let revoked: Vec<bool> = signals.iter().map(|signal| signal.notified().now_or_never().is_some()).collect();
    // Two are enough for 30 beside the 10 that are free.
    assert_eq!(revoked, [false, false, false, false, true, true, false]);
    assert_eq!(budget.refusals.revoked.get(), 2);
    greedy.drain(4..6);
    assert_eq!(waits.await.unwrap().amount(), 30);
}

#[tokio::test]
async fn nobody_loses_what_is_within_its_half() {
    let budget = budget(80);
    let mut leases = [budget.try_take(key("a"), 40).unwrap(), budget.try_take(key("b"), 40).unwrap()];
    let signals: Vec<Arc<Notify>> = leases.iter_mut().map(Lease::allow_revoking).collect();
    assert_eq!(reason(budget.take_within(key("c"), 1, Duration::from_millis(1)).await), Some(Reason::Full));
    assert!(signals.iter().all(|signal| signal.notified().now_or_never().is_none()));
}

#[tokio::test]
async fn only_so_many_wait() {
    let budget = budget(80);
    let _all = [budget.try_take(key("a"), 40).unwrap(), budget.try_take(key("b"), 40).unwrap()];
    let mut waiting: Vec<_> = (0..MAX_WAITING).map(|_| Box::pin(budget.take(key("c"), 1))).collect();
    assert!(waiting.iter_mut().all(|waits| waits.as_mut().now_or_never().is_none()));
    let refused = budget.take(key("d"), 1).now_or_never().expect("an answer at once");
    assert_eq!(reason(refused), Some(Reason::Full));
}

#[tokio::test]
async fn a_lease_moves_to_another_holder_or_stays() {
    let budget = budget(80);
    let mut one = budget.try_take(key("a"), 10).unwrap();
    one.move_to(key("b")).unwrap();
    let rest = budget.try_take(key("b"), 60).unwrap();
    let mut other = budget.try_take(key("a"), 10).unwrap();
    assert_eq!(other.move_to(key("b")).unwrap_err().reason, Reason::Share);
    drop((one, rest));
    assert_eq!(budget.used(), 10);
    other.move_to(key("b")).unwrap();
}

#[tokio::test]
async fn what_is_larger_than_everything_is_let_in_alone() {
    let budget = budget(80);
    drop(budget.try_take(key("a"), 100).unwrap());
    let _one = budget.try_take(key("b"), 1).unwrap();
    assert_eq!(reason(budget.try_take(key("a"), 100)), Some(Reason::Full));
    let _made_already = budget.take_regardless(key("a"), 100);
    assert_eq!((budget.used(), budget.is_pressed()), (101, true));
}

#[tokio::test]
async fn one_text_for_many_is_accounted_once() {
    let (budget, texts) = (budget(80), SharedTexts::default());
    let text = Bytes::from(vec![b'x'; 30]);
    let mut sent = Vec::new();
    for name in ["a", "b", "c"] {
        sent.push(shared_text(&texts, &budget, key(name), text.clone()).await.unwrap());
    }
    assert_eq!((budget.used(), sent[2].as_ref()), (30, text.as_ref()));
    sent.truncate(1);
    assert_eq!(budget.used(), 30);
    drop(sent);
    assert_eq!(budget.used(), 0);
}

#[tokio::test]
async fn a_refusal_says_what_and_which_setting() {
    let budget = budget(8);
    let _all = budget.try_take(key("a"), 7).unwrap();
    let full = Problem::from(budget.try_take(key("b"), 2).err().unwrap());
    assert_eq!((full.status, full.code), (StatusCode::SERVICE_UNAVAILABLE, "test/full"));
    assert_eq!(full.detail, "this server holds as many units as it may: 8 (`limits.test`)");
    let share = Problem::from(budget.try_take(key("a"), 1).err().unwrap());
    assert_eq!((share.status, share.code), (StatusCode::TOO_MANY_REQUESTS, "rate/limited"));
    assert_eq!(
        share.detail,
        "this key holds more than half of the 8 units of this server (`limits.test`), and the rest is for others"
    );
}
