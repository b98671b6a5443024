//! What is counted, and `GET /metrics`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::app::Shared;
use crate::budget::Refusals;
use crate::caller::Caller;
use crate::problem::Problem;

/// From a call that finds everything in memory to one that waits for a slow disk.
const SECONDS: [f64; 14] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// What a server counts.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    seconds: Family<Asked, Histogram, fn() -> Histogram>,
    /// Requests that are being answered, streams included.
    pub(crate) in_flight: Gauge,
    /// Connections that are open.
    pub(crate) connections: Gauge,
    /// Connections that there was no place for.
    pub(crate) turned_away: Counter,
    subscriptions: Gauge,
    budget_used: Family<OfBudget, Gauge>,
    budget_limit: Family<OfBudget, Gauge>,
    budget_refusals: Family<BudgetRefusal, Counter>,
    /// Subscriptions that ended because they could not keep up.
    pub(crate) lagged: Counter,
    /// Bytes of requests' bodies.
    pub(crate) received: Counter,
    /// Bytes of answers' bodies.
    pub(crate) sent: Counter,
    /// Batches of spans that the collector did not take.
    pub(crate) lost_batches: Counter,
    /// Calls that brought a context along, by what came of it.
    pub(crate) contexts: Family<ContextCall, Counter>,
    /// What was left out of contexts that calls brought along.
    pub(crate) left_out_of_contexts: Family<LeftOut, Counter>,
    head: Gauge,
    searchable: Gauge,
    waiting_events: Gauge,
    replay_read: Gauge,
    replay_events: Gauge,
    poisoned: Gauge,
    damaged: Gauge,
    disk_free: Gauge,
    disk_level: Gauge,
    keys: Gauge,
}

/// What was asked for. Only words that the server itself knows are in it, so that callers cannot make up new ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Asked {
    pub(crate) method: &'static str,
    pub(crate) route: String,
    pub(crate) function: &'static str,
}

/// What was asked for, and how it was answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    method: &'static str,
    route: String,
    function: &'static str,
    status: u16,
}

/// A budget of the whole server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfBudget {
    budget: &'static str,
}

/// Why a budget refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BudgetRefusal {
    budget: &'static str,
    reason: &'static str,
}

/// What came of a context that a call brought along.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ContextCall {
    pub(crate) outcome: &'static str,
}

