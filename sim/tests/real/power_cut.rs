//! The power of a real ext4 goes under load: the kernel forgets what was not flushed.

use banyan_sim::binary::{self, Binary};
use banyan_sim::dice::Dice;
use banyan_sim::fleet::{Fleet, Refusal};
use banyan_sim::loop_fs::LoopFs;
use banyan_sim::seeds::{self, Scene, Share, skipped};

/// Gives how many calls were acknowledged.
fn cut_again_and_again(fs: &LoopFs, seed: u64, workers: usize, rounds: u64) -> u64 {
    let data = fs.path().join(format!("data-{seed}"));
    let mut dice = Dice::new(seed);
    let mut fleet = Fleet::new(workers, seed);
    let mut acknowledged = 0;
    for round in 0..rounds {
        let _scene = Scene(format!("BANYAN_SIM_SEED={seed}, power cut {round}"));
        let mut binary = Binary::start(&data, &[]).unwrap();
        let cut_after = dice.below(1200) as u64;
        let mut on = true;
        let outcome = fleet.run(&mut binary, Refusal::Uncertain, |_, outcome| {
            if on && outcome.acknowledged >= cut_after {
                fs.cut_power().unwrap();
                on = false;
            }
            // The workers do not know, and go on until they are refused.
            false
        });
        assert!(!outcome.refusals.is_empty(), "without power every write is refused");
        acknowledged += outcome.acknowledged;
        drop(binary);
        fs.unmount().unwrap();
        fs.mount().unwrap();
        fleet.check(&data);
    }
    std::fs::remove_dir_all(&data).unwrap();
    acknowledged
}

fn file_system() -> Option<LoopFs> {
    let made = binary::find().and_then(|_| LoopFs::new(512)).and_then(|fs| {
        fs.cut_power()?;
        fs.unmount()?;
        fs.mount()?;
        Ok(fs)
    });
    made.map_err(|why| skipped("power cut", &why)).ok()
}

#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    let Some(fs) = file_system() else { return };
    let rounds = 4;
    for seed in seeds::everyday(1) {
        println!("{} calls acknowledged over {rounds} power cuts", cut_again_and_again(&fs, seed, 24, rounds));
    }
}

#[test]
#[ignore = "runs for a share of BANYAN_SOAK_MINUTES"]
fn soak_power_cuts() {
    let Some(fs) = file_system() else { return };
    let mut acknowledged = 0;
    for seed in seeds::soak(Share::Real) {
        acknowledged += cut_again_and_again(&fs, seed, 8 + (seed % 50) as usize, 20);
        println!("seed {seed}: {acknowledged} calls acknowledged so far");
    }
}
