//! A flush fails: it is never acknowledged, reading goes on, and opening the store again cures it.

use banyan_log::disk::{Fate, MemDisk};
use banyan_model::ErrorCode;
use banyan_sim::check::{Expected, check};
use banyan_sim::driver::{Driver, open};
use banyan_sim::model::Model;
use banyan_sim::observe::observe;
use banyan_sim::seeds::{self, Scene};

/// Fails the flush that is operation `at`, if that is one. `None` when the workload ended before it.
fn fail_flush(seed: u64, calls: u64, at: u64) -> Option<bool> {
    let _scene = Scene(format!("BANYAN_SIM_SEED={seed}, {calls} calls, the flush in operation {at} fails"));
    let disk = MemDisk::crashable(seed ^ at);
    disk.fail_sync_at(at);
    let mut driver = match Driver::open(&disk, seed, Model::default()) {
        Ok(driver) => driver,
        Err(_) => {
            check(&open(&disk).unwrap(), &Expected::default());
            return Some(true);
        }
    };
    let stopped = driver.make_calls(calls).and_then(|()| driver.reopen()).err();
    let mut expected = driver.expected();
    if disk.ops() < at {
        return None;
    }
    if let Some(stopped) = &stopped {
        assert_eq!(stopped.0.code, ErrorCode::Storage, "{}", stopped.0);
        // Readers see what was acknowledged, and nothing of the call that was refused.
        if expected.under_way.is_some() {
            let (seen, acknowledged) = (observe(driver.store()), &expected.acknowledged);
            assert!(seen == *acknowledged, "while writing has stopped:\n{}", acknowledged.differences(&seen));
        }
        if driver.store().poisoned().is_some() {
            let refused = driver.make_call().expect_err("writing has stopped");
            assert_eq!(refused.0.code, ErrorCode::Storage, "{}", refused.0);
        } else if let Some((call, _)) = expected.under_way.clone() {
            // Only this call failed, and whoever made it makes it again.
            driver.make(call).unwrap_or_else(|error| panic!("a second time: {error:?}"));
            expected = driver.expected();
        }
    }
    let names_are_safe = stopped.as_ref().is_some_and(|stopped| !stopped.0.message.contains("directory"));
    reopen_without_and_with_a_crash(&disk, driver, &expected, names_are_safe);
    Some(stopped.is_some())
}

/// First as after a power cut, then as after a restart of the process, where the system still shows what it could
/// not save. A file whose flush failed is then written again, so that a power cut takes nothing back; the
/// name of a file whose directory could not be flushed has no such cure, short of another name.
fn reopen_without_and_with_a_crash(disk: &MemDisk, driver: Driver, expected: &Expected, names_are_safe: bool) {
    let fates = [Fate::LoseUnsynced, Fate::KeepAll, Fate::Random(disk.ops())];
    for fate in fates {
        check(&open(&disk.after_crash(fate)).unwrap(), expected);
    }
    drop(driver);
    let store = open(disk).unwrap_or_else(|error| panic!("does not open again: {error}"));
    let shown = check(&store, expected);
    for fate in fates.into_iter().filter(|_| names_are_safe) {
        let expected = Expected { acknowledged: shown.clone(), ..Expected::default() };
        check(&open(&disk.after_crash(fate)).unwrap(), &expected);
    }
}

fn fail_every_flush(seed: u64, calls: u64) -> u64 {
    (1..).map_while(|at| fail_flush(seed, calls, at)).filter(|failed| *failed).count() as u64
}

#[test]
fn a_failing_flush_is_never_acknowledged_and_reopening_recovers() {
    let failed: u64 = seeds::everyday(1).into_iter().map(|seed| fail_every_flush(seed, 30)).sum();
    println!("{failed} failed flushes");
    assert!(failed > 0);
}

#[test]
#[ignore = "runs for BANYAN_SOAK_MINUTES"]
fn soak_failing_flushes() {
    let mut failed = 0;
    for seed in seeds::soak() {
        failed += fail_every_flush(seed, 20 + seed % 40);
        println!("seed {seed}: {failed} failed flushes so far");
    }
}
