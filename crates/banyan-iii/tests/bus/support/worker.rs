//! The worker session-manager: in this process, or as the command that people run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use banyan::{Banyan, Options};
use banyan_iii::link::Engine;
use banyan_iii::worker::{StartError, Storage, Worker, WorkerOptions};
use serde_json::{Value, json};
use tokio::sync::watch;

/// A worker in this process.
pub struct InProcess {
    worker: Option<Worker>,
    _stop: watch::Sender<bool>,
}

/// How stores are opened here.
pub fn store_options() -> Options {
    Options { may_block: |work| tokio::task::block_in_place(work), ..Options::default() }
}

/// The settings of a worker that stores in a directory.
pub fn in_directory(dir: &Path) -> Value {
    json!({"adapter": {"name": "fs", "config": {"data_dir": dir}}})
}

/// The settings of a worker that stores with another one.
pub fn bridged_to(url: &str) -> Value {
    json!({"adapter": {"name": "bridge", "config": {"url": url, "timeout_ms": 3000}}})
}

impl InProcess {
    /// Joins a bus, with the settings to begin with.
    pub async fn join(url: &str, seed: Value) -> Self {
        Self::try_join(url, seed).await.expect("a worker")
    }

    /// The same, with a directory in which it remembers who it was.
    pub async fn join_again(url: &str, seed: Value, dir: &Path) -> Self {
        Self::start(url, seed, Some(dir.to_owned())).await.expect("a worker")
    }

    pub async fn try_join(url: &str, seed: Value) -> Result<Self, StartError> {
        Self::start(url, seed, None).await
    }

    async fn start(url: &str, seed: Value, bridges_in: Option<PathBuf>) -> Result<Self, StartError> {
        let (stop, stopped) = watch::channel(false);
        let open = Arc::new(|dir: &Path| Banyan::open(dir, store_options()));
        let options = WorkerOptions {
            engine: Engine::Url(url.to_owned()),
            storage: Storage::Configured { open, bridges_in },
            seed: Some(seed),
        };
        let worker = Worker::start(options, stopped).await?;
        Ok(Self { worker: Some(worker), _stop: stop })
    }

    pub async fn leave(mut self) {
        if let Some(worker) = self.worker.take() {
            worker.stop().await;
        }
    }
}

/// The command `banyan worker`.
pub struct Process(Child);

impl Process {
    /// Starts the command, if it was built.
    pub fn start(url: &str, data: &Path) -> Option<Self> {
        let binary = binary()?;
        let child = Command::new(binary)
            .args(["worker", "--url", url, "--log", "warn", "--data"])
            .arg(data)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the command starts");
        Some(Self(child))
    }

    /// Ends it as a power cut of the process would.
    pub fn kill(mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where the command is. `make test` says it.
pub fn binary() -> Option<PathBuf> {
    let named = std::env::var_os("BANYAN_BIN").map(PathBuf::from).filter(|path| path.exists());
    if named.is_none() {
        // Written past the test harness, which keeps what tests print to itself.
        let why = "BANYAN_BIN does not name the banyan command; `make test` builds it and says where it is";
        let _ = writeln!(std::io::stderr(), "skipped: {why}");
    }
    named
}
