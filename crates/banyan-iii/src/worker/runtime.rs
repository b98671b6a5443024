//! What answers calls: a store of this machine, or a main instance elsewhere. It is replaced as a whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use banyan::model::{
    Error, EventFilter, EventType, ListOrder, ListRequest, ListResponse, Object, Position, SessionId,
};
use banyan::rules::Limits;
use banyan::{Banyan, CallError, OpenError, Options};
use uuid::Uuid;

use super::config::{Adapter, BridgeConfig, FsConfig, WorkerConfig, same_engine};
use super::cursors::Cursors;
use super::names::Names;
use super::relay::Relay;
use super::replay::Shelf;
use super::source::Source;
use crate::bridge::{Bridge, Main};
use crate::link::{Engine, Link};

/// How many bytes of events are kept for a bridge's subscriber that is away. No event counts less than 256 bytes.
const KEPT: usize = 64 << 20;

/// Opens a data directory.
pub type OpenStore = Arc<dyn Fn(&Path) -> Result<Banyan, OpenError> + Send + Sync>;

/// What a store that is built needs to know of the worker.
pub(super) struct Surroundings {
    /// How a directory is opened.
    pub(super) open: OpenStore,
    /// The engine that the worker is on.
    pub(super) engine: Engine,
    /// Where the names of bridges are kept, if they are.
    pub(super) names: Option<Names>,
}

/// When a store is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Built {
    /// At the start of the worker: those who were bound before are about to bind again.
    AtTheStart,
    /// To take another one's place: those who are bound are told all that it holds.
    InPlace,
}

/// A session, as far as a subscriber who loses it must know it.
pub(super) struct Known {
    pub(super) id: SessionId,
    pub(super) metadata: Option<Object>,
}

/// See the module.
pub(super) struct Runtime {
    pub(super) adapter: Adapter,
    pub(super) cursors: Option<Cursors>,
    /// Who tells events: the store itself, or one that is told them by the main instance.
    events: Banyan,
    back: Back,
}

enum Back {
    /// A store that nobody else in this process uses.
    Own,
    /// A store that others in this process use as well.
    Shared,
    /// A main instance elsewhere.
    Main { bridge: Arc<Bridge>, main: Arc<dyn Main>, link: Arc<Link>, relay: Arc<Relay> },
}

impl Runtime {
    /// Opens what a configuration asks for.
    pub(super) async fn build(
        config: &WorkerConfig,
        surroundings: &Surroundings,
        built: Built,
    ) -> Result<Self, String> {
        let runtime = match &config.adapter {
            Adapter::Fs(fs) => Self::open(fs, surroundings).await?,
            Adapter::Bridge(bridge) => Self::connect(bridge, surroundings, built)?,
        };
        runtime.limit(config);
        if built == Built::InPlace {
            runtime.listen().await;
        }
        Ok(runtime)
    }

    /// Wants to hear what happens elsewhere. Whoever is told of it has to be bound by now.
    pub(super) async fn listen(&self) {
        if let Back::Main { link, relay, .. } = &self.back {
            relay.listen(link).await;
        }
    }

    async fn open(fs: &FsConfig, surroundings: &Surroundings) -> Result<Self, String> {
        let (path, open) = (fs.path(), Arc::clone(&surroundings.open));
        let cursors = Some(Cursors::of(&path, &surroundings.engine));
        let opened = tokio::task::spawn_blocking(move || {
            open(&path).map_err(|error| format!("{}: {error}", path.display()))
        });
        let events = opened.await.map_err(|error| error.to_string())??;
        Ok(Self { adapter: Adapter::Fs(fs.clone()), cursors, events, back: Back::Own })
    }

    /// Whether the main instance can be reached is found out by the calls.
    fn connect(config: &BridgeConfig, surroundings: &Surroundings, built: Built) -> Result<Self, String> {
        if !config.url.starts_with("ws://") {
            return Err(format!(
                "adapter.config.url must be an address such as ws://main:49134, not `{}`",
                config.url
            ));
        }
        if let Engine::Url(own) = &surroundings.engine
            && same_engine(own, &config.url)
        {
            return Err(format!(
                "a bridge cannot lead to the engine that it is on: adapter.config.url is {}, and this worker is on {own}",
                config.url
            ));
        }
        // It stores nothing, and keeps what is told for those whose engine is away. They share the events that they have in common.
        let options = Options { subscriber_bytes: KEPT, subscriber_events: KEPT / 256, ..Options::default() };
        let events = Banyan::in_memory(options).map_err(|error| error.to_string())?;
        let own = &surroundings.engine;
        let name = match (&surroundings.names, built) {
            (None, _) => Uuid::new_v4(),
            (Some(names), Built::AtTheStart) => names.last(own, &config.url),
            (Some(names), Built::InPlace) => names.fresh(own, &config.url),
        };
        let (relay, link, main) = Relay::open(config, events.clone(), name);
        let main: Arc<dyn Main> = Arc::new(main);
        let bridge = Arc::new(Bridge::new(Arc::clone(&main), Limits::default()));
        relay.serves(Arc::clone(&bridge));
        let back = Back::Main { bridge, main, link, relay };
        Ok(Self { adapter: Adapter::Bridge(config.clone()), cursors: None, events, back })
    }

