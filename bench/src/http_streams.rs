//! Subscribers over SSE: how late they hear, what they cost, whether one that stalls is felt, and what a token costs on the wire.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use banyan_model::{EntryId, SessionId};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::append_one_writer::micros;
use crate::http_client::{Connection, Stream, request};
use crate::http_server::Server;
use crate::report::{Row, Section};
use crate::rounds::{Latencies, Measured, measured};
use crate::session;
use crate::workbench::{Outcome, Workbench};

const MANY: usize = 1000;
const SOME: usize = 100;
const EVENT: &[u8] = b"\nevent: session::";

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut section = Section::default();
    many(bench, &runtime, &mut section)?;
    stalled(bench, &runtime, &mut section)?;
    deltas(bench, &runtime, &mut section)?;
    Ok(section)
}

/// A session on a server of its own, with a message in it that can grow.
struct Stage {
    server: Server,
    session: SessionId,
    entry: EntryId,
    _dir: tempfile::TempDir,
}

impl Stage {
    fn set(bench: &Workbench) -> Outcome<Self> {
        let dir = bench.scratch()?;
        let store = session::open(dir.path())?;
        let session = session::create(&store)?;
        let first = session::append(&session, session::assistant(String::new()));
        let entry = banyan::block_on(store.append(first))?.entry_id;
        store.close()?;
        let server = Server::start(dir.path())?;
        server.wait_for_index()?;
        Ok(Self { server, session, entry, _dir: dir })
    }

    fn extend(&self, text: &str) -> Vec<u8> {
        let body = json!({"session_id": self.session, "entry_id": self.entry, "text": text});
        request("POST", "/v1/call/session::extend-message", body.to_string().as_bytes())
    }

    fn append(&self) -> Outcome<Vec<u8>> {
        let append = session::append(&self.session, session::user(session::text(0, 1024)));
        Ok(request("POST", "/v1/call/session::append", &serde_json::to_vec(&append)?))
    }

    async fn subscribe(&self, query: &str) -> Outcome<Stream> {
        let path = format!("/v1/sessions/{}/events{query}", self.session);
        Connection::open(self.server.address).await?.subscribe(&path).await
    }
}

/// When each of some writes was made.
type Sent = Arc<Mutex<Vec<Instant>>>;

fn lock(sent: &Sent) -> std::sync::MutexGuard<'_, Vec<Instant>> {
    sent.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes in so many events, and tells how long after its write each came.
async fn listen(mut stream: Stream, events: usize, sent: Sent) -> Outcome<Latencies> {
    let mut late = Latencies::default();
    let mut seen = 0;
    while seen < events {
        let came = stream.count(EVENT).await?;
        let now = Instant::now();
        for at in seen..(seen + came).min(events) {
            let written = lock(&sent).get(at).copied().ok_or("an event came before its write")?;
            late.push(now.duration_since(written));
        }
        seen += came;
    }
    Ok(late)
}

async fn write(at: SocketAddr, requests: Vec<Vec<u8>>, pause: Option<Duration>, sent: Sent) -> Outcome<f64> {
    let mut connection = Connection::open(at).await?;
    let begun = Instant::now();
    let count = requests.len();
    for request in requests {
        lock(&sent).push(Instant::now());
        connection.ask(&request).await?;
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
    }
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}

async fn all(listeners: Vec<JoinHandle<Outcome<Latencies>>>) -> Outcome<Latencies> {
    let mut late = Latencies::default();
    for listener in listeners {
        late.append(listener.await??);
    }
    Ok(late)
}

