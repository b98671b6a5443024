//! A file system of 64 MB fills up, and gets room again.

use banyan_sim::binary::{self, Binary};
use banyan_sim::fleet::{Fleet, Refusal, a_write};
use banyan_sim::loop_fs::LoopFs;
use banyan_sim::observe::observe_with;
use banyan_sim::seeds::{self, Scene, Share, skipped};

fn fill_and_free(seed: u64, rounds: u64) -> Result<u64, String> {
    binary::find()?;
    let fs = LoopFs::new(64)?;
    let (data, filler, rest) = (fs.path().join("data"), fs.path().join("filler"), fs.path().join("rest"));
    let mut fleet = Fleet::new(16, seed).with_texts(2000, 60_000);
    let mut refused = 0;
    for round in 0..rounds {
        let _scene = Scene(format!("BANYAN_SIM_SEED={seed}, filled up {round} times before"));
        std::fs::write(&filler, vec![7; 24 << 20]).map_err(|error| error.to_string())?;
        let mut binary = Binary::start(&data, &[])?;
        // Every worker goes on until there is no room for what it wants.
        let outcome = fleet.run(&mut binary, Refusal::NothingWritten, |_, _| false);
        for (function, refusal) in &outcome.refusals {
            let message = refusal["message"].as_str().unwrap_or_default();
            assert!(message.contains("the disk is full"), "{function}: {refusal}");
        }
        refused += outcome.refusals.len() as u64;
        let found = observe_with(&mut |function, request| {
            binary.ask(function, &request).unwrap_or_else(|error| panic!("reading goes on: {function}: {error}"))
        });
        fleet.compare(&found);
        // Not a byte is left, and whoever starts it then, without what can be rebuilt, can read all the same.
        binary.kill();
        std::fs::remove_dir_all(data.join(".banyan/index")).map_err(|error| error.to_string())?;
        let _ = std::fs::write(&rest, vec![7; 64 << 20]);
        let mut binary = Binary::start(&data, &[])?;
        let found = observe_with(&mut |function, request| {
            binary
                .ask(function, &request)
                .unwrap_or_else(|error| panic!("it opens when it is full: {function}: {error}"))
        });
        fleet.compare(&found);
        std::fs::remove_file(&rest).map_err(|error| error.to_string())?;
        std::fs::remove_file(&filler).map_err(|error| error.to_string())?;
        let (function, request) = a_write();
        binary.ask(function, &request).unwrap_or_else(|error| panic!("there is room again: {error}"));
        let outcome = fleet.run(&mut binary, Refusal::NothingWritten, |_, outcome| outcome.acknowledged >= 200);
        assert!(outcome.refusals.is_empty(), "there is room again: {:?}", outcome.refusals);
        assert!(binary.stop(), "a clean stop");
        fleet.check(&data);
        std::fs::remove_dir_all(&data).map_err(|error| error.to_string())?;
        fleet = Fleet::new(16, seed + round + 1).with_texts(2000, 60_000);
    }
    Ok(refused)
}

#[test]
fn a_full_file_system_refuses_and_works_again_when_there_is_room() {
    for seed in seeds::everyday(1) {
        match fill_and_free(seed, 1) {
            Ok(refused) => println!("{refused} calls refused"),
            Err(why) => skipped("small disk", &why),
        }
    }
}

#[test]
#[ignore = "runs for a share of BANYAN_SOAK_MINUTES"]
fn soak_small_disk() {
    for seed in seeds::soak(Share::Real) {
        match fill_and_free(seed, 5) {
            Ok(refused) => println!("seed {seed}: {refused} calls refused"),
            Err(why) => return skipped("small disk", &why),
        }
    }
}
