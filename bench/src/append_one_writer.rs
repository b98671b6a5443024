//! Durable appends of 1 KiB by one writer: how much more than the flush it costs.

use banyan::block_on;

use crate::raw::RawFile;
use crate::report::{Row, Section};
use crate::rounds::{Latencies, Measured, Turn, interleaved};
use crate::workbench::{Outcome, Workbench};
use crate::{session, sqlite};

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let calls = bench.pick(2000, 500);
    let dir = bench.scratch()?;
    let store = session::open(&dir.path().join("store"))?;
    let request = session::append(&session::create(&store)?, session::user(session::text(0, 1024)));
    let bytes = vec![b'x'; 1024];
    let mut growing = RawFile::growing(&dir.path().join("growing"))?;
    let mut prepared = RawFile::prepared(&dir.path().join("prepared"))?;
    let peer = sqlite::open(dir.path())?;
    let body = sqlite::body(0)?;
    let turns: Vec<Turn<'_>> = vec![
        Box::new(|| {
            p50(calls, || {
                block_on(store.append(request.clone()))?;
                Ok(())
            })
        }),
        Box::new(|| p50(calls, || growing.write(&bytes))),
        Box::new(|| p50(calls, || prepared.write(&bytes))),
        Box::new(|| p50(calls, || sqlite::insert(&peer, 0, &body))),
    ];
    let measured = interleaved(bench.rounds(), turns)?;
    store.close()?;
    let [banyan, growing, prepared, peer] = measured.as_slice() else {
        return Err("not everything was measured".into());
    };
    let work = "durable append, one writer, p50";
    let ratio = banyan.median / growing.median;
    let row = |peer: &str, measured: &Measured| {
        Row::shown(format!("{work}, beside {peer}"), micros(banyan))
            .beside(micros(measured))
            .ratio(banyan.median / measured.median)
    };
    Ok(Section {
        rows: vec![
            row("a raw write and `fdatasync` at the end of a plain file", growing).target("<= 1.6x", ratio <= 1.6),
            row("a raw write and `fdatasync` in a prepared file", prepared),
            row("SQLite, one row a transaction", peer),
        ],
        ..Section::default()
    })
}

fn p50(calls: usize, call: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    Ok(Latencies::of(calls, call)?.percentile(0.5))
}

pub(crate) fn micros(measured: &Measured) -> String {
    let Measured { median, lowest, highest } = measured;
    format!("{median:.0} us ({lowest:.0} to {highest:.0})")
}
