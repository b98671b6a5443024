//! The first page of a long session that nobody has looked at since the process started.

use std::cell::RefCell;

use crate::long_session::ENTRIES;
use crate::machine::{self, Forgotten};
use crate::probe;
use crate::report::{Row, Section};
use crate::rounds::{Measured, Turn, interleaved, measured};
use crate::workbench::{Outcome, Workbench};

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let long = bench.long_session()?;
    // A quick run disturbs nobody else's files.
    let wanted = bench.pick(Forgotten::Everything, Forgotten::Contents);
    let (cached_open, forgotten_open) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let forgotten = RefCell::new(wanted);
    probe::first_messages(&long.dir, &long.id)?;
    let turns: Vec<Turn<'_>> = vec![
        Box::new(|| {
            let probed = probe::first_messages(&long.dir, &long.id)?;
            cached_open.borrow_mut().push(probed.open);
            Ok(probed.open + probed.page)
        }),
        Box::new(|| {
            *forgotten.borrow_mut() = machine::forget(&long.dir, wanted)?;
            let probed = probe::first_messages(&long.dir, &long.id)?;
            forgotten_open.borrow_mut().push(probed.open);
            // The next one finds the file in the page cache again.
            probe::first_messages(&long.dir, &long.id)?;
            Ok(probed.open + probed.page)
        }),
        Box::new(|| {
            // Left behind by a clean close; a store that was killed may have none. This process makes it again.
            std::fs::remove_dir_all(long.dir.join(".banyan/index/trees"))?;
            let probed = probe::first_messages(&long.dir, &long.id)?;
            Ok(probed.open + probed.page)
        }),
    ];
    let taken = interleaved(bench.rounds(), turns)?;
    let [cached, read, scanned] = taken.as_slice() else { return Err("not everything was measured".into()) };
    let work = format!(
        "opening the store and the first page of a cold session, {ENTRIES} entries, {:.0} MB",
        long.bytes as f64 / 1e6
    );
    let row = |how: &str, measured: &Measured| {
        Row::shown(format!("{work}, {how}"), millis(measured)).target("<= 100 ms", measured.median <= 100_000.0)
    };
    let how = forgotten.borrow().as_str();
    Ok(Section {
        rows: vec![
            row("in a fresh process", cached),
            row(&format!("after {how}"), read),
            row("in a fresh process, without the image of its tree", scanned),
        ],
        method: vec![format!(
            "Cold session: of this, opening the store took {} in a fresh process, and {} after {how}.",
            millis(&measured(cached_open.take())?),
            millis(&measured(forgotten_open.take())?)
        )],
        losing: vec![],
    })
}

pub(crate) fn millis(measured: &Measured) -> String {
    let Measured { median, lowest, highest } = measured;
    format!("{:.1} ms ({:.1} to {:.1})", median / 1e3, lowest / 1e3, highest / 1e3)
}
