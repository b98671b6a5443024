//! The process is killed at every operation and starts again; later the power goes. What the first process left
//! unflushed looks as if it were safe to the second one.

use banyan_log::disk::{Fate, MemDisk, Mishap, Moment};
use banyan_sim::check::Expected;
use banyan_sim::driver::{Driver, Stopped, open};
use banyan_sim::observe::observe;
use banyan_sim::predict::Call;
use banyan_sim::reopen::{Care, Reopener, Tally};
use banyan_sim::seeds::{self, Scene, Share};
use serde_json::json;

/// Tells whether the call under way was done by the process that was killed.
fn kill_then_cut(seed: u64, moment: Moment, expected: &Expected, reopener: &mut Reopener<'_>) -> bool {
    let _scene = Scene(format!("BANYAN_SIM_SEED={seed}, killed before operation {}", moment.op()));
    let op = moment.op();
    let disk = moment.after_kill();
    let store = open(&disk).unwrap();
    let found = observe(&store);
    store.close().unwrap();
    drop(store);
    let done = expected.allows(&found);
    let mut second = Driver::open(&disk, seed, found).unwrap();
    if let Some((call, _)) = expected.under_way.clone().filter(|_| !done) {
        // Whoever got no answer asks again.
        second.make(call).unwrap();
    }
    reopener.expect(second.expected());
    let random = (0..9).map(|n| Fate::Random(op.wrapping_mul(9) + n));
    for fate in [Fate::LoseUnsynced, Fate::KeepAll, Fate::TornLast].into_iter().chain(random) {
        let _scene = Scene(format!("{fate:?}"));
        reopener.look(&disk.after_crash(fate));
    }
    done
}

/// Kills the process before every operation of what it does.
fn kill_everywhere(seed: u64, first: impl FnOnce(&mut Driver) -> Result<(), Stopped>, care: Care, tally: &Tally) {
    let mut driver = Driver::watched(&MemDisk::crashable(seed), seed, Mishap::Kill);
    first(&mut driver).unwrap();
    let mut reopener = Reopener::new(tally, care, Expected::default());
    for stretch in driver.stretches() {
        let mut done_before = false;
        for moment in stretch.moments {
            let done = kill_then_cut(seed, moment, &stretch.expected, &mut reopener);
            assert!(done || !done_before, "BANYAN_SIM_SEED={seed}: the call under way was there, and is gone");
            done_before = done;
        }
    }
}

#[test]
fn what_is_acknowledged_after_a_kill_survives_a_power_cut() {
    let tally = Tally::default();
    for seed in seeds::everyday(1) {
        kill_everywhere(seed, |driver| driver.make_calls(40), Care::Same, &tally);
    }
    println!("{tally}");
    assert!(tally.points() > 0);
}

#[test]
fn content_that_a_killed_process_left_behind_is_flushed_before_it_is_relied_on() {
    let store_content = |driver: &mut Driver| {
        driver.make(Call::new("session::ensure", json!({"session_id": "s", "title": "w"})))?;
        driver.reopen()?;
        let attachment = json!({"session_id": "s", "name": "n", "mime": "text/plain", "data": "aGVsbG8="});
        driver.make(Call::new("session::put-attachment", attachment))
    };
    let tally = Tally::default();
    kill_everywhere(0, store_content, Care::Same, &tally);
    assert!(tally.points() > 0);
}

#[test]
#[ignore = "runs for a share of BANYAN_SOAK_MINUTES"]
fn soak_kills_and_cuts() {
    let tally = Tally::default();
    seeds::soak_on_all_cores(
        Share::Kills,
        |seconds| tally.after(seconds),
        |seed| kill_everywhere(seed, |driver| driver.make_calls(20 + seed % 60), Care::Less, &tally),
    );
}
