//! A flush fails: it is never acknowledged, reading goes on, and opening the store again cures it.

use banyan_log::disk::{Fate, MemDisk};
use banyan_model::ErrorCode;
use banyan_sim::check::{Expected, check};
use banyan_sim::driver::{Driver, Stopped, open};
use banyan_sim::frail::Frail;
use banyan_sim::model::Model;
use banyan_sim::observe::observe;
use banyan_sim::predict::Call;
use banyan_sim::seeds::{self, Scene};
use serde_json::json;

/// Which flushes fail, and what that means for what they should have saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Any flush; the system takes what it could not save for saved, and no later flush saves it.
    ForEver,
    /// The flush of a directory; the next one saves what this one did not.
    Once,
}

/// Fails the flush that is operation `at`, if that is one. `None` when the workload ended before it.
fn fail_flush(seed: u64, calls: u64, at: u64, fault: Fault) -> Option<bool> {
    let _scene =
        Scene(format!("BANYAN_SIM_SEED={seed}, {calls} calls, the flush in operation {at} fails: {fault:?}"));
    let disk = MemDisk::crashable(seed ^ at);
    let frail = Frail::failing_at(&disk, if fault == Fault::Once { at } else { u64::MAX });
    if fault == Fault::ForEver {
        disk.fail_sync_at(at);
    }
    let Ok(mut driver) = Driver::open(&frail, seed, Model::default()) else {
        check(&open(&disk).unwrap(), &Expected::default());
        return Some(true);
    };
    let stopped = driver.make_calls(calls).and_then(|()| driver.reopen()).err();
    if disk.ops() < at {
        return None;
    }
    let Some(Stopped(error)) = stopped else { return Some(frail.has_failed()) };
    assert_eq!(error.code, ErrorCode::Storage, "{error}");
    let mut expected = driver.expected();
    // Readers see what was acknowledged, and nothing of the call that was refused.
    if expected.under_way.is_some() {
        let (seen, acknowledged) = (observe(driver.store()), &expected.acknowledged);
        assert!(seen == *acknowledged, "while writing has stopped:\n{}", acknowledged.differences(&seen));
    }
    if driver.store().poisoned().is_some() {
        let create = Call::new("session::create", json!({"title": "w afterwards"}));
        let refused = driver.make(create).expect_err("writing has stopped");
        assert_eq!(refused.0.code, ErrorCode::Storage, "{}", refused.0);
    } else if let Some((call, _)) = expected.under_way.clone().filter(|_| fault == Fault::Once) {
        // Only this call failed, and whoever made it makes it again.
        driver.make(call).unwrap_or_else(|error| panic!("a second time: {error:?}"));
        expected = driver.expected();
    }
    reopen_without_and_with_a_crash(&disk, driver, &expected, fault);
    Some(true)
}

/// First as after a power cut, then as after a restart of the process, where the system still shows what it could
/// not save. What was shown then is not taken back by a power cut, as far as anybody could save it.
fn reopen_without_and_with_a_crash(disk: &MemDisk, driver: Driver, expected: &Expected, fault: Fault) {
    let fates = [Fate::LoseUnsynced, Fate::KeepAll, Fate::Random(disk.ops())];
    for fate in fates {
        check(&open(&disk.after_crash(fate)).unwrap(), expected);
    }
    drop(driver);
    let store = open(disk).unwrap_or_else(|error| panic!("does not open again: {error}"));
    let shown = check(&store, expected);
    for fate in fates.into_iter().filter(|_| fault == Fault::Once) {
        let expected = Expected { acknowledged: shown.clone(), ..Expected::default() };
        check(&open(&disk.after_crash(fate)).unwrap(), &expected);
    }
}

fn fail_every_flush(seed: u64, calls: u64) -> u64 {
    let failures =
        |fault| (1..).map_while(move |at| fail_flush(seed, calls, at, fault)).filter(|failed| *failed).count();
    (failures(Fault::ForEver) + failures(Fault::Once)) as u64
}

#[test]
fn a_failing_flush_is_never_acknowledged_and_reopening_recovers() {
    let failed: u64 = seeds::everyday(1).into_iter().map(|seed| fail_every_flush(seed, 30)).sum();
    println!("{failed} failed flushes");
    assert!(failed > 0);
}

#[test]
#[ignore = "runs for a share of BANYAN_SOAK_MINUTES"]
fn soak_failing_flushes() {
    let mut failed = 0;
    for seed in seeds::soak() {
        failed += fail_every_flush(seed, 20 + seed % 40);
        println!("seed {seed}: {failed} failed flushes so far");
    }
}
