//! The power goes at every single write and flush, also while the store recovers.

use banyan::block_on;
use banyan_log::disk::{Fate, MemDisk};
use banyan_model::CreateRequest;
use banyan_sim::check::{Expected, check};
use banyan_sim::driver::{Driver, files, open};
use banyan_sim::model::Model;
use banyan_sim::seeds::{self, Scene};

/// What becomes of writes that were not flushed.
fn fates(seed: u64, cut: u64) -> impl Iterator<Item = Fate> {
    let random = (0..3).map(move |n| Fate::Random(seed.wrapping_mul(31).wrapping_add(cut * 7919 + n)));
    [Fate::LoseUnsynced, Fate::KeepAll, Fate::TornLast].into_iter().chain(random)
}

/// Opens what a crash left, checks it, and checks what its files say once it is closed.
fn check_disk(disk: &MemDisk, expected: &Expected) {
    let store = open(disk).unwrap_or_else(|error| panic!("the store does not open: {error}"));
    check(&store, expected);
    store.close().unwrap();
    if !banyan_sim::files::check(&files(disk)).is_empty() {
        check_litter_goes(disk);
    }
}

/// Blobs that a crash left without a user go, at the latest when the store recovers commits the next time.
fn check_litter_goes(disk: &MemDisk) {
    let store = open(disk).unwrap();
    block_on(store.create(CreateRequest::default())).unwrap();
    let found = disk.after_crash(Fate::KeepAll);
    open(&found).unwrap().close().unwrap();
    assert_eq!(banyan_sim::files::check(&files(&found)), Vec::<String>::new(), "blobs that nobody uses");
}

/// Runs a workload, and cuts the power in one operation of the disk. `None` when it ended before that.
fn crashed(seed: u64, calls: u64, cut: u64) -> Option<(MemDisk, Expected)> {
    let disk = MemDisk::crashable(seed ^ cut);
    disk.crash_at(cut);
    let expected = match Driver::open(&disk, seed, Model::default()) {
        Ok(mut driver) => {
            let _ = driver.make_calls(calls).and_then(|()| driver.reopen());
            driver.expected()
        }
        Err(_) => Expected::default(),
    };
    disk.crashed().then_some((disk, expected))
}

/// Every crash point of a workload; gives how many there were.
fn crash_everywhere(seed: u64, calls: u64) -> u64 {
    let mut points = 0;
    for cut in 1.. {
        let Some((disk, expected)) = crashed(seed, calls, cut) else { break };
        for fate in fates(seed, cut) {
            let _scene = Scene(format!("BANYAN_SIM_SEED={seed}, {calls} calls, operation {cut}, {fate:?}"));
            check_disk(&disk.after_crash(fate), &expected);
            points += 1;
        }
    }
    points
}

/// Crashes once, then again at every operation of the recovery.
fn crash_while_recovering(seed: u64, calls: u64, cut: u64) -> u64 {
    let Some((disk, expected)) = crashed(seed, calls, cut) else { return 0 };
    let mut points = 0;
    for fate in fates(seed, cut) {
        for again in 1.. {
            let second = disk.after_crash(fate);
            second.crash_at(again);
            let opened = open(&second);
            if !second.crashed() {
                break;
            }
            drop(opened);
            let next = Fate::Random(seed + again);
            for then in [Fate::LoseUnsynced, Fate::KeepAll, next] {
                let first = format!("BANYAN_SIM_SEED={seed}, {calls} calls, operation {cut}, {fate:?}");
                let _scene = Scene(format!("{first}, operation {again} of the recovery, {then:?}"));
                check_disk(&second.after_crash(then), &expected);
                points += 1;
            }
        }
    }
    points
}

/// One store that crashes again and again, and goes on each time with what was left.
fn many_lives(seed: u64, lives: u64) -> u64 {
    let mut disk = MemDisk::crashable(seed);
    let mut dice = banyan_sim::dice::Dice::new(!seed);
    let mut model = Model::default();
    for life in 0..lives {
        let _scene = Scene(format!("BANYAN_SIM_SEED={seed}, life {life}"));
        disk.crash_at(1 + dice.below(250) as u64);
        let expected = match Driver::open(&disk, seed.wrapping_add(life), model.clone()) {
            Ok(mut driver) => {
                let _ = driver.make_calls(60);
                driver.expected()
            }
            Err(_) => Expected { acknowledged: model, under_way: None, live: None },
        };
        let fate = fates(seed, life).nth(dice.below(6)).unwrap_or(Fate::KeepAll);
        disk = disk.after_crash(fate);
        let store = open(&disk).unwrap_or_else(|error| panic!("{fate:?}: the store does not open: {error}"));
        model = check(&store, &expected);
    }
    lives
}

#[test]
fn what_was_acknowledged_survives_a_crash_at_every_operation() {
    let points: u64 = seeds::everyday(2).into_iter().map(|seed| crash_everywhere(seed, 40)).sum();
    println!("{points} crash points");
}

#[test]
fn recovery_survives_a_crash_at_every_operation() {
    let mut points = 0;
    for seed in seeds::everyday(1) {
        points +=
            (1..).step_by(97).map(|cut| crash_while_recovering(seed, 40, cut)).take_while(|n| *n > 0).sum::<u64>();
    }
    println!("{points} crash points");
}

#[test]
fn a_store_survives_many_crashes_in_a_row() {
    let lives: u64 = seeds::everyday(10).into_iter().map(|seed| many_lives(seed, 12)).sum();
    println!("{lives} lives");
}

#[test]
#[ignore = "runs for a share of BANYAN_SOAK_MINUTES"]
fn soak_crashes() {
    let mut points = 0;
    for seed in seeds::soak() {
        points += crash_everywhere(seed, 20 + seed % 60);
        points += crash_while_recovering(seed, 40, 1 + seed % 200);
        points += many_lives(seed, 30);
        println!("seed {seed}: {points} crash points so far");
    }
}
