//! Starting a server and stopping it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use banyan::Banyan;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::app::{self, App, Shared};
use crate::bus_gate::BusGate;
use crate::keys::{KeyStore, Reach, RefusedKey};
use crate::settings::Settings;
use crate::tls::{Certificates, TlsError};
use crate::traces::{Traces, TracesError};
use crate::{connections, descriptors};

/// Why a server did not start.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: std::io::Error,
    },
    /// The address is reachable from other machines, and there is no key.
    #[error("{0} can be reached from other machines, and there is no key yet; make one, or listen on 127.0.0.1")]
    Unprotected(SocketAddr),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Spans cannot be sent.
    #[error(transparent)]
    Traces(#[from] TracesError),
}

/// A server that runs.
pub struct Running {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    app: Shared,
}

/// Starts a server on a store. `data` is the directory where its keys are.
pub async fn start(store: Banyan, data: &Path, settings: Settings) -> Result<Running, ServeError> {
    start_with(store, data, settings, Router::new()).await
}

/// The same for a program that serves something of its own beside Banyan. Its addresses ask for a key when Banyan's do.
pub async fn start_with(
    store: Banyan,
    data: &Path,
    settings: Settings,
    own: Router,
) -> Result<Running, ServeError> {
    let keys = Arc::new(KeyStore::open(data));
    if let Err(error) = keys.settle() {
        tracing::warn!(%error, "cannot record that keys are in force");
    }
    if keys.is_open() && !settings.listen.ip().is_loopback() {
        return Err(ServeError::Unprotected(settings.listen));
    }
    let tls = settings.tls.as_ref().map(Certificates::load).transpose()?.map(Arc::new);
    let most = descriptors::connections(settings.limits.connections, descriptors::raise());
    let listening = |error| ServeError::Listen { address: settings.listen, error };
    let listener = TcpListener::bind(settings.listen).await.map_err(listening)?;
    let address = listener.local_addr().map_err(listening)?;
    let (stop, stopped) = watch::channel(false);
    let mut app = App::new(store, data, settings, keys, stopped, most);
    if let Some(traces) = &app.settings.traces {
        app.traces = Some(Traces::start(traces, app.metrics.lost_batches.clone())?);
    }
    // What a process that was killed had just begun to take in.
    let _ = std::fs::remove_dir_all(&app.spool);
    let app = Arc::new(app);
    let router = app::router(&app, own);
    tokio::spawn(follow_keys(Arc::clone(&app)));
    if let Some(tls) = &tls {
        tokio::spawn(Arc::clone(tls).follow(Arc::clone(&app)));
    }
    let accepting = tokio::spawn(connections::accept(listener, tls, router, Arc::clone(&app), most));
    Ok(Running { address, stop, accepting, app })
}

/// Reads the keys again when they change, and logs which are refused and when every call is.
async fn follow_keys(app: Arc<App>) {
    let mut tick = tokio::time::interval(Duration::from_millis(250));
    let (mut reach, mut refused) = (None, Vec::new());
    loop {
        tokio::select! {
            _ = tick.tick() => {
                app.keys.refresh();
                let now = app.keys.reach();
                if let Reach::NoOne(reason) = &now
                    && reach.as_ref() != Some(&now)
                {
                    tracing::error!(reason, "every call is refused");
                }
                reach = Some(now);
                let now = app.keys.refused();
                for key @ RefusedKey { id, reason } in &now {
                    if !refused.contains(key) {
                        tracing::warn!(key = id, reason, "a key is refused");
                    }
                }
                refused = now;
            }
            () = app.stopped() => return,
        }
    }
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The keys that admit callers.
    pub fn keys(&self) -> &Arc<KeyStore> {
        &self.app.keys
    }

    /// Who may join a bus that this process is.
    pub fn bus_gate(&self) -> BusGate {
        BusGate(Arc::clone(&self.app))
    }

    /// Takes no new work, lets open calls finish, ends streams, and returns when all of that is done. The store stays open.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.accepting.await;
        if let Some(traces) = &self.app.traces {
            traces.stop().await;
        }
    }
}
