//! The process is killed at every operation and starts again; later the power goes. What the first process left
//! unflushed looks as if it were safe to the second one.

use banyan_log::disk::{Fate, MemDisk};
use banyan_sim::check::{Expected, check};
use banyan_sim::driver::{Driver, Stopped, open};
use banyan_sim::frail::Frail;
use banyan_sim::model::Model;
use banyan_sim::observe::observe;
use banyan_sim::predict::Call;
use banyan_sim::seeds::{self, Scene};
use serde_json::json;

/// False when what `first` does ended before the process could be killed.
fn kill_then_cut(seed: u64, last: u64, first: impl FnOnce(&mut Driver) -> Result<(), Stopped>) -> bool {
    let _scene = Scene(format!("BANYAN_SIM_SEED={seed}, killed after operation {last}"));
    let disk = MemDisk::crashable(seed ^ last);
    let process = Frail::killed_after(&disk, last);
    let expected = match Driver::open(&process, seed, Model::default()) {
        Ok(mut driver) => {
            let _ = first(&mut driver);
            driver.expected()
        }
        Err(_) => Expected::default(),
    };
    if !process.is_dead() {
        return false;
    }
    let store = open(&disk).unwrap();
    let found = observe(&store);
    store.close().unwrap();
    let done = expected.allows(&found);
    let mut second = Driver::open(&disk, seed, found).unwrap();
    if let Some((call, _)) = expected.under_way.filter(|_| !done) {
        // Whoever got no answer asks again.
        second.make(call).unwrap();
    }
    for fate in [Fate::LoseUnsynced, Fate::KeepAll, Fate::TornLast, Fate::Random(last)] {
        let _scene = Scene(format!("{fate:?}"));
        check(&open(&disk.after_crash(fate)).unwrap(), &second.expected());
    }
    true
}

fn kill_everywhere(seed: u64, calls: u64) -> u64 {
    (1..).take_while(|last| kill_then_cut(seed, *last, |driver| driver.make_calls(calls))).count() as u64
}

#[test]
fn what_is_acknowledged_after_a_kill_survives_a_power_cut() {
    let kills: u64 = seeds::everyday(1).into_iter().map(|seed| kill_everywhere(seed, 40)).sum();
    println!("{kills} kills");
    assert!(kills > 0);
}

#[test]
fn content_that_a_killed_process_left_behind_is_flushed_before_it_is_relied_on() {
    let store_content = |driver: &mut Driver| {
        driver.make(Call::new("session::ensure", json!({"session_id": "s", "title": "w"})))?;
        driver.reopen()?;
        let attachment = json!({"session_id": "s", "name": "n", "mime": "text/plain", "data": "aGVsbG8="});
        driver.make(Call::new("session::put-attachment", attachment))
    };
    let kills = (1..).take_while(|last| kill_then_cut(0, *last, store_content)).count();
    assert!(kills > 0);
}

#[test]
#[ignore = "runs for a share of BANYAN_SOAK_MINUTES"]
fn soak_kills_and_cuts() {
    let mut kills = 0;
    for seed in seeds::soak() {
        kills += kill_everywhere(seed, 20 + seed % 60);
        println!("seed {seed}: {kills} kills so far");
    }
}
