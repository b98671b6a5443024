//! Durable appends of 1 KiB by 64 writers, each on a session of its own.

use std::cell::RefCell;
use std::time::Duration;

use banyan::block_on;

use crate::report::{Row, Section};
use crate::rounds::{Latencies, Measured, Turn, interleaved};
use crate::workbench::{Outcome, Workbench};
use crate::writers::{Done, WRITERS, While, as_tasks, as_threads};
use crate::{raw, session, sqlite, sqlite_group};

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let time = While {
        before: Duration::from_millis(300),
        counted: bench.pick(Duration::from_secs(3), Duration::from_secs(1)),
    };
    let (in_tasks, in_threads) = (RefCell::new(Latencies::default()), RefCell::new(Latencies::default()));
    let turns: Vec<Turn<'_>> = vec![
        Box::new(|| noted(tasks(bench, time)?, &in_tasks)),
        Box::new(|| noted(threads(bench, time)?, &in_threads)),
        Box::new(|| Ok(sqlite::one_connection(bench.scratch()?.path(), time)?.per_second)),
        Box::new(|| Ok(sqlite::connection_each(bench.scratch()?.path(), time)?.per_second)),
        Box::new(|| Ok(sqlite_group::threads(bench.scratch()?.path(), time)?.per_second)),
        Box::new(|| Ok(sqlite_group::tasks(bench.scratch()?.path(), time)?.per_second)),
        Box::new(|| raw::batched(bench.scratch()?.path(), WRITERS, time)),
    ];
    let measured = interleaved(bench.rounds(), turns)?;
    let [tasks, threads, shared, each, group_threads, group_tasks, floor] = measured.as_slice() else {
        return Err("not everything was measured".into());
    };
    let (best, how, latencies) = match tasks.median >= threads.median {
        true => (tasks, "64 tasks on two threads", &in_tasks),
        false => (threads, "64 threads", &in_threads),
    };
    let mut latencies = latencies.borrow_mut();
    let plain = better(shared, each);
    let group = better(group_threads, group_tasks);
    let row = |peer: &str, measured: &Measured, least: f64, target: &str| {
        let ratio = best.median / measured.median;
        Row::shown(format!("durable append, {WRITERS} writers on {WRITERS} sessions, beside {peer}"), rate(best))
            .beside(rate(measured))
            .ratio(ratio)
            .target(target, ratio >= least)
    };
    Ok(Section {
        rows: vec![
            row("SQLite, one row a transaction", plain, 5.0, ">= 5x"),
            row("SQLite with group commit", group, 2.0, ">= 2x"),
            row("the floor: 64 entries a flush into a prepared file", floor, 0.15, ">= 0.15x"),
        ],
        method: vec![
            format!(
                "{WRITERS} writers: judged as {how} (p50 {:.0} us, p99 {:.0} us). As tasks {}, as threads {}.",
                latencies.percentile(0.5),
                latencies.percentile(0.99),
                rate(tasks),
                rate(threads)
            ),
            format!(
                "SQLite (WAL, `synchronous=FULL`, no index, messages already JSON), {WRITERS} threads: one connection \
                 behind a lock {}, a connection each {}. With group commit, one thread writes what is queued in one \
                 transaction: for {WRITERS} threads {}, for {WRITERS} tasks {}. The better one of each pair is in the table.",
                rate(shared),
                rate(each),
                rate(group_threads),
                rate(group_tasks)
            ),
        ],
        losing: vec![],
    })
}

fn noted(mut done: Done, latencies: &RefCell<Latencies>) -> Outcome<f64> {
    latencies.borrow_mut().append(std::mem::take(&mut done.latencies));
    Ok(done.per_second)
}

fn better<'a>(one: &'a Measured, other: &'a Measured) -> &'a Measured {
    if one.median >= other.median { one } else { other }
}

fn rate(measured: &Measured) -> String {
    let Measured { median, lowest, highest } = measured;
    format!("{median:.0}/s ({lowest:.0} to {highest:.0})")
}

fn tasks(bench: &Workbench, time: While) -> Outcome<Done> {
    let dir = bench.scratch()?;
    let store = session::open(dir.path())?;
    let done = as_tasks(time, 2, |writer| {
        let store = store.clone();
        let request = session::append(&session::create(&store)?, session::user(session::text(writer, 1024)));
        Ok(move || {
            let (store, request) = (store.clone(), request.clone());
            async move {
                store.append(request).await?;
                Ok(())
            }
        })
    })?;
    store.close()?;
    Ok(done)
}

fn threads(bench: &Workbench, time: While) -> Outcome<Done> {
    let dir = bench.scratch()?;
    let store = session::open(dir.path())?;
    let done = as_threads(time, |writer| {
        let store = store.clone();
        let request = session::append(&session::create(&store)?, session::user(session::text(writer, 1024)));
        Ok(move || {
            block_on(store.append(request.clone()))?;
            Ok(())
        })
    })?;
    store.close()?;
    Ok(done)
}
