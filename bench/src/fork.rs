//! Forking at the last of 100,000 entries.

use std::cell::RefCell;
use std::os::unix::fs::MetadataExt;

use banyan::block_on;
use banyan_model::{ForkRequest, MessagesRequest, SessionId};

use crate::append_one_writer::micros;
use crate::cold_session::millis;
use crate::long_session::{ENTRIES, file};
use crate::raw::RawFile;
use crate::report::{Row, Section};
use crate::rounds::{Latencies, Turn, interleaved};
use crate::session;
use crate::workbench::{Outcome, Workbench};

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let calls = bench.pick(200, 50);
    let long = bench.long_session()?;
    let store = session::open(&long.dir)?;
    let request = ForkRequest { session_id: long.id.clone(), entry_id: long.last_entry.clone(), title: None };
    block_on(store.messages(MessagesRequest::of(long.id.clone())))?;
    let scratch = bench.scratch()?;
    let mut floor = RawFile::growing(&scratch.path().join("floor"))?;
    let bytes = vec![b'x'; 512];
    let made: RefCell<Vec<SessionId>> = RefCell::default();
    let turns: Vec<Turn<'_>> = vec![
        Box::new(|| {
            let mut took = Latencies::of(calls, || {
                made.borrow_mut().push(block_on(store.fork(request.clone()))?.session_id);
                Ok(())
            })?;
            Ok(took.percentile(0.5))
        }),
        Box::new(|| Ok(Latencies::of(calls, || floor.write(&bytes))?.percentile(0.5))),
        Box::new(|| {
            let fork = made.borrow().last().ok_or("there is no fork")?.clone();
            let mut took = Latencies::default();
            took.time(|| Ok(block_on(store.messages(MessagesRequest::of(fork)))?))?;
            Ok(took.percentile(0.5))
        }),
    ];
    let taken = interleaved(bench.rounds(), turns)?;
    store.close()?;
    let [fork, floor, first] = taken.as_slice() else { return Err("not everything was measured".into()) };
    let (mut apparent, mut blocks) = (0, 0);
    for fork in made.borrow().iter() {
        let stat = std::fs::metadata(file(&long.dir, fork))?;
        (apparent, blocks) = (stat.len().max(apparent), (stat.blocks() * 512).max(blocks));
    }
    Ok(Section {
        rows: vec![
            Row::shown(format!("fork at entry {ENTRIES}, p50"), micros(fork))
                .beside(format!("a raw write and `fdatasync` {}", micros(floor)))
                .ratio(fork.median / floor.median)
                .target("<= 1 ms", fork.median <= 1000.0),
            Row::shown("the fork's file, the largest of all", format!("{apparent} bytes, {blocks} on disk"))
                .target("<= 4 KiB", apparent <= 4096 && blocks <= 4096),
            Row::shown("the first page of a fresh fork", millis(first)),
        ],
        ..Section::default()
    })
}
