//! A bridge as its callers see it. Who listens is told by the main.

use std::sync::Arc;

use banyan::model::EventFilter;
use banyan::rules::{Limits, filter};
use banyan::{Banyan, CallError, Options, block_on};
use banyan_iii::bridge::{Bridge, Main};
use serde_json::Value;

use crate::mains::{BanyanMain, PublishedOnly, ReferenceMain};
use crate::support::{Door, Heard, Listener, Refusal, filter as filter_of};

/// A bridge to a Banyan.
pub struct OverBanyan {
    pub bridge: Bridge,
    pub main: Banyan,
}

/// A bridge to a session-manager.
pub struct OverReference {
    pub bridge: Bridge,
    pub main: Arc<ReferenceMain>,
}

impl OverBanyan {
    pub fn new() -> Self {
        Self::to(Banyan::in_memory(Options::default()).unwrap())
    }

    pub fn to(main: Banyan) -> Self {
        Self { bridge: bridge(Arc::new(BanyanMain(main.clone()))), main }
    }

    /// By session-manager's published protocol, as its own bridge would.
    pub fn by_the_published_protocol() -> Self {
        Self::published_to(Banyan::in_memory(Options::default()).unwrap())
    }

    pub fn published_to(main: Banyan) -> Self {
        Self { bridge: bridge(Arc::new(PublishedOnly(BanyanMain(main.clone())))), main }
    }
}

impl OverReference {
    pub fn new() -> Self {
        let main = Arc::new(ReferenceMain::default());
        Self { bridge: bridge(Arc::clone(&main) as Arc<dyn Main>), main }
    }
}

pub fn bridge(main: Arc<dyn Main>) -> Bridge {
    Bridge::new(main, Limits::default())
}

/// Calls a function of a bridge.
pub fn call(bridge: &Bridge, function: &str, request: &str) -> Result<Value, Refusal> {
    match block_on(bridge.call(function, request.as_bytes())) {
        Ok(answer) => Ok(serde_json::from_str(&answer).unwrap()),
        Err(CallError::Refused(error)) => Err(Refusal { code: error.code.to_string(), message: error.message }),
        Err(unknown @ CallError::UnknownFunction { .. }) => {
            Err(Refusal { code: "unknown function".to_owned(), message: unknown.to_string() })
        }
    }
}

impl Door for OverBanyan {
    fn call_text(&self, function: &str, request: &str) -> Result<Value, Refusal> {
        call(&self.bridge, function, request)
    }

    fn listen(&self, wanted: &[(&str, Value)]) -> Result<Box<dyn Listener>, Refusal> {
        self.main.listen(wanted)
    }
}

impl Door for OverReference {
    fn call_text(&self, function: &str, request: &str) -> Result<Value, Refusal> {
        call(&self.bridge, function, request)
    }

    fn listen(&self, wanted: &[(&str, Value)]) -> Result<Box<dyn Listener>, Refusal> {
        let filters = wanted.iter().map(|(event_type, config)| filter_of(event_type, config));
        let filters = filters.collect::<Result<Vec<_>, _>>()?;
        let heard = self.main.kept().published.len();
        Ok(Box::new(Published { main: Arc::clone(&self.main), filters, heard }))
    }
}

/// Hears what is published at a session-manager.
struct Published {
    main: Arc<ReferenceMain>,
    filters: Vec<EventFilter>,
    heard: usize,
}

impl Listener for Published {
    fn heard(&mut self) -> Vec<Heard> {
        let kept = self.main.kept();
        let new = kept.published.iter().skip(self.heard);
        self.heard = kept.published.len();
        let asked = new.filter(|event| self.filters.iter().any(|it| filter::event_matches(it, event)));
        asked.map(|event| Heard::of(event)).collect()
    }
}
