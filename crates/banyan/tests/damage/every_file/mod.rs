//! Every kind of file, every region: one damage each, and the outcome that `docs/on-disk.md` states for it.
//!
//! The kinds come from one list ([`kinds`]); a file of a directory that is of no kind fails the test, and so does a kind
//! without a row in the table. `BANYAN_DAMAGE_ROUNDS` is how many damages are tried, evenly spread; `all` tries each.

mod content;
mod damages;
mod kinds;
mod samples;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use banyan::verify::{Severity, verify};
use banyan::{Banyan, Options};
use serde_json::json;

use self::content::{Content, Difference};
use self::damages::{Case, cases};
use self::kinds::Kind;
use self::samples::{Sample, samples};
use self::table::{Outcome, table};
use crate::support::*;

/// How many damages are tried by `make test`.
const ROUNDS: usize = 2000;

#[test]
fn every_damage_has_the_outcome_that_the_table_states() {
    let table = table();
    let mut failures: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut tried = BTreeSet::new();
    for sample in &samples() {
        let all = cases(sample);
        let rounds = match std::env::var("BANYAN_DAMAGE_ROUNDS").as_deref() {
            Ok("all") => all.len(),
            Ok(rounds) => rounds.parse().expect("BANYAN_DAMAGE_ROUNDS is a number, or `all`"),
            Err(_) => ROUNDS * sample.share / 100,
        };
        let chosen = spread(&all, rounds);
        tried.extend(chosen.iter().map(|case| (case.kind, case.damage.column())));
        for (case, failure) in failing(sample, &chosen, &table) {
            let row = format!("{} / {}", case.kind.name(), case.damage.column());
            failures.entry(row).or_default().push(format!("{} {case:?}: {failure}", sample.name));
        }
    }
    let report: Vec<String> = failures
        .iter()
        .map(|(row, all)| {
            format!("{row}: {} times, for example\n    {}", all.len(), all[..all.len().min(3)].join("\n    "))
        })
        .collect();
    assert!(report.is_empty(), "{}", report.join("\n"));
    let missed: Vec<_> = table.keys().filter(|key| !tried.contains(*key)).collect();
    assert!(missed.is_empty(), "rows of docs/on-disk.md that no damage tried: {missed:?}");
}

/// Tries cases on several threads, because each one waits for the disk most of the time.
fn failing<'c>(
    sample: &Sample,
    cases: &[&'c Case],
    table: &BTreeMap<(Kind, &'static str), Outcome>,
) -> Vec<(&'c Case, String)> {
    const THREADS: usize = 8;
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let expected = table.get(&(case.kind, case.damage.column()));
            let tried = match expected {
                Some(expected) => outcome(sample, case, *expected),
                None => Err("docs/on-disk.md states no outcome for it".to_owned()),
            };
            if let Err(failure) = tried {
                failures.lock().expect("failures").push((*case, failure));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
    failures.into_inner().expect("failures")
}

/// Some of the cases: of every kind and damage a first one, and the rest evenly.
fn spread(all: &[Case], rounds: usize) -> Vec<&Case> {
    let mut seen = BTreeSet::new();
    let step = (all.len() / rounds.max(1)).max(1);
    let wanted = |(n, case): &(usize, &Case)| seen.insert((case.kind, case.damage.column())) || n % step == 0;
    all.iter().enumerate().filter(wanted).map(|(_, case)| case).collect()
}

/// Applies one damage to a copy of a sample, and compares what happens with what the table states.
fn outcome(sample: &Sample, case: &Case, expected: Outcome) -> Result<(), String> {
    let dir = tempfile::tempdir().expect("a directory");
    case.apply(sample, dir.path());
    let before = files_in(dir.path());
    let report = verify(dir.path(), &());
    if files_in(dir.path()) != before {
        return Err("verify changed something".into());
    }
    let warnings = Warnings::default();
    let options = Options { progress: Box::new(warnings.clone()), ..Options::default() };
    let store = match Banyan::open(dir.path(), options) {
        Ok(store) => store,
        Err(error) if expected == Outcome::Refused => {
            let after = files_in(dir.path());
            let kept = before
                .iter()
                .all(|(name, bytes)| name.starts_with(".banyan/lock") || after.get(name) == Some(bytes));
            return if kept && report.is_err() {
                Ok(())
            } else {
                Err(format!("refused ({error}), but changed or not by verify"))
            };
        }
        Err(error) => return Err(format!("refused: {error}")),
    };
    let report = report.map_err(|error| format!("verify refused: {error}"))?;
    let found = Content::of(&store, &sample.content.names());
    store.close().map_err(|error| format!("closing: {error}"))?;
    drop(store);
    let difference = sample.content.difference(&found);
    let reported = !report.is_sound() && !warnings.all().is_empty();
    let noted = reported || report.findings.iter().any(|finding| finding.severity == Severity::Note);
    let again = verify(dir.path(), &()).map_err(|error| format!("verify, later: {error}"))?;
    let described = || {
        format!(
            "{difference:?}, reported: {reported}, warnings: {:?}, findings: {:?}",
            warnings.all(),
            report.findings
        )
    };
    if let Difference::Wrong(what) = &difference {
        return Err(format!("served what was never written: {what}"));
    }
    let holds = match expected {
        Outcome::Unnoticed => difference == Difference::None && again.is_sound(),
        Outcome::Rebuilt => difference == Difference::None && again.is_sound(),
        Outcome::Repaired => difference == Difference::None && (noted || report.is_sound()),
        Outcome::Contained => match &difference {
            Difference::None => true,
            Difference::Sessions(sessions) => {
                reported && !again.is_sound() && sessions.iter().all(|session| case.concerns(sample, session))
            }
            Difference::Wrong(_) => false,
        },
        Outcome::Lost => match &difference {
            Difference::None => true,
            Difference::Sessions(_) => reported && !again.is_sound(),
            Difference::Wrong(_) => false,
        },
        Outcome::Refused => return Err(format!("opened: {}", described())),
    };
    if !holds {
        return Err(format!("{}; {}", expected.name(), described()));
    }
    goes_on(dir.path(), &found, &sample.content.names())
}

/// Opened once more, the store says the same, and takes a new session.
fn goes_on(dir: &Path, found: &Content, names: &[String]) -> Result<(), String> {
    let store = Banyan::open(dir, Options::default()).map_err(|error| format!("opening again: {error}"))?;
    let again = Content::of(&store, names);
    if again != *found {
        return Err(format!("opened again, it differs: {:?}", found.difference(&again)));
    }
    let session = json!({"session_id": "new"});
    door(&store).call("ensure", session).map_err(|refusal| format!("a new session: {refusal:?}"))?;
    let message = json!({"session_id": "new", "message": user("new")});
    door(&store).call("append", message).map_err(|refusal| format!("an append: {refusal:?}"))?;
    match door(&store).path(&json!("new")) == ["new"] {
        true => Ok(()),
        false => Err("a new session does not work".into()),
    }
}

/// The kinds of all files, so that a new one is noticed.
#[test]
fn every_file_of_a_directory_is_of_a_known_kind() {
    for sample in samples() {
        for name in sample.files.keys() {
            assert!(Kind::of(name).is_some(), "{}: {name} is of no kind in kinds.rs", sample.name);
        }
    }
}
