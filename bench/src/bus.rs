//! A bus with workers on it, each in a process of its own: a real iii engine when `III_ENGINE` names its binary, and otherwise
//! Banyan's own.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use banyan::{Banyan, Options};
use banyan_iii::hub::{Hub, HubOptions};
use banyan_iii::link::{Call, Connection, Engine, Link, Service, function_frame};
use banyan_iii::wire::{ErrorBody, RegisterTrigger};
use banyan_iii::worker::{Storage, Worker, WorkerOptions};
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::net::TcpListener;

use crate::workbench::Outcome;

/// The first word of a command line that asks for a part of a bus.
pub(crate) const WORD: &str = "bus";

/// The function that does nothing.
pub(crate) const EMPTY: &str = "bench::empty";

/// A bus, session-manager and a worker that does nothing.
pub(crate) struct Bus {
    pub(crate) url: String,
    /// What it is, for people.
    pub(crate) kind: String,
    // Ended in this order.
    parts: Vec<Part>,
}

struct Part {
    child: Child,
    // Its end tells the process to stop.
    input: Option<ChildStdin>,
}

impl Drop for Part {
    fn drop(&mut self) {
        match self.input.take() {
            Some(input) => drop(input),
            None => drop(self.child.kill()),
        }
        let _ = self.child.wait();
    }
}

impl Bus {
    /// Starts everything, with sessions in a directory.
    pub(crate) fn start(dir: &Path) -> Outcome<Self> {
        let engine = std::env::var_os("III_ENGINE").map(PathBuf::from);
        let kind = match &engine {
            Some(_) => "a real iii engine".to_owned(),
            None => "Banyan's own bus (III_ENGINE names no engine)".to_owned(),
        };
        let (url, first) = match engine {
            Some(engine) => spawn_engine(&engine, dir)?,
            None => spawn(&["hub".to_owned()])?,
        };
        let mut bus = Self { url, kind, parts: vec![first] };
        for words in [
            vec!["worker".to_owned(), bus.url.clone(), dir.join("sessions").display().to_string()],
            vec!["empty".to_owned(), bus.url.clone()],
        ] {
            bus.parts.insert(0, spawn(&words)?.1);
        }
        Ok(bus)
    }
}

/// Starts this program again; what it prints first is what there is to know of it.
fn spawn(words: &[String]) -> Outcome<(String, Part)> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut child = command.arg(WORD).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().ok_or("a process has no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    let input = child.stdin.take();
    Ok((line.trim().to_owned(), Part { child, input }))
}

fn spawn_engine(engine: &Path, dir: &Path) -> Outcome<(String, Part)> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let config = dir.join("engine.yaml");
    let text = format!(
        "workers:\n  - name: iii-worker-manager\n    config:\n      host: 127.0.0.1\n      port: {port}\n  - name: configuration\n"
    );
    std::fs::write(&config, text)?;
    let log = std::fs::File::create(dir.join("engine.log"))?;
    let mut command = Command::new(engine);
    command.arg("--no-update-check").arg("--config").arg(&config).current_dir(dir);
    command.env("III_TELEMETRY_ENABLED", "false").stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let part = Part { child: command.spawn()?, input: None };
    let deadline = Instant::now() + Duration::from_secs(30);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        if Instant::now() > deadline {
            return Err("the engine does not take connections".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok((format!("ws://127.0.0.1:{port}"), part))
}

/// What the process of a part does.
pub(crate) fn run(words: &[String]) -> Outcome<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(cores.max(2)).enable_all().build()?;
    let until_told = || std::io::stdin().read_to_end(&mut Vec::new());
    match words {
        [part] if part == "hub" => {
            let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
            println!("ws://{}", listener.local_addr()?);
            runtime.spawn(
                async move { Hub::new(HubOptions::default()).serve(listener, std::future::pending()).await },
            );
            until_told()?;
        }
        [part, url, dir] if part == "worker" => {
            let store = Banyan::open(
                Path::new(dir),
                Options { may_block: |work| tokio::task::block_in_place(work), ..Options::default() },
            )?;
            let (_stop, stopped) = tokio::sync::watch::channel(false);
            let options = WorkerOptions {
                engine: Engine::Url(url.clone()),
                storage: Storage::Shared { store: store.clone(), dir: dir.into() },
                seed: None,
            };
            let worker = runtime.block_on(Worker::start(options, stopped))?;
            println!("ready");
            until_told()?;
            runtime.block_on(worker.stop());
            store.close()?;
        }
        [part, url] if part == "empty" => {
            let link = runtime.block_on(async { Link::open(Engine::Url(url.clone()), Arc::new(Empty)) });
            runtime.block_on(link.stands())?;
            runtime.block_on(found(&link))?;
            println!("ready");
            until_told()?;
        }
        _ => return Err("a bus has no such part".into()),
    }
    Ok(())
}

/// Waits until the function that does nothing is found.
pub(crate) async fn found(link: &Link) -> Outcome<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match link.call(EMPTY, "{}", Duration::from_secs(10)).await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > deadline => return Err(error.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// A worker that does nothing.
struct Empty;

impl Service for Empty {
    fn offers(&self) -> Vec<String> {
        let anything = json!({"type": "object"});
        vec![function_frame(EMPTY, "Does nothing.", &anything, &anything)]
    }

    fn identity(&self) -> String {
        json!({"name": "bench-empty", "runtime": "rust", "version": "0", "os": "any", "pid": std::process::id()})
            .to_string()
    }

    fn call(self: Arc<Self>, _: Call) -> BoxFuture<'static, Result<String, ErrorBody<'static>>> {
        Box::pin(async { Ok("{}".to_owned()) })
    }

    fn bind(self: Arc<Self>, _: &Arc<Connection>, _: RegisterTrigger<'_>) -> Result<(), ErrorBody<'static>> {
        Ok(())
    }

    fn unbind(self: Arc<Self>, _: &str) {}
    fn connected(self: Arc<Self>, _: &Arc<Connection>) {}
    fn lost(self: Arc<Self>) {}
}
