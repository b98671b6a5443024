//! Half-sent bodies over HTTP: what a server's memory is while clients send much and never end.

use std::net::SocketAddr;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::http_client::{Connection, request};
use crate::http_server::Server;
use crate::report::{Row, Section};
use crate::rounds::measured;
use crate::workbench::{Outcome, Workbench};

const BODIES: usize = 40;
const ANNOUNCED: usize = 64 << 20;
const SENT: usize = 60 << 20;
const LIMIT_MIB: f64 = 256.0;

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (mut most, mut before) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds() {
        let dir = bench.scratch()?;
        let server = Server::start(dir.path())?;
        before.push(server.resident_kib()? as f64 / 1024.0);
        runtime.block_on(half_sent(server.address))?;
        most.push(server.most_resident_kib()? as f64 / 1024.0);
        server.stop()?;
    }
    let (most, before) = (measured(most)?, measured(before)?);
    Ok(Section {
        rows: vec![
            Row::shown(
                format!("most memory of the server under {BODIES} half-sent bodies of {} MiB", ANNOUNCED >> 20),
                format!("{:.0} MiB ({:.0} to {:.0})", most.median, most.lowest, most.highest),
            )
            .beside(format!("idle {:.0} MiB", before.median))
            .target(format!("<= {LIMIT_MIB:.0} MiB"), most.highest <= LIMIT_MIB),
        ],
        method: vec![format!(
            "Half-sent bodies: {BODIES} connections send {} MiB each of a body, as far as the server takes it, and keep the connection. Most is the peak over the whole life of the process.",
            SENT >> 20
        )],
        losing: vec![],
    })
}

/// Sends as much of each body as the server takes, and then a call that has to be answered.
async fn half_sent(address: SocketAddr) -> Outcome<()> {
    let senders: Vec<_> = (0..BODIES).map(|_| tokio::spawn(send(address))).collect();
    let (mut held, mut taken) = (Vec::new(), 0);
    for sender in senders {
        let (stream, sent) = sender.await??;
        taken = taken.max(sent);
        held.push(stream);
    }
    // Otherwise nothing was held, and there was nothing to measure.
    if taken < SENT {
        return Err(format!("no body got further than {taken} bytes").into());
    }
    Connection::open(address).await?.ask(&request("POST", "/v1/call/session::create", b"{}")).await?;
    Ok(())
}

/// A connection with a body that does not end, and how much of it was sent.
async fn send(address: SocketAddr) -> Outcome<(TcpStream, usize)> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!(
        "POST /v1/call/session::append HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {ANNOUNCED}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let piece = vec![b' '; 1 << 20];
    let mut sent = 0;
    // A refused body ends with an error here once the server has closed its side.
    while sent < SENT && stream.write_all(&piece).await.is_ok() {
        sent += piece.len();
    }
    Ok((stream, sent))
}
