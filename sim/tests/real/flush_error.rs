//! The kernel says that a flush failed: nothing is acknowledged after it, and opening again recovers.

use std::process::Command;

use banyan_sim::binary::{self, Binary};
use banyan_sim::dice::Dice;
use banyan_sim::fleet::{Fleet, Refusal, a_write};
use banyan_sim::seeds::{self, Scene, Share, skipped};

fn possible() -> Result<(), String> {
    binary::find()?;
    let inject = ["-f", "-o", "/dev/null", "-e", "inject=fdatasync:error=EIO:when=1", "true"];
    let output = Command::new("strace").args(inject).output().map_err(|error| format!("strace: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}

/// Gives how many calls were acknowledged. strace counts the flushes of each thread by itself.
fn fail_flushes(seed: u64, rounds: u64) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut dice = Dice::new(seed);
    let mut fleet = Fleet::new(12, seed);
    let mut acknowledged = 0;
    for round in 0..rounds {
        let when = 2 + dice.below(40);
        let _scene = Scene(format!("BANYAN_SIM_SEED={seed}, round {round}, flush {when} of a thread fails"));
        let inject = format!("inject=fdatasync:error=EIO:when={when}");
        let strace =
            ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", &inject];
        let mut binary = Binary::start(&data, &strace).unwrap();
        let outcome = fleet.run(&mut binary, Refusal::Uncertain, |_, _| false);
        assert!(!outcome.refusals.is_empty(), "a flush did fail");
        let (function, request) = a_write();
        let refused = binary.ask(function, &request).expect_err("writing has stopped");
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(message.contains("failed flush") && message.contains("restart"), "{refused}");
        binary
            .ask("session::list", &serde_json::json!({}))
            .unwrap_or_else(|error| panic!("reading goes on: {error}"));
        acknowledged += outcome.acknowledged;
        assert!(!binary.stop(), "a process that could not write says so when it ends");
        fleet.check(&data);
    }
    acknowledged
}

#[test]
fn a_failed_flush_is_never_acknowledged_and_reopening_recovers() {
    if let Err(why) = possible() {
        return skipped("flush errors", &why);
    }
    for seed in seeds::everyday(1) {
        println!("{} calls acknowledged", fail_flushes(seed, 4));
    }
}

#[test]
#[ignore = "runs for a share of BANYAN_SOAK_MINUTES"]
fn soak_flush_errors() {
    if let Err(why) = possible() {
        return skipped("flush errors", &why);
    }
    let mut acknowledged = 0;
    for seed in seeds::soak(Share::Real) {
        acknowledged += fail_flushes(seed, 20);
        println!("seed {seed}: {acknowledged} calls acknowledged so far");
    }
}
