//! What the worker does for the bus: it answers calls, takes bindings, and reads its settings again when they change.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use banyan::CallError;
use banyan::model::{DeletedEvent, Error, Event, EventPayload, Position, SessionId};
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use uuid::Uuid;

use super::bindings::Bindings;
use super::config::WorkerConfig;
use super::demand::Demand;
use super::names::Names;
use super::offers::{CONFIG_STATUS, ON_CONFIG_CHANGE};
use super::replay::{Replay, Whole};
use super::runtime::{Built, OpenStore, Runtime, Surroundings};
use super::status::Status;
use super::{Storage, configuration, manifest, offers};
use crate::link::{Call, Connection, Engine, Link, Service};
use crate::wire::{ErrorBody, RegisterTrigger};

/// See the module.
pub(super) struct Sessions {
    engine: Engine,
    link: OnceLock<Arc<Link>>,
    open: Option<OpenStore>,
    /// The directory that the names of bridges are kept in.
    bridges_in: Option<PathBuf>,
    demand: Demand,
    /// What answers; nothing until the settings are known.
    runtime: RwLock<Option<Arc<Runtime>>>,
    /// The settings that it was built by.
    settings: Mutex<Option<WorkerConfig>>,
    bindings: Bindings,
    bound: Notify,
    status: Status,
    /// Whether the engine lost the settings while it ran. If it finds them again, it does not know any more what they are.
    forgotten: AtomicBool,
    /// One change of the settings at a time.
    reloading: tokio::sync::Mutex<()>,
    /// The worker's own binding to its settings; the same one for as long as it runs.
    binding: String,
    offered: Mutex<Offered>,
}

/// Whether the engine was told of the functions on this connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Offered {
    Nothing,
    Everything,
}

/// What a caller of the store protocol is told who asks the wrong instance.
const NOT_MAIN: &str =
    "this instance stores through a main instance itself, and does not serve the store protocol";

/// What became of settings that are gone.
const NO_SETTINGS: &str = "there is no configuration `session-manager` any more: it was deleted, or its file cannot be read; \
    what was in use stays in use until there is one again";

/// So often it is asked whether the engine knows the functions by now.
const ASKED: usize = 100;

/// How long a replaced store is waited for, while calls on it finish.
const LAST_CALLS: Duration = Duration::from_secs(10);

impl Sessions {
    pub(super) fn new(engine: Engine, storage: &Storage) -> Arc<Self> {
        let (open, bridges_in) = match storage {
            Storage::Configured { open, bridges_in } => (Some(Arc::clone(open)), bridges_in.clone()),
            Storage::Shared { .. } => (None, None),
        };
        Arc::new(Self {
            engine,
            link: OnceLock::new(),
            open,
            bridges_in,
            demand: Demand::new(),
            runtime: RwLock::default(),
            settings: Mutex::default(),
            bindings: Bindings::default(),
            bound: Notify::new(),
            status: Status::default(),
            forgotten: AtomicBool::new(false),
            reloading: tokio::sync::Mutex::default(),
            binding: Uuid::new_v4().to_string(),
            offered: Mutex::new(Offered::Nothing),
        })
    }

    pub(super) fn use_link(&self, link: Arc<Link>) {
        let _ = self.link.set(link);
    }

    pub(super) fn link(&self) -> Option<&Arc<Link>> {
        self.link.get()
    }

    /// The engine that the worker is on.
    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What a store that is built needs to know of this worker.
    pub(super) fn surroundings(&self, open: OpenStore) -> Surroundings {
        Surroundings { open, engine: self.engine.clone(), names: self.bridges_in.as_deref().map(Names::of) }
    }

