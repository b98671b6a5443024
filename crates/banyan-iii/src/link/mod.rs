//! A worker's side of the bus: one connection to an engine, made again whenever it is lost.
//!
//! Whoever owns a [`Link`] is its [`Service`]: it says what the worker offers, answers calls and takes bindings. On each new
//! connection everything is offered again, so an engine that was restarted knows as much as before.

mod connection;
mod dial;
mod prompt;
mod text;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::wire::{ErrorBody, RegisterTrigger};

pub use connection::{Connection, Invocation};
pub use dial::Engine;
pub use text::{function_frame, trigger_frame, trigger_type_frame};

/// The most bytes that are sent in a frame. An engine takes 16 MiB, and adds to what it passes on.
pub const MOST_SENT: usize = (16 << 20) - (64 << 10);

/// What a worker is to its engine.
pub trait Service: Send + Sync + 'static {
    /// The frames that a new connection begins with: what the worker offers.
    fn offers(&self) -> Vec<String>;

    /// What the worker says about itself, as JSON.
    fn identity(&self) -> String;

    /// A function of the worker is called. The answer is JSON.
    fn call(self: Arc<Self>, call: Call) -> BoxFuture<'static, Result<String, ErrorBody<'static>>>;

    /// A function of somebody's is bound to a kind of trigger of the worker's.
    fn bind(
        self: Arc<Self>,
        connection: &Arc<Connection>,
        binding: RegisterTrigger<'_>,
    ) -> Result<(), ErrorBody<'static>>;

    /// A binding is gone.
    fn unbind(self: Arc<Self>, id: &str);

    /// A connection stands, and everything was offered.
    fn connected(self: Arc<Self>, connection: &Arc<Connection>);

    /// The connection is lost; another one is tried for.
    fn lost(self: Arc<Self>);
}

/// A call of a function of the worker's.
#[derive(Debug)]
pub struct Call {
    /// The function.
    pub function_id: String,
    /// What it is called with, as JSON.
    pub data: String,
}

/// Why a call to somebody else's function failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailed {
    /// There is no connection, and none was made in time.
    #[error("{0} cannot be reached")]
    Unreachable(String),
    /// The connection was lost before the answer came. Whether the call got there is not known.
    #[error("the connection to {0} was lost")]
    Lost(String),
    /// There was no answer in time.
    #[error("there was no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// It is larger than a frame of the bus may be.
    #[error("the call has {bytes} bytes, and the bus carries {} at most", MOST_SENT)]
    TooLarge {
        /// How large its frame is.
        bytes: usize,
    },
    /// It was answered with an error.
    #[error("{}: {}", .0.code, .0.message)]
    Refused(ErrorBody<'static>),
}

/// See the module. Dropping it leaves the connection standing; [`Link::close`] ends it.
pub struct Link {
    name: String,
    state: watch::Receiver<Standing>,
    stop: watch::Sender<bool>,
    task: std::sync::Mutex<Option<JoinHandle<()>>>,
}

/// How the connection stands.
#[derive(Clone)]
enum Standing {
    /// It was not there yet, or is lost.
    Away,
    /// It stands.
    Connected(Arc<Connection>),
    /// The engine does not want this worker, and says why.
    Rejected(String),
}

impl Link {
    /// Begins to connect, and keeps at it.
    pub fn open(engine: Engine, service: Arc<dyn Service>) -> Self {
        let name = engine.to_string();
        let (changes, state) = watch::channel(Standing::Away);
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(connection::keep(engine, service, changes, stopped));
        Self { name, state, stop, task: std::sync::Mutex::new(Some(task)) }
    }

    /// The engine, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The connection, if it stands.
    pub fn connection(&self) -> Option<Arc<Connection>> {
        match &*self.state.borrow() {
            Standing::Connected(connection) => Some(Arc::clone(connection)),
            Standing::Away | Standing::Rejected(_) => None,
        }
    }

    /// Calls a function of whoever has it, with JSON, and waits for the answer. A connection that does not stand yet is waited
    /// for within the same time.
    pub async fn call(
        &self,
        function_id: &str,
        data: &str,
        within: Duration,
    ) -> Result<Box<RawValue>, CallFailed> {
        let mut connected = false;
        let answered = tokio::time::timeout(within, async {
            let connection = self.wait().await?;
            connected = true;
            connection.call(function_id, data).await
        });
        match answered.await {
            Ok(answer) => answer,
            Err(_) if connected => Err(CallFailed::TimedOut(within)),
            Err(_) => Err(CallFailed::Unreachable(self.name.clone())),
        }
    }

    async fn wait(&self) -> Result<Arc<Connection>, CallFailed> {
        match self.standing(|standing| !matches!(standing, Standing::Away)).await {
            Standing::Connected(connection) => Ok(connection),
            Standing::Away | Standing::Rejected(_) => Err(CallFailed::Unreachable(self.name.clone())),
        }
    }

    /// Waits until the connection stands, or says why the engine does not want this worker.
    pub async fn stands(&self) -> Result<(), String> {
        match self.standing(|standing| !matches!(standing, Standing::Away)).await {
            Standing::Rejected(why) => Err(why),
            Standing::Away | Standing::Connected(_) => Ok(()),
        }
    }

    /// Waits until the engine does not want this worker, and says why.
    pub async fn rejected(&self) -> String {
        match self.standing(|standing| matches!(standing, Standing::Rejected(_))).await {
            Standing::Rejected(why) => why,
            Standing::Away | Standing::Connected(_) => std::future::pending().await,
        }
    }

    /// Waits for a certain standing; a link that is closed is away.
    async fn standing(&self, wanted: impl FnMut(&Standing) -> bool) -> Standing {
        let mut state = self.state.clone();
        state.wait_for(wanted).await.map_or(Standing::Away, |standing| standing.clone())
    }

    /// Says goodbye, and returns when the connection has ended.
    pub async fn close(&self) {
        let _ = self.stop.send(true);
        let task = self.task.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(task) = task {
            let _ = task.await;
        }
    }
}
