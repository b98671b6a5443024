//! A server on a bus: as a worker of an iii engine, or as a small bus of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use banyan::Banyan;
use banyan_iii::hub::{Admission, Hub, HubOptions, Refusal, Request, Withdrawal};
use banyan_iii::link::Engine;
use banyan_iii::worker::{StartError, Storage, Worker, WorkerOptions};
use banyan_server::config::{Bus, BusAccess};
use banyan_server::{BusGate, BusRefusal, KeyStore, Running};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::args::quoted;
use crate::failure::Failure;

/// The buses that a server is on.
pub(super) struct OnBuses {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
    /// Where the server is a bus itself.
    pub(super) address: Option<SocketAddr>,
    /// The engine that it joins.
    pub(super) engine: Option<String>,
}

/// How many bytes wait between the bus of this process and its own worker.
const BETWEEN: usize = 256 << 10;

impl OnBuses {
    /// Joins the engine and becomes a bus, as asked. An engine that is not there yet is waited for meanwhile.
    pub(super) async fn join(bus: &Bus, store: &Banyan, dir: &Path, running: &Running) -> Result<Self, Failure> {
        if bus.engine.is_some() && bus.open == BusAccess::Closed {
            must_be_open(running.keys(), dir, "serve --iii").map_err(Failure::usage)?;
        }
        let (stop, stopped) = watch::channel(false);
        let mut joined = Self { stop, tasks: Vec::new(), address: None, engine: bus.engine.clone() };
        let shared = || Storage::Shared { store: store.clone(), dir: dir.to_owned() };
        if let Some(address) = bus.listen {
            let failed = |error| Failure::trouble("serve/listen", format!("cannot listen on {address}: {error}"));
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            joined.address = Some(listener.local_addr().map_err(failed)?);
            let options = HubOptions {
                configuration_dir: Some(dir.join(".banyan/iii/configuration")),
                ..HubOptions::default()
            };
            let hub = Hub::with_admission(options, Arc::new(KeyHolders(running.bus_gate())));
            let mut told = stopped.clone();
            let serving = hub.clone();
            joined.tasks.push(tokio::spawn(async move {
                serving.serve(listener, async move { drop(told.wait_for(|stop| *stop).await) }).await;
            }));
            let here = Engine::Here(Arc::new(move || {
                let (ours, theirs) = tokio::io::duplex(BETWEEN);
                let hub = hub.clone();
                tokio::spawn(async move { hub.serve_stream(theirs).await });
                ours
            }));
            let options = WorkerOptions { engine: here, storage: shared(), seed: None };
            // Nobody finds a bus without the functions that it is there for.
            let worker = Worker::start(options, stopped.clone()).await;
            joined.keep(worker.map_err(|error| Failure::trouble("worker/failed", error.to_string()))?);
        }
        if let Some(url) = &bus.engine {
            let options = WorkerOptions { engine: Engine::Url(url.clone()), storage: shared(), seed: None };
            let stopped = match bus.open {
                BusAccess::Open => stopped.clone(),
                BusAccess::Closed => joined.until_keys(running.keys()),
            };
            joined.tasks.push(tokio::spawn(async move {
                match Worker::start(options, stopped.clone()).await {
                    Ok(worker) => run(worker, stopped).await,
                    Err(StartError::Stopped) => {}
                    Err(error) => {
                        tracing::error!(%error, "the engine could not be joined; HTTP goes on without it")
                    }
                }
            }));
        }
        Ok(joined)
    }

    /// Turns true when the buses are left, or when keys come into force, which the engine does not check.
    fn until_keys(&mut self, keys: &Arc<KeyStore>) -> watch::Receiver<bool> {
        let (stop, stopped) = watch::channel(false);
        let (mut left, mut changes, keys) = (self.stop.subscribe(), keys.changes(), Arc::clone(keys));
        changes.mark_changed();
        self.tasks.push(tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = left.wait_for(|left| *left) => break,
                    changed = changes.changed() => if changed.is_err() || !keys.is_open() {
                        tracing::error!("the directory has keys, which the engine does not check: the engine's bus is left; --iii-open would stay");
                        break;
                    }
                }
            }
            stop.send_replace(true);
        }));
        stopped
    }

    fn keep(&mut self, worker: Worker) {
        self.tasks.push(tokio::spawn(run(worker, self.stop.subscribe())));
    }

    /// Leaves every bus.
    pub(super) async fn leave(self) {
        self.stop.send_replace(true);
        for task in self.tasks {
            let _ = task.await;
        }
    }
}

/// Refuses a directory with keys to a bus that checks none.
pub(super) fn must_be_open(keys: &KeyStore, dir: &Path, command: &str) -> Result<(), String> {
    if keys.is_open() {
        return Ok(());
    }
    Err(format!(
        "{} has keys, and an iii engine checks none: everyone on its bus could do everything; pass --iii-open to `banyan {command}` to allow that, or use `banyan serve --iii-listen`, which admits holders of keys",
        quoted(&dir.display().to_string())
    ))
}

/// Admits to the bus of this process whom the server admits as an operator.
struct KeyHolders(BusGate);

impl Admission for KeyHolders {
    fn admit(&self, request: &Request) -> Result<Withdrawal, Refusal> {
        match self.0.admit(request) {
            Ok(pass) => Ok(Box::pin(pass.withdrawn())),
            Err(BusRefusal { status, reason }) => Err(Refusal { status, reason: format!("{reason}\n") }),
        }
    }
}

async fn run(worker: Worker, mut stop: watch::Receiver<bool>) {
    tokio::select! {
        _ = stop.wait_for(|stop| *stop) => {}
        why = worker.rejected() => tracing::error!(%why, "the engine does not take this worker; HTTP goes on without it"),
    }
    worker.stop().await;
}
