//! `kill -9` under load, again and again on one data directory.

use banyan_sim::binary::{self, Binary};
use banyan_sim::dice::Dice;
use banyan_sim::fleet::{Fleet, Refusal};
use banyan_sim::seeds::{self, Scene, Share, skipped};

/// Gives how many calls were acknowledged.
fn kill_again_and_again(seed: u64, workers: usize, rounds: u64) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut dice = Dice::new(seed);
    let mut fleet = Fleet::new(workers, seed);
    let mut acknowledged = 0;
    for round in 0..rounds {
        let _scene = Scene(format!("BANYAN_SIM_SEED={seed}, kill {round}"));
        let mut binary = Binary::start(&data, &[]).unwrap();
        let killed_after = dice.below(1500) as u64;
        let outcome = fleet.run(&mut binary, Refusal::Uncertain, |binary, outcome| {
            let now = outcome.acknowledged >= killed_after;
            if now {
                binary.kill();
            }
            now
        });
        assert!(outcome.refusals.is_empty(), "{:?}", outcome.refusals);
        acknowledged += outcome.acknowledged;
        drop(binary);
        fleet.check(&data);
    }
    acknowledged
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    if let Err(why) = binary::find() {
        return skipped("kill -9", &why);
    }
    let rounds = 5;
    for seed in seeds::everyday(1) {
        println!("{} calls acknowledged over {rounds} kills", kill_again_and_again(seed, 24, rounds));
    }
}

#[test]
#[ignore = "runs for a share of BANYAN_SOAK_MINUTES"]
fn soak_kill_9() {
    if let Err(why) = binary::find() {
        return skipped("kill -9", &why);
    }
    let mut acknowledged = 0;
    for seed in seeds::soak(Share::Real) {
        acknowledged += kill_again_and_again(seed, 8 + (seed % 50) as usize, 20);
        println!("seed {seed}: {acknowledged} calls acknowledged so far");
    }
}
