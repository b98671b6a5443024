//! A server in a process of its own, so that what it needs can be told from what its clients need.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Path as InPath;
use axum::routing::{get, post};
use banyan::{Banyan, Options};
use banyan_server::Settings;
use bytes::Bytes;
use serde_json::Value;

use crate::http_client::{Connection, request};
use crate::machine;
use crate::workbench::Outcome;

/// The first word of a command line that asks for a server.
pub(crate) const WORD: &str = "serve";

/// A server that runs until this is dropped.
pub(crate) struct Server {
    child: Child,
    // Its end tells the server to stop.
    input: Option<ChildStdin>,
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) fn start(dir: &Path) -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(WORD).arg(dir).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or("the server has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let input = child.stdin.take();
        Ok(Self { child, input, address: line.trim().parse()? })
    }

    /// Its resident memory, in KiB.
    pub(crate) fn resident_kib(&self) -> Outcome<u64> {
        machine::resident_kib_of(&self.child.id().to_string())
    }

    /// The most memory that was ever resident, in KiB.
    pub(crate) fn most_resident_kib(&self) -> Outcome<u64> {
        machine::most_resident_kib_of(&self.child.id().to_string())
    }

    /// Waits until everything that was written can be found, so that what is measured next is not measured beside the index.
    pub(crate) fn wait_for_index(&self) -> Outcome<()> {
        let search = request("POST", "/v1/call/session::search", br#"{"query":"anything","limit":1}"#);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut connection = Connection::open(self.address).await?;
            let until = Instant::now() + Duration::from_secs(120);
            while Instant::now() < until {
                let answer: Value = serde_json::from_slice(connection.ask(&search).await?)?;
                if answer["complete"] == true {
                    return Ok(());
                }
            }
            Err("the search index does not catch up".into())
        })
    }

    pub(crate) fn stop(mut self) -> Outcome<()> {
        drop(self.input.take());
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
    }
}

/// What the process of a server does.
pub(crate) fn run(words: &[String]) -> Outcome<()> {
    let dir = Path::new(words.first().ok_or("a server needs a directory")?);
    // As `banyan serve` does it.
    let options = Options { may_block: |work| tokio::task::block_in_place(work), ..Options::default() };
    let store = Banyan::open(dir, options)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(cores.max(2)).enable_all().build()?;
    let settings = Settings { listen: ([127, 0, 0, 1], 0).into(), ..Settings::default() };
    let running = runtime.block_on(banyan_server::start_with(store.clone(), dir, settings, peers()))?;
    println!("{}", running.address());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    runtime.block_on(running.stop());
    Ok(store.close()?)
}

/// The least that the same server can do: nothing, and sending bytes that it has.
fn peers() -> Router {
    let bytes = Bytes::from(vec![b'x'; 1 << 20]);
    Router::new().route("/empty", post(|_: Bytes| async { "{}" })).route(
        "/bytes/{length}",
        get(move |InPath(length): InPath<usize>| async move { bytes.slice(..length.min(bytes.len())) }),
    )
}
