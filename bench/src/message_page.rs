//! Reading a page of 50 messages, first and last, of a short and of a long session.

use banyan::{Banyan, block_on};
use banyan_model::{MessagesRequest, SessionId};
use rusqlite::params;

use crate::append_one_writer::micros;
use crate::long_session::{ENTRIES, tail};
use crate::report::{Row, Section};
use crate::rounds::{Latencies, Turn, interleaved};
use crate::workbench::{Outcome, Workbench};
use crate::{session, sqlite};

const SHORT: usize = 100;
const PAGE: usize = 50;

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let calls = bench.pick(2000, 300);
    let long = bench.long_session()?;
    let store = session::open(&long.dir)?;
    let short = session::create(&store)?;
    session::fill(&store, &short, SHORT)?;
    let (short_last, long_last) = (last_page(&store, &short)?, last_page(&store, &long.id)?);
    let shown = block_on(store.messages_tail(tail(&short, PAGE)))?.messages.len();
    let dir = bench.scratch()?;
    let peer = peer_with(dir.path(), ENTRIES)?;
    let turns: Vec<Turn<'_>> = vec![
        Box::new(|| messages(calls, &store, &first_page(&short))),
        Box::new(|| messages(calls, &store, &first_page(&long.id))),
        Box::new(|| messages(calls, &store, &short_last)),
        Box::new(|| messages(calls, &store, &long_last)),
        Box::new(|| newest(calls, &store, &short)),
        Box::new(|| newest(calls, &store, &long.id)),
        Box::new(|| as_json(calls, &store, &long.id)),
        Box::new(|| peer_page(calls, &peer, 0)),
        Box::new(|| peer_page(calls, &peer, ENTRIES - PAGE)),
    ];
    let measured = interleaved(bench.rounds(), turns)?;
    store.close()?;
    let [short_first, long_first, short_last, long_last, short_tail, long_tail, json, peer_first, peer_last] =
        measured.as_slice()
    else {
        return Err("not everything was measured".into());
    };
    let mut rows = Vec::new();
    for (which, short, long, peer) in [
        ("first", short_first, long_first, peer_first),
        ("last", short_last, long_last, peer_last),
        ("newest (`messages-tail`)", short_tail, long_tail, peer_last),
    ] {
        let worst = short.median.max(long.median);
        rows.push(
            Row::shown(format!("{which} page of {PAGE} messages of 1 KiB, p50, {ENTRIES} entries"), micros(long))
                .beside(format!("SQLite, rows as text {}", micros(peer)))
                .ratio(long.median / peer.median)
                .target("<= 150 us", worst <= 150.0),
        );
        rows.push(
            Row::shown(format!("the same, beside a session of {SHORT} entries"), micros(long))
                .beside(micros(short))
                .ratio(long.median / short.median)
                .target("<= 2x", long.median <= 2.0 * short.median),
        );
    }
    rows.push(Row::shown("first page by `call`, request and answer as JSON text", micros(json)));
    Ok(Section {
        rows,
        method: vec![format!(
            "Pages: the session is in memory, its text is not. `messages-tail` counts a run of an agent's activity \
             as one, and showed {shown} messages. SQLite reads 50 rows by primary key, and its answer has no ids, times or cursor."
        )],
        losing: vec![],
    })
}

fn first_page(session: &SessionId) -> MessagesRequest {
    MessagesRequest { limit: Some(PAGE), ..MessagesRequest::of(session.clone()) }
}

/// Walks to the last page, and asks for it.
fn last_page(store: &Banyan, session: &SessionId) -> Outcome<MessagesRequest> {
    let mut request = first_page(session);
    loop {
        let page = block_on(store.messages(request.clone()))?;
        match page.next_cursor {
            Some(cursor) => request.cursor = Some(cursor),
            None => return Ok(request),
        }
    }
}

fn messages(calls: usize, store: &Banyan, request: &MessagesRequest) -> Outcome<f64> {
    let mut took = Latencies::of(calls, || full(block_on(store.messages(request.clone()))?.messages.len()))?;
    Ok(took.percentile(0.5))
}

fn newest(calls: usize, store: &Banyan, session: &SessionId) -> Outcome<f64> {
    let mut took =
        Latencies::of(calls, || full(block_on(store.messages_tail(tail(session, PAGE)))?.messages.len()))?;
    Ok(took.percentile(0.5))
}

fn as_json(calls: usize, store: &Banyan, session: &SessionId) -> Outcome<f64> {
    let body = serde_json::to_vec(&first_page(session))?;
    let mut took = Latencies::of(calls, || {
        let answer = block_on(store.call("session::messages", &body)).map_err(|error| error.to_string())?;
        full(answer.len() / 1024)
    })?;
    Ok(took.percentile(0.5))
}

fn full(messages: usize) -> Outcome<()> {
    if messages < PAGE {
        return Err(format!("a page has {messages} messages only").into());
    }
    Ok(())
}

fn peer_with(dir: &std::path::Path, entries: usize) -> Outcome<rusqlite::Connection> {
    let conn = sqlite::open(dir)?;
    let body = sqlite::body(0)?;
    conn.execute_batch("BEGIN")?;
    for _ in 0..entries {
        sqlite::insert(&conn, 0, &body)?;
    }
    conn.execute_batch("COMMIT")?;
    Ok(conn)
}

fn peer_page(calls: usize, conn: &rusqlite::Connection, after: usize) -> Outcome<f64> {
    let mut select = conn.prepare("SELECT body FROM entry WHERE id > ? ORDER BY id LIMIT ?")?;
    let mut took = Latencies::of(calls, || {
        let rows = select.query_map(params![after as i64, PAGE as i64], |row| row.get::<_, String>(0))?;
        full(rows.collect::<Result<Vec<String>, _>>()?.len())
    })?;
    Ok(took.percentile(0.5))
}
