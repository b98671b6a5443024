//! The power goes at every single write and flush, also while the store recovers.

use banyan_log::disk::{Fate, MemDisk, Mishap};
use banyan_sim::check::{Expected, check};
use banyan_sim::dice::Dice;
use banyan_sim::driver::{Driver, Stretch, open};
use banyan_sim::model::Model;
use banyan_sim::reopen::{Care, Reopener, Tally};
use banyan_sim::seeds::{self, Scene, Share};

/// What becomes of writes that were not flushed.
fn fates(seed: u64, cut: u64, random: u64) -> impl Iterator<Item = Fate> {
    let random =
        (0..random).map(move |n| Fate::Random(seed.wrapping_mul(31).wrapping_add(cut.wrapping_mul(7919) + n)));
    [Fate::LoseUnsynced, Fate::KeepAll, Fate::TornLast].into_iter().chain(random)
}

/// Runs a workload once, and shows every moment of its disk.
fn live(seed: u64, calls: u64, mut show: impl FnMut(&Stretch)) {
    let disk = MemDisk::crashable(seed);
    let mut driver = Driver::watched(&disk, seed, Mishap::PowerCut);
    for _ in 0..calls {
        driver.make_calls(1).unwrap();
        driver.stretches().iter().for_each(&mut show);
    }
    driver.reopen().unwrap();
    driver.stretches().iter().for_each(show);
}

/// How a workload is crashed.
struct Plan {
    calls: u64,
    care: Care,
    /// How many fates of each cut are left to chance.
    random: u64,
    /// One in so many cuts is followed by cuts in every operation of the recovery; for each of its fates, or for one.
    recoveries: u64,
}

/// Cuts the power in every operation of a workload.
fn crash_everywhere(seed: u64, plan: &Plan, tally: &Tally) {
    let mut cuts = seed;
    let mut reopener = Reopener::new(tally, plan.care, Expected::default());
    live(seed, plan.calls, |stretch| {
        reopener.expect(stretch.expected.clone());
        for moment in &stretch.moments {
            let cut = moment.op();
            for fate in fates(seed, cut, plan.random) {
                let _scene =
                    Scene(format!("BANYAN_SIM_SEED={seed}, {} calls, operation {cut}, {fate:?}", plan.calls));
                reopener.check(moment, fate);
            }
            cuts = cuts.wrapping_add(1);
            if cuts.is_multiple_of(plan.recoveries) {
                for fate in fates(seed, cut, 3) {
                    let _scene =
                        Scene(format!("BANYAN_SIM_SEED={seed}, {} calls, operation {cut}, {fate:?}", plan.calls));
                    reopener.check_recovery(moment, fate);
                }
            }
        }
    });
}

/// One store that crashes again and again, and goes on each time with what was left.
fn many_lives(seed: u64, lives: u64, tally: &Tally) {
    let mut disk = MemDisk::crashable(seed);
    let mut dice = Dice::new(!seed);
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
        let fate = fates(seed, life, 3).nth(dice.below(6)).unwrap_or(Fate::KeepAll);
        disk = disk.after_crash(fate);
        let store = open(&disk).unwrap_or_else(|error| panic!("{fate:?}: the store does not open: {error}"));
        model = check(&store, &expected);
        tally.count_whole();
    }
}

#[test]
fn what_was_acknowledged_survives_a_crash_at_every_operation() {
    let tally = Tally::default();
    let plan = Plan { calls: 40, care: Care::Same, random: 3, recoveries: u64::MAX };
    seeds::everyday(3).into_iter().for_each(|seed| crash_everywhere(seed, &plan, &tally));
    println!("{tally}");
}

#[test]
fn recovery_survives_a_crash_at_every_operation() {
    let tally = Tally::default();
    let plan = Plan { calls: 40, care: Care::Same, random: 0, recoveries: 23 };
    seeds::everyday(1).into_iter().for_each(|seed| crash_everywhere(seed, &plan, &tally));
    println!("{tally}");
}

#[test]
fn a_store_survives_many_crashes_in_a_row() {
    let tally = Tally::default();
    seeds::everyday(10).into_iter().for_each(|seed| many_lives(seed, 12, &tally));
    println!("{tally}");
}

#[test]
fn a_seed_repeats_every_operation_in_its_order() {
    let run = || {
        let mut syncs = Vec::new();
        live(5, 120, |stretch| syncs.extend(stretch.moments.iter().map(|moment| (moment.op(), moment.is_sync()))));
        syncs
    };
    assert_eq!(run(), run());
}

#[test]
#[ignore = "runs for a share of BANYAN_SOAK_MINUTES"]
fn soak_crashes() {
    let tally = Tally::default();
    seeds::soak_on_all_cores(
        Share::Crashes,
        |seconds| tally.after(seconds),
        |seed| {
            let plan = Plan { calls: 8 + seed % 48, care: Care::Less, random: 12, recoveries: 40 };
            crash_everywhere(seed, &plan, &tally);
            many_lives(seed, 4, &tally);
        },
    );
}
