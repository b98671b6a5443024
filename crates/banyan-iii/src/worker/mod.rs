//! The worker `session-manager`: Banyan's functions and events on the bus of an engine.

mod bindings;
mod config;
mod configuration;
mod cursors;
mod delivery;
mod demand;
mod lanes;
mod main_session;
mod manifest;
mod names;
mod offers;
mod pace;
mod relay;
mod replay;
mod runtime;
mod service;
mod source;
mod status;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use banyan::Banyan;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::link::{CallFailed, Engine, Link};

pub use config::{Adapter, BridgeConfig, FsConfig, WorkerConfig, same_engine};
pub use manifest::manifest;
pub use runtime::OpenStore;

use configuration::NotRegistered;
use runtime::{Built, Runtime};
use service::Sessions;

/// What a worker is started with.
pub struct WorkerOptions {
    /// The engine that it joins.
    pub engine: Engine,
    /// What it stores sessions in.
    pub storage: Storage,
    /// The value that its settings begin with, if there is none yet.
    pub seed: Option<Value>,
}

/// What a worker stores sessions in.
pub enum Storage {
    /// Whatever its settings say.
    Configured {
        /// Opens a directory.
        open: OpenStore,
        /// The data directory in which a bridge remembers its name, to be told what it missed while it was not running.
        bridges_in: Option<PathBuf>,
    },
    /// A store that others in this process use as well.
    Shared {
        /// The store.
        store: Banyan,
        /// Its directory.
        dir: PathBuf,
    },
}

/// Why a worker did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The engine does not want it.
    #[error("the engine at {engine} does not take this worker: {why}")]
    Rejected {
        /// The engine.
        engine: String,
        /// What it said.
        why: String,
    },
    /// The settings could not be asked for.
    #[error(
        "the configuration worker of {engine} does not answer: {why}. An engine needs `- name: configuration` under `workers:` in its config"
    )]
    Configuration {
        /// The engine.
        engine: String,
        /// What went wrong.
        why: String,
    },
    /// The settings to begin with make no sense. They were not stored.
    #[error("the settings to begin with (`--config`) cannot be used: {0}. Correct them, and start again")]
    Seed(String),
    /// The settings cannot be worked with.
    #[error("the configuration `session-manager` cannot be used: {0}. Correct it with `configuration::set`")]
    Unusable(String),
    /// It was told to stop before it had started.
    #[error("stopped before the engine could be reached")]
    Stopped,
}

/// A worker that runs.
pub struct Worker {
    sessions: Arc<Sessions>,
    saving: JoinHandle<()>,
    telling: JoinHandle<()>,
}

/// How often it is written down how far bindings have come.
const SAVE_EVERY: Duration = Duration::from_secs(1);

impl Worker {
    /// Joins an engine. Waits until the engine can be reached, or `stop` turns true.
    pub async fn start(options: WorkerOptions, mut stop: watch::Receiver<bool>) -> Result<Self, StartError> {
        let engine = options.engine.to_string();
        let sessions = Sessions::new(options.engine.clone(), &options.storage);
        let link = Arc::new(Link::open(options.engine, Arc::clone(&sessions) as _));
        sessions.use_link(Arc::clone(&link));
        let started = tokio::select! {
            started = begin(&sessions, &link, &engine, options.storage, options.seed) => started,
            _ = stop.wait_for(|stop| *stop) => Err(StartError::Stopped),
        };
        if let Err(error) = started {
            link.close().await;
            return Err(error);
        }
        let saving = tokio::spawn(save(Arc::clone(&sessions)));
        let demanded = Arc::clone(&sessions);
        let telling = tokio::spawn(async move { demanded.follow_demand().await });
        Ok(Self { sessions, saving, telling })
    }

    /// Waits until the engine refuses this worker for good, and says why.
    pub async fn rejected(&self) -> String {
        match self.sessions.link() {
            Some(link) => link.rejected().await,
            None => std::future::pending().await,
        }
    }

    /// Leaves the engine; calls under way are answered first if that takes no longer than a moment.
    pub async fn stop(self) {
        self.saving.abort();
        self.telling.abort();
        self.sessions.stop().await;
    }
}

async fn begin(
    sessions: &Arc<Sessions>,
    link: &Arc<Link>,
    engine: &str,
    storage: Storage,
    seed: Option<Value>,
) -> Result<(), StartError> {
    let shared = match &storage {
        Storage::Shared { store, dir } => Some(Runtime::shared(store.clone(), dir, sessions.engine())),
        Storage::Configured { .. } => None,
    };
    let default = || {
        let adapter = shared.as_ref().map(|shared| shared.adapter.clone());
        WorkerConfig { adapter: adapter.unwrap_or_default(), ..WorkerConfig::default() }.to_value()
    };
    let value = settings(link, engine, &seed.unwrap_or_else(default)).await?;
    let config = WorkerConfig::read(&value).map_err(StartError::Unusable)?;
    let runtime = match (shared, storage) {
        (Some(shared), _) => shared.checked(&config).map_err(StartError::Unusable)?,
        (None, Storage::Configured { open, .. }) => {
            Runtime::build(&config, &sessions.surroundings(open), Built::AtTheStart)
                .await
                .map_err(StartError::Unusable)?
        }
        (None, Storage::Shared { .. }) => return Err(StartError::Stopped),
    };
    sessions.open_for_business(runtime, config).await;
    Ok(())
}

/// Asks for the settings, for as long as the engine comes and goes. An engine that does not want this worker may say so only
/// after it was asked something.
async fn settings(link: &Link, engine: &str, seed: &Value) -> Result<Value, StartError> {
    loop {
        link.stands().await.map_err(|why| StartError::Rejected { engine: engine.to_owned(), why })?;
        let asked = async {
            configuration::register(link, seed).await?;
            Ok(configuration::value(link).await?)
        };
        return Err(match asked.await {
            Ok(value) => return Ok(value.unwrap_or_default()),
            Err(NotRegistered::Seed(why)) => StartError::Seed(why),
            Err(NotRegistered::Call(CallFailed::Unreachable(_) | CallFailed::Lost(_))) => continue,
            Err(NotRegistered::Call(CallFailed::Refused(error))) if configuration::is_invalid(&error.code) => {
                StartError::Unusable(error.message.into_owned())
            }
            Err(NotRegistered::Call(failed)) => {
                StartError::Configuration { engine: engine.to_owned(), why: failed.to_string() }
            }
        });
    }
}

async fn save(sessions: Arc<Sessions>) {
    loop {
        // Of a binding that is new it is written down at once where it begins.
        let _ = tokio::time::timeout(SAVE_EVERY, sessions.new_binding()).await;
        sessions.save_positions();
    }
}
