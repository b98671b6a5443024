//! The way from a main instance to here: its functions are called for what is stored, and it tells what happens.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use banyan::Banyan;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::bindings::FEED;
use super::config::BridgeConfig;
use super::manifest;
use crate::bridge::{Bridge, Main, MainFailed};
use crate::link::{Call, CallFailed, Connection, Engine, Link, Service, function_frame, trigger_frame};
use crate::wire::{ErrorBody, RegisterTrigger};

/// What is on the main instance's bus for this one: a function that it tells events to.
pub(super) struct Relay {
    function_id: String,
    /// The main goes on where it was when the same one comes back.
    binding: String,
    /// Whether it wants to hear what happens.
    listens: AtomicBool,
    ears: Banyan,
    bridge: OnceLock<Arc<Bridge>>,
}

/// Calls of the main instance over a connection.
pub(super) struct OverLink {
    link: Arc<Link>,
    within: Duration,
    /// When the main instance was last found to be out of reach.
    missed: Mutex<Option<Instant>>,
}

impl Relay {
    /// Connects to the main instance's engine by a name that no other instance has. Events are told to `ears`, once it listens.
    pub(super) fn open(config: &BridgeConfig, ears: Banyan, name: Uuid) -> (Arc<Self>, Arc<Link>, OverLink) {
        let relay = Arc::new(Self {
            function_id: format!("session::bridge::recv::{}", name.simple()),
            binding: name.to_string(),
            listens: AtomicBool::new(false),
            ears,
            bridge: OnceLock::new(),
        });
        let link = Arc::new(Link::open(Engine::Url(config.url.clone()), Arc::clone(&relay) as _));
        let within = Duration::from_millis(config.timeout_ms);
        (relay, Arc::clone(&link), OverLink { link, within, missed: Mutex::default() })
    }

    /// Wants to hear what happens from here on, and what it missed when it was away.
    pub(super) async fn listen(&self, link: &Link) {
        self.listens.store(true, Ordering::Release);
        // Whoever connects after this offers it, and to bind twice is to bind once.
        if let Some(connection) = link.connection() {
            connection.say(self.wish()).await;
        }
    }

    fn wish(&self) -> String {
        trigger_frame(&self.binding, FEED, &self.function_id, &Value::Object(serde_json::Map::new()))
    }

    /// The bridge is to be told when the connection is made anew.
    pub(super) fn serves(&self, bridge: Arc<Bridge>) {
        let _ = self.bridge.set(bridge);
    }
}

impl OverLink {
    /// Whether it was waited for the main instance just now, in vain. Whoever needs several calls waits once.
    fn is_away(&self) -> bool {
        let missed = *self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        missed.is_some_and(|missed| missed.elapsed() < self.within) && self.link.connection().is_none()
    }

    fn miss(&self) {
        *self.missed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

impl Main for OverLink {
    fn within(&self) -> Option<Duration> {
        Some(self.within)
    }

    fn call<'a>(
        &'a self,
        function_id: &'a str,
        body: String,
        within: Option<Duration>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, MainFailed>> {
        let within = within.unwrap_or(self.within);
        Box::pin(async move {
            if self.is_away() {
                return Err(MainFailed::Unreachable(self.link.name().to_owned()));
            }
            self.link.call(function_id, &body, within).await.map_err(|failed| match failed {
                CallFailed::Unreachable(what) => {
                    self.miss();
                    MainFailed::Unreachable(what)
                }
                CallFailed::Lost(what) => MainFailed::Lost(what),
                CallFailed::TooLarge { .. } => MainFailed::TooLarge(failed.to_string()),
                CallFailed::TimedOut(after) => MainFailed::Timeout { after },
                CallFailed::Refused(error) if error.code.eq_ignore_ascii_case("function_not_found") => {
                    MainFailed::NoSuchFunction
                }
                CallFailed::Refused(error) => {
                    MainFailed::Refused { code: error.code.into_owned(), message: error.message.into_owned() }
                }
            })
        })
    }
}

impl Service for Relay {
    fn offers(&self) -> Vec<String> {
        let anything = json!({"type": "object"});
        let ears =
            function_frame(&self.function_id, "Internal: events for a bridged instance.", &anything, &anything);
        let wish = self.listens.load(Ordering::Acquire).then(|| self.wish());
        [ears].into_iter().chain(wish).collect()
    }

    fn identity(&self) -> String {
        manifest::bridge_identity(&self.binding)
    }

    fn call(self: Arc<Self>, call: Call) -> BoxFuture<'static, Result<String, ErrorBody<'static>>> {
        Box::pin(async move {
            let request = format!(r#"{{"events":[{}]}}"#, call.data);
            let told = self.ears.store_call("session::store::publish-events", request.as_bytes()).await;
            told.map(|_| r#"{"ok":true}"#.to_owned()).map_err(|error| ErrorBody {
                code: "invocation_failed".into(),
                message: error.to_string().into(),
                stacktrace: None,
            })
        })
    }

    fn bind(self: Arc<Self>, _: &Arc<Connection>, _: RegisterTrigger<'_>) -> Result<(), ErrorBody<'static>> {
        Err(ErrorBody {
            code: "trigger_registration_failed".into(),
            message: "a bridge offers no triggers on the main instance's bus".into(),
            stacktrace: None,
        })
    }

    fn unbind(self: Arc<Self>, _: &str) {}

    fn connected(self: Arc<Self>, _: &Arc<Connection>) {
        if let Some(bridge) = self.bridge.get() {
            bridge.reconnected();
        }
    }

    fn lost(self: Arc<Self>) {}
}
