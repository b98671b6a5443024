//! A flush fails: it is never acknowledged, reading goes on, and opening the store again cures it.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use banyan_log::disk::{Fate, MemDisk, Mishap};
use banyan_model::ErrorCode;
use banyan_sim::check::{Expected, check};
use banyan_sim::driver::{Driver, Stopped, open};
use banyan_sim::frail::Frail;
use banyan_sim::model::Model;
use banyan_sim::observe::observe;
use banyan_sim::predict::Call;
use banyan_sim::reopen::{Care, Reopener, Tally};
use banyan_sim::seeds::{self, Scene, Share};
use serde_json::json;

/// Which flushes fail, and what that means for what they should have saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Any flush; the system takes what it could not save for saved, and no later flush saves it.
    ForEver,
    /// The flush of a directory; the next one saves what this one did not.
    Once,
}

/// What is done with a store, the same each time.
type Life<'a> = &'a dyn Fn(&mut Driver) -> Result<(), Stopped>;

/// Which operations of a life are flushes.
fn flushes(seed: u64, life: Life<'_>) -> Vec<u64> {
    let mut driver = Driver::watched(&MemDisk::crashable(seed), seed, Mishap::Kill);
    life(&mut driver).unwrap();
    let moments = driver.stretches().into_iter().flat_map(|stretch| stretch.moments);
    moments.filter(|moment| moment.is_sync()).map(|moment| moment.op()).collect()
}

/// Fails the flush that is operation `at`. False when it is of a kind that is not to fail.
fn fail_flush(seed: u64, life: Life<'_>, at: u64, fault: Fault, tally: &Tally) -> bool {
    let _scene = Scene(format!("BANYAN_SIM_SEED={seed}, the flush in operation {at} fails: {fault:?}"));
    let disk = MemDisk::crashable(seed ^ at);
    let frail = Frail::failing_at(&disk, if fault == Fault::Once { at } else { u64::MAX });
    if fault == Fault::ForEver {
        disk.fail_sync_at(at);
    }
    let Ok(mut driver) = Driver::open(&frail, seed, Model::default()) else {
        check(&open(&disk).unwrap(), &Expected::default());
        return true;
    };
    let stopped = life(&mut driver).err();
    // The flush of a directory that fails does not reach the disk, which counts.
    assert!(disk.ops() + 1 >= at, "a seed repeats every operation");
    let Some(Stopped(error)) = stopped else { return frail.has_failed() };
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
    reopen_without_and_with_a_crash(&disk, driver, &expected, fault, tally);
    true
}

/// First as after a power cut, then as after a restart of the process, where the system still shows what it could
/// not save. What was shown then is not taken back by a power cut, as far as anybody could save it.
fn reopen_without_and_with_a_crash(
    disk: &MemDisk,
    driver: Driver,
    expected: &Expected,
    fault: Fault,
    tally: &Tally,
) {
    let fates = [Fate::LoseUnsynced, Fate::KeepAll, Fate::Random(disk.ops())];
    let mut reopener = Reopener::new(tally, Care::Same, expected.clone());
    for fate in fates {
        reopener.look(&disk.after_crash(fate));
    }
    drop(driver);
    let store = open(disk).unwrap_or_else(|error| panic!("does not open again: {error}"));
    let shown = check(&store, expected);
    let expected = Expected { acknowledged: shown, ..Expected::default() };
    let mut reopener = Reopener::new(tally, Care::Same, expected);
    for fate in fates.into_iter().filter(|_| fault == Fault::Once) {
        reopener.look(&disk.after_crash(fate));
    }
}

fn fail_every_flush(seed: u64, life: Life<'_>, tally: &Tally) -> u64 {
    let flushes = flushes(seed, life);
    let failed = |fault| flushes.iter().filter(|at| fail_flush(seed, life, **at, fault, tally)).count() as u64;
    failed(Fault::ForEver) + failed(Fault::Once)
}

/// Makes calls of all kinds, and opens the store anew.
fn busy(calls: u64) -> impl Fn(&mut Driver) -> Result<(), Stopped> {
    move |driver| driver.make_calls(calls).and_then(|()| driver.reopen())
}

#[test]
fn a_failing_flush_is_never_acknowledged_and_reopening_recovers() {
    let tally = Tally::default();
    let failed: u64 = seeds::everyday(1).into_iter().map(|seed| fail_every_flush(seed, &busy(30), &tally)).sum();
    println!("{failed} failed flushes, {tally}");
    assert!(failed > 0);
}

#[test]
fn a_fork_is_read_whole_when_its_source_could_not_be_moved_away() {
    let life = |driver: &mut Driver| {
        let message = json!({"role": "user", "content": [{"type": "text", "text": "hello"}], "timestamp": 1});
        driver.make(Call::new("session::ensure", json!({"session_id": "source", "title": "w"})))?;
        driver.make(Call::new(
            "session::append",
            json!({"session_id": "source", "entry_id": "e", "message": message}),
        ))?;
        driver.make(Call::new("session::fork", json!({"session_id": "source", "entry_id": "e"})))?;
        let fork = driver.expected().acknowledged.sessions.into_keys().find(|id| id != "source").unwrap();
        // The fork leaves the cache, and is loaded when it is looked at.
        for other in ["a", "b", "c"] {
            driver.make(Call::new("session::ensure", json!({"session_id": other, "title": "w"})))?;
        }
        driver.make(Call::new("session::delete", json!({"session_id": "source"})))?;
        driver.make(Call::new("session::tree", json!({"session_id": fork})))?;
        let (seen, acknowledged) = (observe(driver.store()), driver.expected().acknowledged);
        assert!(seen == acknowledged, "what is read:\n{}", acknowledged.differences(&seen));
        assert_eq!(observe(driver.store()), acknowledged, "reading brings nothing back");
        Ok(())
    };
    let tally = Tally::default();
    assert!(fail_every_flush(0, &life, &tally) > 0);
}

#[test]
#[ignore = "runs for a share of BANYAN_SOAK_MINUTES"]
fn soak_failing_flushes() {
    let (tally, failed) = (Tally::default(), AtomicU64::new(0));
    seeds::soak_on_all_cores(
        Share::Flushes,
        |seconds| format!("{} failed flushes, {}", failed.load(Relaxed), tally.after(seconds)),
        |seed| {
            failed.fetch_add(fail_every_flush(seed, &busy(20 + seed % 40), &tally), Relaxed);
        },
    );
}
