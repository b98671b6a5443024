//! A small bus for when there is no engine: it speaks an engine's side of the protocol, so that the SDKs connect to it as they would
//! to an engine, offer functions and kinds of triggers, and call each other.
//!
//! It has what workers need to find each other, and a configuration. It has no queues, state, streams, pubsub, cron, HTTP or channels.

mod admission;
mod builtins;
mod calls;
mod configuration;
mod connection;
mod directory;
mod frames;
mod functions;
mod handshake;
mod outbox;
mod registry;
mod relay;
mod spaces;
mod triggers;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use tokio_tungstenite::tungstenite::handshake::server::Request;

pub use admission::{Admission, Refusal, Withdrawal};
use configuration::Configuration;
use registry::Registry;

/// The namespace of whoever names none.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// How long functions may go on changing before those who asked for it are told of it.
const FUNCTIONS_SETTLE: Duration = Duration::from_millis(250);

/// What a bus keeps to.
#[derive(Clone, Debug)]
pub struct HubOptions {
    /// Where `configuration::*` is stored; in memory only when there is no such directory.
    pub configuration_dir: Option<PathBuf>,
    /// The most bytes that a message may have. Clients refuse frames of more than 16 MiB.
    pub frame_bytes: usize,
    /// The most bytes that wait for one connection. Whoever falls behind further is disconnected.
    pub queue_bytes: usize,
    /// The most connections at a time.
    pub connections: usize,
    /// How often a connection is asked whether it is still there.
    pub ping_every: Duration,
    /// A connection that was not heard of for so long, or took nothing for so long, is ended.
    pub silence: Duration,
    /// How long a worker's registrations wait for it to say which namespace it is in.
    pub announce_within: Duration,
}

impl Default for HubOptions {
    fn default() -> Self {
        Self {
            configuration_dir: None,
            frame_bytes: 16 << 20,
            queue_bytes: 64 << 20,
            connections: 1024,
            ping_every: Duration::from_secs(20),
            silence: Duration::from_secs(120),
            announce_within: Duration::from_secs(5),
        }
    }
}

/// A bus. A clone is the same bus.
#[derive(Clone)]
pub struct Hub {
    shared: Arc<Shared>,
}

struct Shared {
    options: HubOptions,
    registry: Mutex<Registry>,
    configuration: tokio::sync::Mutex<Configuration>,
    connections: AtomicUsize,
    admission: Option<Arc<dyn Admission>>,
}

impl Hub {
    /// A bus that nobody is connected to. What is stored in the configuration directory is read here.
    pub fn new(options: HubOptions) -> Self {
        Self::build(options, None)
    }

    /// A bus that admits only some of those that connect to its listener.
    pub fn with_admission(options: HubOptions, admission: Arc<dyn Admission>) -> Self {
        Self::build(options, Some(admission))
    }

    fn build(options: HubOptions, admission: Option<Arc<dyn Admission>>) -> Self {
        let configuration = Configuration::open(options.configuration_dir.clone());
        let shared = Shared {
            options,
            registry: Mutex::default(),
            configuration: tokio::sync::Mutex::new(configuration),
            connections: AtomicUsize::new(0),
            admission,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Takes connections until `stop`, and then ends those that it took.
    pub async fn serve(&self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let (stopping, stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next() => {}
                taken = listener.accept() => match taken {
                    Ok((stream, peer)) => {
                        let _ = stream.set_nodelay(true);
                        let (hub, stopped) = (self.clone(), stopped.clone());
                        connections.spawn(async move { hub.connection(stream, Some(peer.ip()), stopped).await });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the bus could not take a connection");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
            }
        }
        drop(listener);
        stopping.send_replace(true);
        while connections.join_next().await.is_some() {}
    }

    /// Serves one connection of this process, until it ends. It is admitted as it is.
    pub async fn serve_stream<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (_never, stopped) = watch::channel(false);
        self.connection(stream, None, stopped).await;
    }

    async fn connection<S>(&self, stream: S, peer: Option<IpAddr>, stopped: watch::Receiver<bool>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let seat = Seat::take(&self.shared);
        let full = seat.number > self.shared.options.connections;
        // Only what comes from a listener has a peer.
        let admission = self.shared.admission.clone().filter(|_| peer.is_some());
        connection::run(self, stream, peer, stopped, Door { full, admission }).await;
        drop(seat);
    }

    fn options(&self) -> &HubOptions {
        &self.shared.options
    }

    /// Held for as long as it takes to look something up and to queue messages, never while something is waited for.
    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.shared.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Functions may have changed: those who asked for it are told, once for what changes in a short while.
    fn functions_changed(&self) {
        if !self.registry().owes_functions() {
            return;
        }
        let hub = self.clone();
        // A connection may also end with the runtime, and then nobody is left to be told.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(FUNCTIONS_SETTLE).await;
                hub.registry().tell_functions();
            });
        }
    }
}

/// What decides whether a connection may join.
struct Door {
    /// Whether there are as many connections as there may be.
    full: bool,
    admission: Option<Arc<dyn Admission>>,
}

/// A place among the connections, given back when it is dropped.
struct Seat<'a> {
    shared: &'a Shared,
    number: usize,
}

impl<'a> Seat<'a> {
    fn take(shared: &'a Shared) -> Self {
        Self { shared, number: shared.connections.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
