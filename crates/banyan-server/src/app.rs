//! What all requests share, and which address is served by what.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware;
use axum::routing::{delete, get, post};
use banyan::Banyan;
use hyper::StatusCode;
use tokio::sync::{Semaphore, watch};

use crate::budget::{Budget, SharedTexts, Subject};
use crate::events::Places;
use crate::keys::KeyStore;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::rates::Rates;
use crate::settings::Settings;
use crate::traces::Traces;
use crate::{
    backup, caller, calls, console, docs, events, guard, health, history, key_calls, metrics, observe, ocp,
    openapi, portable, purge, resources, spool,
};

/// What all requests share.
pub(crate) struct App {
    pub(crate) store: Banyan,
    pub(crate) settings: Settings,
    pub(crate) keys: Arc<KeyStore>,
    pub(crate) metrics: Metrics,
    pub(crate) rates: Rates,
    pub(crate) traces: Option<Traces>,
    /// Connections, by key or address. Their number is limited where they are taken.
    pub(crate) connections: Arc<Budget>,
    /// Bytes of request bodies in memory.
    pub(crate) request_memory: Arc<Budget>,
    /// Bytes of responses that wait for their readers.
    pub(crate) response_memory: Arc<Budget>,
    /// The leases of texts that several connections are sent at a time.
    pub(crate) texts: SharedTexts,
    /// Places for subscriptions, over all connections.
    pub(crate) subscriptions: Places,
    /// Places for those who read the past for a stream, so that many who come back at once do not take all memory.
    pub(crate) readers: Arc<Semaphore>,
    /// Places for large files that come in, and where they are meanwhile.
    pub(crate) spools: Arc<Budget>,
    pub(crate) spool: PathBuf,
    /// Where keys are, for backups that take them.
    pub(crate) key_file: PathBuf,
    stop: watch::Receiver<bool>,
}

pub(crate) type Shared = Arc<App>;

/// How many read the past for streams at a time.
const READERS: usize = 8;

impl App {
    pub(crate) fn new(
        store: Banyan,
        data: &Path,
        settings: Settings,
        keys: Arc<KeyStore>,
        stop: watch::Receiver<bool>,
        most: usize,
    ) -> Self {
        let limits = &settings.limits;
        let metrics = Metrics::new();
        let budget =
            |subject: Subject, limit: usize| Budget::new(subject, limit as u64, metrics.refusals(subject.label));
        let connections = Subject {
            label: "connections",
            setting: "limits.connections",
            what: "connections",
            code: "http/too_many_connections",
        };
        let requests = Subject {
            label: "request_memory",
            setting: "limits.request_memory",
            what: "bytes of request bodies",
            code: "http/busy",
        };
        let responses = Subject {
            label: "response_memory",
            setting: "limits.response_memory",
            what: "bytes of responses",
            code: "http/busy",
        };
        // One body of the largest size then fits into what a holder gets while others want nothing.
        let largest = limits.body_bytes.saturating_mul(5) / 4;
        let request_memory = limits.request_memory.max(largest);
        Self {
            rates: Rates::new(limits.requests_per_second),
            connections: budget(connections, most),
            request_memory: budget(requests, request_memory),
            response_memory: budget(responses, limits.response_memory),
            texts: SharedTexts::default(),
            subscriptions: Places::new(limits.subscriptions, metrics.refusals("subscriptions")),
            readers: Arc::new(Semaphore::new(READERS)),
            spools: spool::places(metrics.refusals("imports")),
            spool: data.join(".banyan/incoming"),
            key_file: data.join(banyan::backup::KEYS),
            traces: None,
            store,
            settings,
            keys,
            metrics,
            stop,
        }
    }

    /// Every budget of the whole server.
    pub(crate) fn budgets(&self) -> [&Arc<Budget>; 5] {
        [&self.connections, &self.request_memory, &self.response_memory, self.subscriptions.budget(), &self.spools]
    }

    /// Whether everyone who reaches the server is taken for its owner: keys were never in force, and only this machine reaches it.
    pub(crate) fn open(&self) -> bool {
        self.keys.is_open() && self.settings.listen.ip().is_loopback()
    }

    /// Whether the server takes no new work.
    pub(crate) fn stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Tells when the server is told to stop.
    pub(crate) fn stop_signal(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }

    /// Waits until the server is told to stop.
    pub(crate) async fn stopped(&self) {
        let mut stop = self.stop.clone();
        // A sender that is gone has stopped the server, too.
        let _ = stop.wait_for(|stop| *stop).await;
    }
}

/// Every address, and those of the program that the server is part of.
pub(crate) fn router(app: &Shared, own: Router) -> Router {
    let for_callers = Router::new()
        .route("/v1/keys", get(key_calls::list).post(key_calls::create))
        .route("/v1/keys/{key_id}", delete(key_calls::remove))
        .route("/v1/purge", post(purge::purge))
        .route("/metrics", get(metrics::metrics))
        .merge(calls::routes())
        .merge(resources::routes())
        .merge(events::routes())
        .merge(history::routes())
        .merge(portable::routes())
        .merge(backup::routes())
        .merge(ocp::routes())
        .merge(own.with_state(()))
        .layer(middleware::from_fn_with_state(Arc::clone(app), caller::authenticate));
    Router::new()
        .route("/", get(docs::index))
        .route("/docs", get(docs::page))
        .route("/sessions/{session_id}", get(console::page))
        .route("/console/{file}", get(console::file))
        .route("/openapi.json", get(openapi::document))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .merge(for_callers)
        .fallback(no_such_address)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(Arc::clone(app), guard::check))
        .layer(middleware::from_fn_with_state(Arc::clone(app), observe::observe))
        .with_state(Arc::clone(app))
}

async fn no_such_address(request: Request) -> Problem {
    Problem::no_such_address(format!(
        "nothing is served at {} {}; /openapi.json lists what there is",
        request.method(),
        request.uri().path()
    ))
}

/// The addresses know their methods; axum adds them as `Allow`.
async fn wrong_method(request: Request) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "http/method_not_allowed",
        format!("{} does not take {}; `Allow` names what it takes", request.uri().path(), request.method()),
    )
}
