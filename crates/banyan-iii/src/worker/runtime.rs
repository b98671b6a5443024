//! What answers calls: a store of this machine, or a main instance elsewhere. It is replaced as a whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use banyan::model::{Error, EventFilter, ListOrder, ListRequest, Object, Position, SessionId};
use banyan::{Banyan, CallError, Limits, OpenError};

use super::config::{Adapter, FsConfig, WorkerConfig};
use super::cursors::Cursors;
use super::source::Source;
use crate::link::Engine;

/// Opens a data directory.
pub type OpenStore = Arc<dyn Fn(&Path) -> Result<Banyan, OpenError> + Send + Sync>;

/// What a store that is built needs to know of the worker.
pub(super) struct Surroundings {
    /// How a directory is opened.
    pub(super) open: OpenStore,
    /// The engine that the worker is on.
    pub(super) engine: Engine,
}

/// A session, as far as a subscriber who loses it must know it.
pub(super) struct Known {
    pub(super) id: SessionId,
    pub(super) metadata: Option<Object>,
}

/// See the module.
pub(super) struct Runtime {
    pub(super) adapter: Adapter,
    pub(super) store: Banyan,
    pub(super) cursors: Option<Cursors>,
    /// Whether nobody else in this process uses the store.
    own: bool,
}

impl Runtime {
    /// Opens what a configuration asks for.
    pub(super) async fn build(config: &WorkerConfig, surroundings: &Surroundings) -> Result<Self, String> {
        let Adapter::Fs(fs) = &config.adapter else {
            return Err("a bridge cannot be built yet".to_owned());
        };
        let (path, open) = (fs.path(), Arc::clone(&surroundings.open));
        let opened = tokio::task::spawn_blocking(move || {
            open(&path).map(|store| (store, path.clone())).map_err(|error| format!("{}: {error}", path.display()))
        });
        let (store, path) = opened.await.map_err(|error| error.to_string())??;
        let runtime = Self { adapter: config.adapter.clone(), cursors: Some(Cursors::of(&path, &surroundings.engine)), store, own: true };
        runtime.limit(config);
        Ok(runtime)
    }

    /// A store that is open already, and used by others in this process.
    pub(super) fn shared(store: Banyan, dir: &Path, engine: &Engine) -> Self {
        let adapter = Adapter::Fs(FsConfig { data_dir: dir.display().to_string() });
        Self { adapter, cursors: Some(Cursors::of(dir, engine)), store, own: false }
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
        format!("this process also serves {dir} over HTTP, so its adapter stays; run `banyan worker` for another one")
    }

    /// Applies the limits of a configuration.
    pub(super) fn limit(&self, config: &WorkerConfig) {
        let WorkerConfig { default_list_limit, max_list_limit, .. } = *config;
        self.store.set_limits(Limits { default_list_limit, max_list_limit, ..self.store.limits() });
    }

    /// Whether this is what a configuration asks for, limits aside.
    pub(super) fn is(&self, adapter: &Adapter) -> bool {
        match (&self.adapter, adapter) {
            (Adapter::Fs(one), Adapter::Fs(other)) => one == other || same_dir(&one.path(), &other.path()),
            (one, other) => one == other,
        }
    }

    /// What a whole store is told from.
    pub(super) fn whole(&self) -> Banyan {
        self.store.clone()
    }

    /// Where a binding's events come from, and the position that it begins after.
    pub(super) fn source(
        &self,
        filters: Vec<EventFilter>,
        after: Option<Position>,
    ) -> Result<(Source, Position), Error> {
        if let Some(after) = after {
            match Source::after(&self.store, filters.clone(), after) {
                Ok(source) => return Ok((source, after)),
                Err(error) => tracing::warn!(%error, "a binding cannot go on where it was, and goes on from now"),
            }
        }
        let source = Source::from_now(&self.store, filters, true)?;
        let begin = source.began_at();
        Ok((source, begin))
    }

    /// Calls a function of the table.
    pub(super) async fn call(&self, function_id: &str, body: &[u8]) -> Result<String, CallError> {
        self.store.call(function_id, body).await
    }

    /// Every session there is, in the order of their beginning.
    pub(super) async fn sessions(&self) -> Result<Vec<Known>, Error> {
        let mut sessions = Vec::new();
        let mut cursor = None;
        loop {
            let request = ListRequest {
                limit: Some(usize::MAX),
                cursor: cursor.take(),
                order: Some(ListOrder::CreatedAsc),
                ..ListRequest::default()
            };
            let page = self.store.list(request).await?;
            sessions.extend(page.sessions.into_iter().map(|meta| {
                Known { id: meta.session_id.clone(), metadata: meta.metadata.clone() }
            }));
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(sessions),
            }
        }
    }

    /// Leaves everything on disk, if nobody else uses the store.
    pub(super) async fn close(self: Arc<Self>) {
        if !self.own {
            return;
        }
        let closed = tokio::task::spawn_blocking(move || self.store.close()).await;
        if let Ok(Err(error)) = closed {
            tracing::error!(%error, "the store could not be closed as it should be");
        }
    }
}

fn same_dir(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| PathBuf::from(path));
    real(one) == real(other)
}

/// The time, in milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
