//! A server on a free port of loopback, in this process, with a store in memory.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of this")]

use banyan::{Banyan, Options};
use banyan_server::{KeyStore, NewKey, Running, Settings};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A running server. It stops when it is dropped.
pub struct Server {
    /// For example `http://127.0.0.1:40001`.
    pub url: String,
    /// The secret of its key, which is empty when it needs none.
    pub key: String,
    data: TempDir,
    store: Banyan,
    settings: Settings,
    running: Option<Running>,
    runtime: Runtime,
}

impl Server {
    /// A server that behaves as one does that nobody configured.
    pub fn start() -> Self {
        Self::with(Options::default(), |_| {})
    }

    /// A server that has a key, and answers nobody without one.
    pub fn start_with_key() -> Self {
        let mut server = Self::start();
        server.pause();
        let new = NewKey { name: "test".to_owned(), ..NewKey::default() };
        server.key = KeyStore::open(server.data.path()).create(new, 0).unwrap().1;
        server.resume();
        server
    }

    /// A server with a store and settings of its own.
    pub fn with(options: Options, set: impl FnOnce(&mut Settings)) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let mut settings = Settings { listen: ([127, 0, 0, 1], 0).into(), ..Settings::default() };
        set(&mut settings);
        let (data, store) = (tempfile::tempdir().unwrap(), Banyan::in_memory(options).unwrap());
        let mut server =
            Self { url: String::new(), key: String::new(), data, store, settings, running: None, runtime };
        server.resume();
        server
    }

    /// The directory where its keys are.
    pub fn data(&self) -> &std::path::Path {
        self.data.path()
    }

    /// Stops serving: no new work, open calls finish, streams end. The store stays as it is.
    pub fn pause(&mut self) {
        if let Some(running) = self.running.take() {
            self.runtime.block_on(running.stop());
        }
    }

    /// Serves the same store again, on another port.
    pub fn resume(&mut self) {
        let start = banyan_server::start(self.store.clone(), self.data.path(), self.settings.clone());
        let running = self.runtime.block_on(start).unwrap();
        self.url = format!("http://{}", running.address());
        self.running = Some(running);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.pause();
    }
}