    /// A store that is open already, and used by others in this process.
    pub(super) fn shared(store: Banyan, dir: &Path, engine: &Engine) -> Self {
        let adapter = Adapter::Fs(FsConfig { data_dir: dir.display().to_string() });
        Self { adapter, cursors: Some(Cursors::of(dir, engine)), events: store, back: Back::Shared }
    }

    /// The same, if a configuration does not ask for another one.
    pub(super) fn checked(self, config: &WorkerConfig) -> Result<Self, String> {
        if !self.is(&config.adapter) {
            return Err(self.stays());
        }
        self.limit(config);
        Ok(self)
    }

    /// Why another store cannot take the place of this one.
    pub(super) fn stays(&self) -> String {
        let dir = match &self.adapter {
            Adapter::Fs(fs) => fs.path().display().to_string(),
            Adapter::Bridge(bridge) => bridge.url.clone(),
        };
        format!(
            "this process also serves {dir} over HTTP, so its adapter stays; run `banyan worker` for another one"
        )
    }

    /// Applies the limits of a configuration.
    pub(super) fn limit(&self, config: &WorkerConfig) {
        let WorkerConfig { default_list_limit, max_list_limit, .. } = *config;
        let limits = Limits { default_list_limit, max_list_limit, ..self.events.limits() };
        match &self.back {
            Back::Own | Back::Shared => self.events.set_limits(limits),
            Back::Main { bridge, .. } => bridge.set_limits(limits),
        }
    }

    /// Whether this is what a configuration asks for, limits aside.
    pub(super) fn is(&self, adapter: &Adapter) -> bool {
        match (&self.adapter, adapter) {
            (Adapter::Fs(one), Adapter::Fs(other)) => one == other || same_dir(&one.path(), &other.path()),
            (one, other) => one == other,
        }
    }

    /// What a whole store is told from.
    pub(super) fn whole(&self) -> Shelf {
        match &self.back {
            Back::Own | Back::Shared => Shelf::Here(self.events.clone()),
            Back::Main { main, .. } => Shelf::There(Arc::clone(main)),
        }
    }

    /// Where a binding's events come from, and the position that it begins after.
    pub(super) fn source(
        &self,
        filters: Vec<EventFilter>,
        after: Option<Position>,
    ) -> Result<(Source, Position), Error> {
        // What a main instance told is not kept here.
        let keeps = !matches!(self.back, Back::Main { .. });
        if let Some(after) = after.filter(|_| keeps) {
            match Source::after(&self.events, filters.clone(), after) {
                Ok(source) => return Ok((source, after)),
                Err(error) => tracing::warn!(%error, "a binding cannot go on where it was, and goes on from now"),
            }
        }
        let source = Source::from_now(&self.events, filters, keeps)?;
        let begin = source.began_at();
        Ok((source, begin))
    }

    /// Where the order of events stands. A source can begin there later on.
    pub(super) fn now(&self) -> Option<Position> {
        let filters = EventType::ALL.map(EventFilter::all).into();
        self.source(filters, None).ok().map(|(_, begin)| begin)
    }

    /// Calls a function of the table.
    pub(super) async fn call(&self, function_id: &str, body: &[u8]) -> Result<String, CallError> {
        match &self.back {
            Back::Own | Back::Shared => self.events.call(function_id, body).await,
            Back::Main { bridge, .. } => bridge.call(function_id, body).await,
        }
    }

    /// Calls a function of the store protocol. `None` when this instance does not serve it.
    pub(super) async fn store_call(&self, function_id: &str, body: &[u8]) -> Option<Result<String, CallError>> {
        match &self.back {
            Back::Own | Back::Shared => Some(self.events.store_call(function_id, body).await),
            Back::Main { .. } => None,
        }
    }

    /// Every session there is, in the order of their beginning.
    pub(super) async fn sessions(&self) -> Result<Vec<Known>, Error> {
        let mut sessions = Vec::new();
        let mut cursor = None;
        loop {
            let request = ListRequest {
                limit: Some(500),
                cursor: cursor.take(),
                order: Some(ListOrder::CreatedAsc),
                ..ListRequest::default()
            };
            let page = self.list(&request).await?;
            sessions.extend(
                page.sessions
                    .into_iter()
                    .map(|meta| Known { id: meta.session_id.clone(), metadata: meta.metadata.clone() }),
            );
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(sessions),
            }
        }
    }

    async fn list(&self, request: &ListRequest) -> Result<ListResponse, Error> {
        let nonsense = |error: serde_json::Error| Error::storage(format!("session::list: {error}"));
        let request = serde_json::to_vec(request).map_err(nonsense)?;
        let answer = self.call("session::list", &request).await.map_err(|error| match error {
            CallError::Refused(error) => error,
            unknown @ CallError::UnknownFunction { .. } => Error::storage(unknown.to_string()),
        })?;
        serde_json::from_str(&answer).map_err(nonsense)
    }

    /// Leaves everything on disk, or the main instance, if nobody else uses it.
    pub(super) async fn close(self: Arc<Self>) {
        match &self.back {
            Back::Shared => {}
            Back::Main { link, .. } => link.close().await,
            Back::Own => {
                let closed = tokio::task::spawn_blocking(move || self.events.close()).await;
                if let Ok(Err(error)) = closed {
                    tracing::error!(%error, "the store could not be closed as it should be");
                }
            }
        }
    }
}

fn same_dir(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| PathBuf::from(path));
    real(one) == real(other)
}
