//! A store as its callers see it: function ids and JSON in, JSON or a refusal out, events to listen to.
//!
//! Scenarios know nothing else, so that they can be run against any way to reach a store.

use banyan::model::{EventFilter, EventType};
use banyan::{Banyan, CallError, Start, Subscribe, block_on};
use serde_json::{Value, json};

use super::ears::{Ears, Heard};

/// A refused call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// For example `session/not_found`.
    pub code: String,
    /// For the person who reads it.
    pub message: String,
}

/// A way to reach a store.
pub trait Door {
    /// Calls a function with the text of a request.
    fn call_text(&self, function: &str, request: &str) -> Result<Value, Refusal>;

    /// Listens, from now on, to the types of event given, each with the config of its subscription.
    fn listen(&self, wanted: &[(&str, Value)]) -> Result<Box<dyn Listener>, Refusal>;
}

/// An open subscription.
pub trait Listener {
    /// Everything that it was told about calls that have been answered by now.
    fn heard(&mut self) -> Vec<Heard>;
}

impl Door for Banyan {
    fn call_text(&self, function: &str, request: &str) -> Result<Value, Refusal> {
        match block_on(self.call(function, request.as_bytes())) {
            Ok(answer) => Ok(serde_json::from_str(&answer).expect("an answer is JSON")),
            Err(CallError::Refused(error)) => {
                Err(Refusal { code: error.code.to_string(), message: error.message })
            }
            Err(unknown @ CallError::UnknownFunction { .. }) => {
                Err(Refusal { code: "unknown function".to_owned(), message: unknown.to_string() })
            }
        }
    }

    fn listen(&self, wanted: &[(&str, Value)]) -> Result<Box<dyn Listener>, Refusal> {
        let filters = wanted.iter().map(|(event_type, config)| filter(event_type, config));
        let filters = filters.collect::<Result<Vec<_>, _>>()?;
        Ok(Box::new(Ears::of(self, Subscribe { filters, start: Start::Now })))
    }
}

/// A filter as a subscription's config writes it.
pub fn filter(event_type: &str, config: &Value) -> Result<EventFilter, Refusal> {
    let refused = |error: banyan::model::Error| Refusal { code: error.code.to_string(), message: error.message };
    let event_type: EventType = event_type.parse().map_err(refused)?;
    EventFilter::parse(event_type, Some(&config.to_string())).map_err(refused)
}

/// All six types of event, unfiltered.
pub fn everything() -> Vec<EventFilter> {
    EventType::ALL.map(EventFilter::all).to_vec()
}

/// A store in this process, as a door.
pub fn door(store: &Banyan) -> &dyn Door {
    store
}

/// Short ways to say what scenarios say often. Functions are named without `session::`.
impl dyn Door + '_ {
    pub fn call(&self, function: &str, request: Value) -> Result<Value, Refusal> {
        self.call_text(&format!("session::{function}"), &request.to_string())
    }

    /// Calls a function that must not refuse.
    pub fn ok(&self, function: &str, request: Value) -> Value {
        self.call(function, request.clone()).unwrap_or_else(|refusal| panic!("{function} {request}: {refusal:?}"))
    }

    /// Calls a function that must refuse, and says with which code.
    pub fn refused(&self, function: &str, request: Value) -> String {
        match self.call(function, request.clone()) {
            Ok(answer) => panic!("{function} {request} should be refused, but answered {answer}"),
            Err(refusal) => refusal.code,
        }
    }

    /// A new session's id.
    pub fn session(&self) -> Value {
        self.ok("create", json!({}))["session_id"].clone()
    }

    /// Appends an entry, told by the other fields of the request, and gives its id.
    pub fn append(&self, session: &Value, mut rest: Value) -> Value {
        rest["session_id"] = session.clone();
        self.ok("append", rest)["entry_id"].clone()
    }

    /// A user says something; the entry's id.
    pub fn say(&self, session: &Value, text: &str) -> Value {
        self.append(session, json!({"message": super::words::user(text)}))
    }

    /// The metadata record of a session.
    pub fn meta(&self, session: &Value) -> Value {
        self.ok("get", json!({"session_id": session}))["meta"].clone()
    }

    /// The entry as it is stored.
    pub fn entry(&self, session: &Value, entry: &Value) -> Value {
        self.ok("get-message", json!({"session_id": session, "entry_id": entry}))["entry"].clone()
    }

    /// What stands on the active path, custom entries included: the texts and custom types.
    pub fn path(&self, session: &Value) -> Vec<String> {
        let page = self.ok("messages", json!({"session_id": session, "include_custom": true, "limit": 500}));
        super::words::texts(&page["messages"])
    }

    /// Listens to everything.
    pub fn listen_to_all(&self) -> Box<dyn Listener> {
        let all = EventType::ALL.map(|event_type| (event_type.as_str(), json!({})));
        self.listen(&all).expect("a subscription without filters")
    }
}
