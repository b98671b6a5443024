//! Coming back to a reply that grew by many small texts, beside a fresh start of the same stream.

use std::net::SocketAddr;

use banyan::{Banyan, Durability, Options, block_on};
use banyan_model::{EntryId, ExtendMessageRequest, SessionId, SessionStatus, SetStatusRequest};

use crate::append_one_writer::micros;
use crate::http_client::Connection;
use crate::http_server::Server;
use crate::report::{Row, Section};
use crate::rounds::{Latencies, Turn, interleaved};
use crate::session;
use crate::workbench::{Outcome, Workbench};

const GROWTHS: usize = 20_000;
const TEXT: &str = "word ";

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let dir = bench.scratch()?;
    let store = session::open(dir.path())?;
    let id = session::create(&store)?;
    let entry = block_on(store.append(session::append(&id, session::assistant(String::new()))))?.entry_id;
    store.close()?;
    drop(store);
    // Where each stream was left, before anything was added.
    let events = format!("/v1/sessions/{id}/events?deltas=1");
    let history = format!("/v1/sessions/{id}/history?stream=1&deltas=1");
    let server = Server::start(dir.path())?;
    let left = [
        last_id(server.address, &format!("{events}&snapshot=1"), "banyan::snapshot-end")?,
        last_id(server.address, &history, "history::ready")?,
    ];
    server.stop()?;
    grow(dir.path(), &id, &entry)?;

    let server = Server::start(dir.path())?;
    server.wait_for_index()?;
    let at = server.address;
    let calls = bench.pick(10, 3);
    let paths = [
        (format!("{events}&snapshot=1"), "banyan::snapshot-end"),
        (format!("{events}&after={}", left[0]), "session::status-changed"),
        (history.clone(), "history::ready"),
        (format!("{history}&after={}", left[1]), "history::ready"),
    ];
    let turns: Vec<Turn<'_>> =
        paths.iter().map(|(path, end)| Box::new(move || open(calls, at, path, end)) as Turn<'_>).collect();
    let measured = interleaved(bench.rounds(), turns)?;
    server.stop()?;
    let mut section = Section::default();
    for (what, pair) in ["events, deltas=1", "history, stream=1&deltas=1"].into_iter().zip(measured.chunks(2)) {
        let [fresh, resumed] = pair else { return Err("not everything was measured".into()) };
        let ratio = resumed.median / fresh.median;
        section.rows.push(
            Row::shown(format!("resuming a reply of {GROWTHS} growths, {what}, p50"), micros(resumed))
                .beside(format!("a fresh start {}", micros(fresh)))
                .ratio(ratio)
                .target("<= 2x", ratio <= 2.0),
        );
    }
    section.method.push(format!(
        "Resuming: {GROWTHS} texts of {} bytes were added to one message; from before the first of them until the past is told, on a \
         new connection, {calls} times a round.",
        TEXT.len()
    ));
    Ok(section)
}

/// Adds the texts, and ends the work on the session.
fn grow(dir: &std::path::Path, id: &SessionId, entry: &EntryId) -> Outcome<()> {
    let store = Banyan::open(dir, Options { durability: Durability::Buffered, ..Options::default() })?;
    for _ in 0..GROWTHS {
        block_on(store.extend_message(ExtendMessageRequest {
            session_id: id.clone(),
            entry_id: entry.clone(),
            text: TEXT.to_owned(),
            block: None,
            expected_revision: None,
            origin: None,
        }))?;
    }
    let status = SessionStatus::Done;
    block_on(store.set_status(SetStatusRequest { session_id: id.clone(), status, reason: None }))?;
    Ok(store.close()?)
}

/// The id of the frame that a stream's past ends with.
fn last_id(at: SocketAddr, path: &str, end: &str) -> Outcome<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let read = runtime.block_on(async { Connection::open(at).await?.subscribe(path).await?.until(end).await })?;
    let id = read.lines().rev().find_map(|line| line.strip_prefix("id: "));
    Ok(id.ok_or("the stream has no id")?.to_owned())
}

/// How long it takes until the past is told.
fn open(calls: usize, at: SocketAddr, path: &str, end: &str) -> Outcome<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut took = Latencies::of(calls, || {
        let read =
            runtime.block_on(async { Connection::open(at).await?.subscribe(path).await?.until(end).await })?;
        if read.len() < GROWTHS * TEXT.len() {
            return Err(format!("a stream has {} bytes only", read.len()).into());
        }
        Ok(())
    })?;
    Ok(took.percentile(0.5))
}