/// What was left out of a context, and why. Both are words of the server's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct LeftOut {
    pub(crate) what: &'static str,
    pub(crate) why: &'static str,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let seconds: fn() -> Histogram = || Histogram::new(SECONDS);
        let mut metrics = Self {
            registry: Registry::with_prefix("banyan"),
            requests: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            in_flight: Gauge::default(),
            connections: Gauge::default(),
            turned_away: Counter::default(),
            subscriptions: Gauge::default(),
            budget_used: Family::default(),
            budget_limit: Family::default(),
            budget_refusals: Family::default(),
            lagged: Counter::default(),
            received: Counter::default(),
            sent: Counter::default(),
            lost_batches: Counter::default(),
            contexts: Family::default(),
            left_out_of_contexts: Family::default(),
            head: Gauge::default(),
            searchable: Gauge::default(),
            waiting_events: Gauge::default(),
            replay_read: Gauge::default(),
            replay_events: Gauge::default(),
            poisoned: Gauge::default(),
            damaged: Gauge::default(),
            disk_free: Gauge::default(),
            disk_level: Gauge::default(),
            keys: Gauge::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let to = &mut self.registry;
        to.register("build", "The version that runs", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        to.register(
            "requests",
            "Requests answered, by what was asked and how it was answered",
            self.requests.clone(),
        );
        to.register_with_unit(
            "request_duration",
            "How long it took until the answer began",
            Unit::Seconds,
            self.seconds.clone(),
        );
        to.register(
            "requests_in_flight",
            "Requests that are being answered, streams included",
            self.in_flight.clone(),
        );
        to.register("connections", "Connections that are open", self.connections.clone());
        to.register(
            "connections_turned_away",
            "Connections that there was no place for",
            self.turned_away.clone(),
        );
        to.register("subscriptions", "Subscriptions that are open", self.subscriptions.clone());
        let about = "How much of a budget of the whole server is in use: bytes, or a number";
        to.register("budget_used", about, self.budget_used.clone());
        to.register("budget_limit", "How much of it may be in use", self.budget_limit.clone());
        let about = "Requests that a budget refused, by reason: full, share (one key or address has half), revoked (for others)";
        to.register("budget_refusals", about, self.budget_refusals.clone());
        to.register("subscriptions_lagged", "Subscriptions that could not keep up and ended", self.lagged.clone());
        to.register_with_unit("received", "Bodies of requests", Unit::Bytes, self.received.clone());
        to.register_with_unit("sent", "Bodies of answers", Unit::Bytes, self.sent.clone());
        to.register(
            "span_batches_lost",
            "Batches of spans that the collector did not take",
            self.lost_batches.clone(),
        );
        to.register(
            "ocp_calls",
            "Calls that brought an OCP context along, by what came of it",
            self.contexts.clone(),
        );
        to.register(
            "ocp_ignored",
            "What was left out of OCP contexts that calls brought along, and why",
            self.left_out_of_contexts.clone(),
        );
        to.register("commits", "The number of the last commit", self.head.clone());
        let about = "The number of the last commit that searches find; 0 while the index is made";
        to.register("search_commits", about, self.searchable.clone());
        to.register(
            "waiting_event_bytes",
            "Bytes of events that wait for subscribers, over all of them",
            self.waiting_events.clone(),
        );
        to.register(
            "replay_read_bytes",
            "Bytes of records that were read for subscribers that came back, since the start",
            self.replay_read.clone(),
        );
        to.register(
            "replay_event_bytes",
            "Bytes of events that were made of them, since the start",
            self.replay_events.clone(),
        );
        to.register("poisoned", "1 when writing has stopped until the next start", self.poisoned.clone());
        to.register(
            "damaged_entries",
            "Entries with damaged content met since the start; each is logged once",
            self.damaged.clone(),
        );
        to.register_with_unit("disk_free", "What is free on the disk", Unit::Bytes, self.disk_free.clone());
        let about = "0 when the disk has room, 1 when it is short, 2 when it is full and writes are refused";
        to.register("disk_level", about, self.disk_level.clone());
        to.register("keys", "Keys that the server knows", self.keys.clone());
    }

    /// The counters of a budget's refusals.
    pub(crate) fn refusals(&self, budget: &'static str) -> Refusals {
        let counter = |reason| self.budget_refusals.get_or_create(&BudgetRefusal { budget, reason }).clone();
        Refusals { full: counter("full"), share: counter("share"), revoked: counter("revoked") }
    }

    /// Counts a request whose answer begins.
    pub(crate) fn answered(&self, asked: &Asked, status: StatusCode, seconds: f64) {
        let Asked { method, route, function } = asked.clone();
        self.requests.get_or_create(&Answered { method, route, function, status: status.as_u16() }).inc();
        self.seconds.get_or_create(asked).observe(seconds);
    }
}

/// `GET /metrics`, for an operator.
pub(crate) async fn metrics(State(app): State<Shared>, caller: Caller) -> Result<Response, Problem> {
    if !caller.is_operator() {
        return Err(Problem::forbidden("metrics are for a key without scope that may also write"));
    }
    let metrics = &app.metrics;
    metrics.head.set(i64::try_from(app.store.head().0).unwrap_or(i64::MAX));
    metrics.searchable.set(i64::try_from(app.store.searchable().0).unwrap_or(i64::MAX));
    let gauge = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    metrics.waiting_events.set(gauge(app.store.waiting_event_bytes() as u64));
    let replays = app.store.replay_cost();
    metrics.replay_read.set(gauge(replays.bytes_read));
    metrics.replay_events.set(gauge(replays.bytes_of_events));
    metrics.poisoned.set(app.store.poisoned().is_some().into());
    let disk = app.store.disk_space();
    metrics.disk_free.set(i64::try_from(disk.free).unwrap_or(i64::MAX));
    metrics.disk_level.set(disk.level as i64);
    metrics.damaged.set(i64::try_from(app.store.damaged_entries()).unwrap_or(i64::MAX));
    metrics.subscriptions.set(i64::try_from(app.subscriptions.budget().used()).unwrap_or(i64::MAX));
    for budget in app.budgets() {
        let of = OfBudget { budget: budget.label() };
        metrics.budget_used.get_or_create(&of).set(i64::try_from(budget.used()).unwrap_or(i64::MAX));
        metrics.budget_limit.get_or_create(&of).set(i64::try_from(budget.limit()).unwrap_or(i64::MAX));
    }
    metrics.keys.set(i64::try_from(app.keys.all().len()).unwrap_or(i64::MAX));
    let mut page = String::new();
    text::encode(&mut page, &metrics.registry).map_err(|_| Problem::internal())?;
    let mut response = page.into_response();
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}
