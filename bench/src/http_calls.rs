//! Appends and pages over HTTP, beside the least that the same server can do.

use std::net::SocketAddr;
use std::time::Duration;

use banyan_model::{MessagesRequest, SessionId};

use crate::http_client::{Connection, request};
use crate::http_server::Server;
use crate::load::rate;
use crate::long_session::ENTRIES;
use crate::report::{Row, Section};
use crate::rounds::{Measured, Turn, interleaved};
use crate::session;
use crate::workbench::{Outcome, Workbench};
use crate::writers::{WRITERS, While};

const SHORT: usize = 100;
const PAGE: usize = 50;

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let time = While {
        before: Duration::from_millis(300),
        counted: bench.pick(Duration::from_secs(3), Duration::from_secs(1)),
    };
    let long = bench.long_session()?;
    let store = session::open(&long.dir)?;
    let short = session::create(&store)?;
    session::fill(&store, &short, SHORT)?;
    let writers = (0..WRITERS).map(|_| session::create(&store)).collect::<Outcome<Vec<SessionId>>>()?;
    store.close()?;
    let server = Server::start(&long.dir)?;
    let at = server.address;
    let appends: Vec<Vec<u8>> = writers.iter().enumerate().map(|(n, id)| append(n, id)).collect::<Outcome<_>>()?;
    let empty: Vec<Vec<u8>> = appends.iter().map(|sent| request("POST", "/empty", body_of(sent))).collect();
    let pages = [page(&short)?, page(&long.id)?];
    let length = length_of(at, &pages[1])?;
    let bytes = request("GET", &format!("/bytes/{length}"), b"");
    let turns: Vec<Turn<'_>> = vec![
        Box::new(|| {
            let appended = rate(at, &appends, time)?;
            // What follows must not be measured beside the index that catches up.
            server.wait_for_index()?;
            Ok(appended)
        }),
        Box::new(|| rate(at, &empty, time)),
        Box::new(|| rate(at, &pages[..1], time)),
        Box::new(|| rate(at, &pages[1..], time)),
        Box::new(|| rate(at, std::slice::from_ref(&bytes), time)),
    ];
    let measured = interleaved(bench.rounds(), turns)?;
    server.stop()?;
    let [appends, empty, short, long, bytes] = measured.as_slice() else {
        return Err("not everything was measured".into());
    };
    Ok(Section {
        rows: vec![
            row("durable append of 1 KiB over HTTP", appends, "an empty handler", empty, 0.5),
            row(
                &format!("page of {PAGE} over HTTP, {ENTRIES} entries"),
                long,
                "the same bytes from memory",
                bytes,
                0.5,
            ),
            row(&format!("page of {PAGE} over HTTP, {ENTRIES} entries"), long, "100 entries", short, 1.0 / 1.5),
        ],
        method: vec![format!(
            "HTTP: {WRITERS} connections that are kept open, on loopback; the server is a process of its own, and its clients share the \
             cores with it, on one thread. The empty handler takes in the same bodies, behind the same door. \
             The search index is let behind while appends come in, and has caught up before anything else is measured. A page has {length} bytes."
        )],
        losing: vec![],
    })
}

fn row(work: &str, ours: &Measured, peer: &str, theirs: &Measured, least: f64) -> Row {
    let ratio = ours.median / theirs.median;
    Row::shown(work, per_second(ours))
        .beside(format!("{peer} {}", per_second(theirs)))
        .ratio(ratio)
        .target(format!(">= {least:.2}x"), ratio >= least)
}

fn per_second(measured: &Measured) -> String {
    let Measured { median, lowest, highest } = measured;
    format!("{median:.0}/s ({lowest:.0} to {highest:.0})")
}

fn append(number: usize, session: &SessionId) -> Outcome<Vec<u8>> {
    let append = session::append(session, session::user(session::text(number, 1024)));
    Ok(request("POST", "/v1/call/session::append", &serde_json::to_vec(&append)?))
}

fn page(session: &SessionId) -> Outcome<Vec<u8>> {
    let page = MessagesRequest { limit: Some(PAGE), ..MessagesRequest::of(session.clone()) };
    Ok(request("POST", "/v1/call/session::messages", &serde_json::to_vec(&page)?))
}

fn body_of(request: &[u8]) -> &[u8] {
    request.windows(4).position(|four| four == b"\r\n\r\n").map_or(&[], |at| &request[at + 4..])
}

fn length_of(at: SocketAddr, request: &[u8]) -> Outcome<usize> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { Ok(Connection::open(at).await?.ask(request).await?.len()) })
}