fn many(bench: &Workbench, runtime: &Runtime, section: &mut Section) -> Outcome<()> {
    let (mut p99s, mut p50s, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.rounds() {
        let stage = Stage::set(bench)?;
        let updates = bench.pick(100, 40);
        let mut late = runtime.block_on(async {
            let sent = Sent::default();
            let mut listeners = Vec::new();
            // What the first ones take once, such as pages of code, is not counted.
            for _ in 0..SOME {
                let stream = stage.subscribe("").await?;
                listeners.push(tokio::spawn(listen(stream, updates, Arc::clone(&sent))));
            }
            let before = stage.server.resident_kib()?;
            for _ in SOME..MANY {
                let stream = stage.subscribe("").await?;
                listeners.push(tokio::spawn(listen(stream, updates, Arc::clone(&sent))));
            }
            memory.push((stage.server.resident_kib()? as f64 - before as f64) / (MANY - SOME) as f64);
            let writes = (0..updates).map(|n| stage.extend(&session::text(n, 40))).collect();
            write(stage.server.address, writes, Some(Duration::from_millis(50)), sent).await?;
            all(listeners).await
        })?;
        p99s.push(late.percentile(0.99));
        p50s.push(late.percentile(0.5));
        stage.server.stop()?;
    }
    let (p99, p50, memory) = (measured(p99s)?, measured(p50s)?, measured(memory)?);
    section.rows.push(
        Row::shown(
            format!("an update heard by {MANY} SSE subscribers, 20 a second, p99 from the call"),
            micros(&p99),
        )
        .target("<= 50 ms", p99.median <= 50_000.0),
    );
    section.rows.push(
        Row::shown("memory of the server for an idle SSE subscriber", format!("{:.1} KiB", memory.median))
            .target("<= 32 KiB", memory.median <= 32.0),
    );
    section.method.push(format!(
        "SSE: counted from before the writer sends its call, so the flush is in it; p50 {}. The subscribers are read by two threads on the same cores.",
        micros(&p50)
    ));
    Ok(())
}

/// What the writer does a second and how late the others hear, with all reading or with one that never does.
fn beside_a_stalled(bench: &Workbench, runtime: &Runtime, stalled: bool) -> Outcome<(f64, f64)> {
    let stage = Stage::set(bench)?;
    let writes = bench.pick(3000, 1000);
    let outcome = runtime.block_on(async {
        let sent = Sent::default();
        let mut listeners = Vec::new();
        for _ in 1..SOME {
            listeners.push(tokio::spawn(listen(stage.subscribe("").await?, writes, Arc::clone(&sent))));
        }
        let silent = stage.subscribe("").await?;
        if !stalled {
            listeners.push(tokio::spawn(listen(silent, writes, Arc::clone(&sent))));
        } else {
            // Held, and never read.
            listeners.push(tokio::spawn(async move {
                let _silent = silent;
                Ok(Latencies::default())
            }));
        }
        let append = stage.append()?;
        let rate = write(stage.server.address, vec![append; writes], None, sent).await?;
        Outcome::Ok((rate, all(listeners).await?.percentile(0.99)))
    })?;
    stage.server.stop()?;
    Ok(outcome)
}

fn stalled(bench: &Workbench, runtime: &Runtime, section: &mut Section) -> Outcome<()> {
    let (mut rates, mut lates) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for _ in 0..bench.rounds() {
        for stalled in [false, true] {
            let (rate, late) = beside_a_stalled(bench, runtime, stalled)?;
            rates[usize::from(stalled)].push(rate);
            lates[usize::from(stalled)].push(late);
        }
    }
    let [fair, beside] = rates.map(measured);
    let (fair, beside) = (fair?, beside?);
    let ratio = beside.median / fair.median;
    let show = |measured: &Measured| {
        format!("{:.0}/s ({:.0} to {:.0})", measured.median, measured.lowest, measured.highest)
    };
    section.rows.push(
        Row::shown(
            format!("appends by one writer with {SOME} SSE subscribers, one of them stalled"),
            show(&beside),
        )
        .beside(format!("none stalled {}", show(&fair)))
        .ratio(ratio)
        .target(">= 0.9x", ratio >= 0.9),
    );
    let [fair, beside] = lates.map(measured);
    let (fair, beside) = (fair?, beside?);
    let ratio = beside.median / fair.median;
    section.rows.push(
        Row::shown("the same, p99 until the others hear", micros(&beside))
            .beside(format!("none stalled {}", micros(&fair)))
            .ratio(ratio)
            .target("<= 1.25x", ratio <= 1.25),
    );
    Ok(())
}

fn deltas(bench: &Workbench, runtime: &Runtime, section: &mut Section) -> Outcome<()> {
    const UPDATES: usize = 2000;
    const TEXT: usize = 16_000;
    let stage = Stage::set(bench)?;
    let whole = session::text(7, TEXT);
    let bytes = runtime.block_on(async {
        let mut stream = stage.subscribe("?deltas=1").await?;
        let read = tokio::spawn(async move {
            while stream.count(b"status-changed").await? == 0 {}
            Outcome::Ok(stream.bytes)
        });
        let mut writes: Vec<Vec<u8>> = whole
            .as_bytes()
            .chunks(TEXT / UPDATES)
            .map(|part| stage.extend(&String::from_utf8_lossy(part)))
            .collect();
        let done = json!({"session_id": stage.session, "status": "done"}).to_string();
        writes.push(request("POST", "/v1/call/session::set-status", done.as_bytes()));
        write(stage.server.address, writes, None, Sent::default()).await?;
        read.await?
    })?;
    stage.server.stop()?;
    let ratio = bytes as f64 / TEXT as f64;
    section.rows.push(
        Row::shown(
            format!(
                "{UPDATES} updates growing a message to {TEXT} bytes, one subscriber with `deltas=1`, on the wire"
            ),
            format!("{bytes} bytes"),
        )
        .beside(format!("the text {TEXT} bytes"))
        .ratio(ratio)
        .target("<= 12x the text", ratio <= 12.0),
    );
    Ok(())
}