    /// Begins to answer, and says so to the engine.
    pub(super) async fn open_for_business(self: &Arc<Self>, runtime: Runtime, config: WorkerConfig) {
        *self.settings() = Some(config);
        self.bindings.remember(runtime.cursors.as_ref().map(|cursors| cursors.load()).unwrap_or_default());
        let runtime = Arc::new(runtime);
        *self.runtime.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&runtime));
        let Some(link) = self.link.get() else { return };
        if let Some(connection) = link.connection() {
            self.offer_on(&connection).await;
        }
        self.be_found(link).await;
        // Whoever was bound before is bound again: an engine says so when it is told of the triggers.
        runtime.listen().await;
    }

    /// Waits until the engine knows the functions, so that whoever is told that the worker is there finds them.
    async fn be_found(&self, link: &Link) {
        for _ in 0..ASKED {
            if link.call(CONFIG_STATUS, "{}", Duration::from_secs(1)).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tracing::warn!("the engine does not say that it knows this worker's functions");
    }

    /// Offers everything, unless that was done on this connection.
    async fn offer_on(&self, connection: &Connection) {
        if self.offer() == Offered::Everything {
            return;
        }
        for frame in offers::frames(&self.binding) {
            if !connection.say(frame).await {
                return;
            }
        }
    }

    /// Notes that everything is offered, and says what was before.
    fn offer(&self) -> Offered {
        std::mem::replace(&mut *self.offered(), Offered::Everything)
    }

    fn offered(&self) -> MutexGuard<'_, Offered> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settings(&self) -> MutexGuard<'_, Option<WorkerConfig>> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn runtime(&self) -> Option<Arc<Runtime>> {
        self.runtime.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps the engine told as much of each function as it should be.
    pub(super) async fn follow_demand(&self) {
        if let Some(link) = self.link.get() {
            self.demand.follow(link).await;
        }
    }

    /// Waits for the next binding.
    pub(super) async fn new_binding(&self) {
        self.bound.notified().await;
    }

    /// Writes down how far bindings have come.
    pub(super) fn save_positions(&self) {
        if let Some(cursors) = self.runtime().as_ref().and_then(|runtime| runtime.cursors.as_ref()) {
            cursors.save(self.bindings.positions());
        }
    }

    pub(super) async fn stop(&self) {
        self.save_positions();
        if let Some(link) = self.link.get() {
            link.close().await;
        }
        self.save_positions();
        self.bindings.end();
        let runtime = self.runtime.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            retire(runtime).await;
        }
    }

    /// Reads the settings again, and works by them.
    async fn reload(self: &Arc<Self>) -> Result<(), String> {
        let _one = self.reloading.lock().await;
        let (Some(runtime), Some(link)) = (self.runtime(), self.link.get()) else { return Ok(()) };
        let value = match configuration::value(link).await {
            Ok(value) => value,
            Err(why) => {
                self.status.rejected(format!("the configuration could not be read: {why}"));
                return Err(why.to_string());
            }
        };
        // Nothing is no wish for the store of a first start.
        let Some(value) = value else {
            self.forgotten.store(true, Ordering::Release);
            tracing::error!("{NO_SETTINGS}");
            self.status.rejected(NO_SETTINGS.to_owned());
            return Ok(());
        };
        if self.forgotten.load(Ordering::Acquire) {
            match configuration::describe(link).await {
                Ok(()) => self.forgotten.store(false, Ordering::Release),
                Err(why) => tracing::warn!(%why, "the engine could not be told again what can be configured"),
            }
        }
        let applied = match WorkerConfig::read(&value) {
            Ok(config) => self.apply(&config, &runtime).await.map(|()| config),
            Err(why) => Err(format!("the configuration is not valid: {why}")),
        };
        match applied {
            Ok(config) => {
                *self.settings() = Some(config);
                self.status.applied();
            }
            Err(why) => {
                tracing::error!(%why, "the changed configuration is not used; the last good one stays");
                self.status.rejected(why);
            }
        }
        Ok(())
    }

    async fn apply(self: &Arc<Self>, config: &WorkerConfig, runtime: &Arc<Runtime>) -> Result<(), String> {
        if runtime.is(&config.adapter) {
            runtime.limit(config);
            return Ok(());
        }
        let Some(open) = &self.open else { return Err(runtime.stays()) };
        let next = Arc::new(Runtime::build(config, &self.surroundings(Arc::clone(open)), Built::InPlace).await?);
        // What happens there from here on is told as it happens.
        let since = next.now();
        let after = next.sessions().await;
        *self.runtime.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&next));
        tracing::info!(adapter = ?config.adapter, "sessions are stored elsewhere from now on");
        // Nothing new begins in the old store any more, and it is open until it is retired.
        let before = runtime.sessions().await;
        let (gone, sessions) = match (before, after) {
            (Ok(before), Ok(after)) => (gone(&before, &after), ids(after)),
            (Err(error), Ok(after)) => {
                tracing::warn!(%error, "subscribers are not told which sessions are gone");
                (Arc::default(), ids(after))
            }
            (_, Err(error)) => {
                tracing::warn!(%error, "subscribers are not told what the new store holds");
                Default::default()
            }
        };
        let whole = Whole { gone, sessions, from: next.whole() };
        self.bindings.begin_anew(&next, since, || Replay::of(whole.clone()));
        retire(Arc::clone(runtime)).await;
        Ok(())
    }

    /// The settings may have changed while the engine was away, and it may not know them any more.
    async fn settle_in(self: Arc<Self>, connection: Arc<Connection>) {
        self.offer_on(&connection).await;
        let Some(link) = self.link.get() else { return };
        // What the engine cannot find may be something that it cannot read, and that somebody is about to correct.
        if !self.forgotten.load(Ordering::Acquire) {
            let settings = self.settings().clone().unwrap_or_default();
            if let Err(why) = configuration::register(link, &settings.to_value()).await {
                tracing::warn!(%why, "the configuration could not be registered again");
                return;
            }
        }
        let _ = self.reload().await;
    }
}

