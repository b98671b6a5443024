//! Opening a directory of very many sessions, in a fresh process.

use std::cell::RefCell;

use crate::cold_session::millis;
use crate::machine::{self, Forgotten};
use crate::probe::{self, Probed};
use crate::report::{Row, Section};
use crate::rounds::{Measured, Turn, interleaved, measured};
use crate::workbench::{Outcome, Workbench};

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let directory = bench.directory()?;
    let wanted = bench.pick(Forgotten::Everything, Forgotten::Contents);
    let cached: RefCell<Vec<Probed>> = RefCell::default();
    let forgotten = RefCell::new(wanted);
    probe::first_list(&directory.dir)?;
    let turns: Vec<Turn<'_>> = vec![
        Box::new(|| {
            let probed = probe::first_list(&directory.dir)?;
            cached.borrow_mut().push(probed);
            Ok(probed.open)
        }),
        Box::new(|| {
            // Opening reads the index and no session's file.
            *forgotten.borrow_mut() = machine::forget(&directory.dir.join(".banyan"), wanted)?;
            let open = probe::first_list(&directory.dir)?.open;
            // The next one finds everything in the page cache again.
            probe::first_list(&directory.dir)?;
            Ok(open)
        }),
    ];
    let taken = interleaved(bench.rounds(), turns)?;
    let [warm, cold] = taken.as_slice() else { return Err("not everything was measured".into()) };
    let cached = cached.take();
    let of = |figure: fn(&Probed) -> f64| measured(cached.iter().map(figure).collect());
    let (page, resident_open, resident) = (of(|it| it.page)?, of(|it| it.resident_open)?, of(|it| it.resident)?);
    std::fs::remove_dir_all(directory.dir.join(".banyan/index"))?;
    let rebuilt = probe::first_list(&directory.dir)?;
    let sessions = directory.sessions;
    let open = |how: &str, measured: &Measured| {
        Row::shown(format!("opening a directory of {sessions} sessions {how}"), millis(measured))
            .target("<= 2 s", measured.median <= 2_000_000.0)
    };
    Ok(Section {
        rows: vec![
            open("in a fresh process", warm),
            open(&format!("after {}", forgotten.borrow().as_str()), cold),
            Row::shown("resident memory once it is open", mebibytes(&resident_open))
                .target("<= 400 MiB", resident_open.highest <= 400.0 * 1024.0),
            Row::shown("resident memory after the first page of a list", mebibytes(&resident))
                .target("<= 400 MiB", resident.highest <= 400.0 * 1024.0),
            Row::shown("the first page of a list after that", millis(&page)),
            Row::shown(
                format!("opening {sessions} sessions without an index, once"),
                format!("{:.1} s, then {:.0} MiB", rebuilt.open / 1e6, rebuilt.resident_open / 1024.0),
            ),
            Row::shown(
                format!("making {sessions} sessions of one message, buffered"),
                format!("{:.0} sessions/s", directory.per_second()),
            ),
        ],
        method: vec![format!(
            "{sessions} sessions, each created with two metadata keys and given one message by 64 tasks, answers leaving \
             after the write: {:.0} s, of which closing the store took {:.1} s.",
            directory.took.as_secs_f64(),
            directory.closing.as_secs_f64()
        )],
        losing: vec![],
    })
}

fn mebibytes(measured: &Measured) -> String {
    let Measured { median, lowest, highest } = measured;
    format!("{:.0} MiB ({:.0} to {:.0})", median / 1024.0, lowest / 1024.0, highest / 1024.0)
}
