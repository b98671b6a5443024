//! A server on a bus: as a worker of an iii engine, or as a small bus of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use banyan::Banyan;
use banyan_iii::hub::{Hub, HubOptions};
use banyan_iii::link::Engine;
use banyan_iii::worker::{StartError, Storage, Worker, WorkerOptions};
use banyan_server::config::Bus;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::failure::Failure;

/// The buses that a server is on.
pub(super) struct OnBuses {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
    /// Where the server is a bus itself.
    pub(super) address: Option<SocketAddr>,
}

/// How many bytes wait between the bus of this process and its own worker.
const BETWEEN: usize = 256 << 10;

impl OnBuses {
    /// Joins the engine and becomes a bus, as asked. An engine that is not there yet is waited for meanwhile.
    pub(super) async fn join(bus: &Bus, store: &Banyan, dir: &Path) -> Result<Self, Failure> {
        let (stop, stopped) = watch::channel(false);
        let mut joined = Self { stop, tasks: Vec::new(), address: None };
        let shared = || Storage::Shared { store: store.clone(), dir: dir.to_owned() };
        if let Some(address) = bus.listen {
            let failed = |error| Failure::trouble("serve/listen", format!("cannot listen on {address}: {error}"));
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            joined.address = Some(listener.local_addr().map_err(failed)?);
            let hub = Hub::new(HubOptions {
                configuration_dir: Some(dir.join(".banyan/iii/configuration")),
                ..HubOptions::default()
            });
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
            let stopped = stopped.clone();
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

async fn run(worker: Worker, mut stop: watch::Receiver<bool>) {
    tokio::select! {
        _ = stop.wait_for(|stop| *stop) => {}
        why = worker.rejected() => tracing::error!(%why, "the engine does not take this worker; HTTP goes on without it"),
    }
    worker.stop().await;
}
