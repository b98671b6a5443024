//! The newest messages of a session as chat front ends read them, beside the same entries as they are.

use std::net::SocketAddr;

use crate::append_one_writer::micros;
use crate::http_client::{Connection, request};
use crate::http_server::Server;
use crate::long_session::ENTRIES;
use crate::report::{Row, Section};
use crate::rounds::{Latencies, Turn, interleaved};
use crate::workbench::{Outcome, Workbench};

const PAGE: usize = 50;

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let calls = bench.pick(2000, 300);
    let long = bench.long_session()?;
    let server = Server::start(&long.dir)?;
    let at = server.address;
    let get = |path: &str| request("GET", &format!("/v1/sessions/{}/{path}", long.id), b"");
    let history = get(&format!("history?limit={PAGE}"));
    let tail = get(&format!("messages/tail?limit={PAGE}"));
    let turns: Vec<Turn<'_>> = vec![Box::new(|| ask(calls, at, &history)), Box::new(|| ask(calls, at, &tail))];
    let measured = interleaved(bench.rounds(), turns)?;
    server.stop()?;
    let [history, tail] = measured.as_slice() else { return Err("not everything was measured".into()) };
    let ratio = history.median / tail.median;
    let work = format!("history of the last {PAGE} messages over HTTP, p50, {ENTRIES} entries");
    let row = Row::shown(work, micros(history)).beside(format!("`messages-tail` {}", micros(tail)));
    Ok(Section {
        rows: vec![row.ratio(ratio).target("<= 2x", ratio <= 2.0)],
        method: vec![format!(
            "History: one connection on loopback, {calls} calls a round. Both answers are made of the same {PAGE} entries of 1 KiB."
        )],
        losing: vec![],
    })
}

/// How long an answer takes that has the whole page.
fn ask(calls: usize, at: SocketAddr, request: &[u8]) -> Outcome<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut connection = runtime.block_on(Connection::open(at))?;
    let mut took = Latencies::of(calls, || {
        let length = runtime.block_on(connection.ask(request))?.len();
        if length < PAGE * 1024 { Err(format!("a page has {length} bytes only").into()) } else { Ok(()) }
    })?;
    Ok(took.percentile(0.5))
}