/// Closes a store once the calls on it are done.
async fn retire(runtime: Arc<Runtime>) {
    let deadline = tokio::time::Instant::now() + LAST_CALLS;
    while Arc::strong_count(&runtime) > 2 && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    runtime.close().await;
}

/// What subscribers hear of sessions that the new store does not have.
fn gone(before: &[super::runtime::Known], after: &[super::runtime::Known]) -> Arc<[Arc<Event>]> {
    let there: std::collections::HashSet<&SessionId> = after.iter().map(|known| &known.id).collect();
    let timestamp = banyan::now_ms();
    let deleted = before.iter().filter(|known| !there.contains(&known.id)).map(|known| {
        let payload = EventPayload::Deleted(DeletedEvent { session_id: known.id.clone(), timestamp });
        Arc::new(Event::new(Position::BEGINNING, payload, None, known.metadata.clone().map(Arc::new)))
    });
    deleted.collect()
}

fn ids(sessions: Vec<super::runtime::Known>) -> Arc<[SessionId]> {
    sessions.into_iter().map(|known| known.id).collect()
}

impl Service for Sessions {
    fn offers(&self) -> Vec<String> {
        if self.runtime().is_none() {
            *self.offered() = Offered::Nothing;
            return Vec::new();
        }
        self.offer();
        offers::frames(&self.binding)
    }

    fn identity(&self) -> String {
        manifest::identity()
    }

    fn call(self: Arc<Self>, call: Call) -> BoxFuture<'static, Result<String, ErrorBody<'static>>> {
        self.demand.called(&call.function_id);
        Box::pin(async move {
            match call.function_id.as_str() {
                CONFIG_STATUS => Ok(self.status.json()),
                ON_CONFIG_CHANGE => {
                    if configuration::are_gone(&call.data) {
                        self.forgotten.store(true, Ordering::Release);
                    }
                    match self.reload().await {
                        Ok(()) => Ok(r#"{"ok":true}"#.to_owned()),
                        Err(why) => Err(failed(&why)),
                    }
                }
                store if banyan::store_functions().iter().any(|function| function.id == store) => {
                    let runtime = self.runtime().ok_or_else(|| failed("the worker is starting; try again"))?;
                    let answer = runtime.store_call(store, call.data.as_bytes()).await;
                    answer.ok_or_else(|| failed(NOT_MAIN))?.map_err(refused)
                }
                function_id => {
                    let runtime = self.runtime().ok_or_else(|| failed("the worker is starting; try again"))?;
                    runtime.call(function_id, call.data.as_bytes()).await.map_err(refused)
                }
            }
        })
    }

    fn bind(
        self: Arc<Self>,
        connection: &Arc<Connection>,
        binding: RegisterTrigger<'_>,
    ) -> Result<(), ErrorBody<'static>> {
        let refuse = |error: &Error| ErrorBody {
            code: "trigger_registration_failed".into(),
            message: error.to_string().into(),
            stacktrace: None,
        };
        let runtime =
            || self.runtime().ok_or_else(|| Error::storage("the worker is starting; try again").retryable());
        self.bindings.bind(runtime, connection, binding).map_err(|error| refuse(&error))?;
        self.bound.notify_one();
        Ok(())
    }

    fn unbind(self: Arc<Self>, id: &str) {
        self.bindings.unbind(id);
    }

    fn connected(self: Arc<Self>, connection: &Arc<Connection>) {
        if self.runtime().is_some() {
            tokio::spawn(self.settle_in(Arc::clone(connection)));
        }
    }

    fn lost(self: Arc<Self>) {
        self.bindings.pause();
    }
}

/// An error as the bus carries it: the code where a program looks for it, and in the text, where others search.
fn refused(error: CallError) -> ErrorBody<'static> {
    match error {
        CallError::Refused(error) => {
            ErrorBody { code: error.code.as_str().into(), message: error.to_string().into(), stacktrace: None }
        }
        unknown @ CallError::UnknownFunction { .. } => {
            ErrorBody { code: "function_not_found".into(), message: unknown.to_string().into(), stacktrace: None }
        }
    }
}

fn failed(why: &str) -> ErrorBody<'static> {
    ErrorBody { code: "invocation_failed".into(), message: why.to_owned().into(), stacktrace: None }
}
