//! The disk fills up and gets room again: refused calls leave no trace, everything else stays.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use banyan_log::disk::{Fate, MemDisk};
use banyan_model::ErrorCode;
use banyan_sim::check::check;
use banyan_sim::dice::Dice;
use banyan_sim::driver::{Driver, files, open};
use banyan_sim::model::Model;
use banyan_sim::observe::observe;
use banyan_sim::seeds::{self, Scene, Share};

fn used(disk: &MemDisk) -> u64 {
    files(disk).iter().map(|(_, bytes)| bytes.len() as u64).sum()
}

/// Gives how many calls were refused.
fn fill_again_and_again(seed: u64, calls: u64) -> u64 {
    let disk = MemDisk::crashable(seed);
    // Every other disk only says that it is full when it is, as under a quota.
    if seed.is_multiple_of(2) {
        disk.report_space();
    }
    let mut dice = Dice::new(!seed);
    let mut driver = Driver::open(&disk, seed, Model::default()).unwrap();
    let mut refused = 0;
    for number in 0..calls {
        let _scene = Scene(format!("BANYAN_SIM_SEED={seed}, call {number}"));
        if dice.percent(10) {
            let room = dice.below(6000) as u64;
            disk.set_capacity(dice.percent(60).then(|| used(&disk) + room));
        }
        if let Err(stopped) = driver.make_call() {
            let error = stopped.0;
            assert!(error.code == ErrorCode::Storage && error.retryable, "{error:?}");
            assert!(error.message.contains("full"), "the message says what is wrong: {error}");
            assert_eq!(driver.store().poisoned(), None, "a full disk does not end writing");
            driver.refused_for_good();
            refused += 1;
            let (seen, acknowledged) = (observe(driver.store()), driver.expected().acknowledged);
            assert!(seen == acknowledged, "reading goes on:\n{}", acknowledged.differences(&seen));
        }
    }
    let _scene = Scene(format!("BANYAN_SIM_SEED={seed}, after {calls} calls"));
    disk.set_capacity(None);
    let expected = driver.expected();
    for fate in [Fate::LoseUnsynced, Fate::KeepAll, Fate::Random(seed)] {
        check(&open(&disk.after_crash(fate)).unwrap(), &expected);
    }
    driver.make_call().unwrap_or_else(|error| panic!("there is room again: {error:?}"));
    driver.reopen().unwrap_or_else(|error| panic!("there is room again: {error:?}"));
    check(driver.store(), &driver.expected());
    refused
}

#[test]
fn a_full_disk_refuses_and_works_again_when_there_is_room() {
    let count = 30;
    let refused: u64 = seeds::everyday(count).into_iter().map(|seed| fill_again_and_again(seed, 120)).sum();
    println!("{refused} calls refused");
    assert!(refused > 0);
}

#[test]
#[ignore = "runs for a share of BANYAN_SOAK_MINUTES"]
fn soak_full_disks() {
    let (calls, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    seeds::soak_on_all_cores(
        Share::FullDisks,
        |seconds| {
            let [calls, refused] = [&calls, &refused].map(|counter| counter.load(Relaxed));
            format!("{calls} calls, {refused} of them refused ({:.0} calls a second)", calls as f64 / seconds)
        },
        |seed| {
            refused.fetch_add(fill_again_and_again(seed, 400), Relaxed);
            calls.fetch_add(400, Relaxed);
        },
    );
}
