//! What a subscriber asks to be told, as it is written in a subscription and as it is checked there.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Error, EventType, Object, Role, SessionId};

/// What a subscriber to one type of event wants to see: all that is given here must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// The type of event.
    pub event_type: EventType,
    /// Only this session.
    pub session_id: Option<SessionId>,
    /// Only messages of these roles; an empty list lets nothing through.
    pub roles: Option<Vec<Role>>,
    /// Only sessions whose metadata holds each of these keys with exactly this value.
    pub metadata: Option<Object>,
}

impl EventFilter {
    /// A filter that lets every event of the type through.
    pub fn all(event_type: EventType) -> Self {
        Self { event_type, session_id: None, roles: None, metadata: None }
    }

    /// Reads a subscription's config; none, `null` and `{}` mean the same. Unknown keys are refused.
    pub fn parse(event_type: EventType, config: Option<&str>) -> Result<Self, Error> {
        let text = config.unwrap_or("null");
        let filter = Self::all(event_type);
        Ok(match event_type {
            EventType::Created => {
                let CreatedConfig { metadata } = read(event_type, text)?;
                Self { metadata, ..filter }
            }
            EventType::MessageAdded | EventType::MessageUpdated => {
                let MessageConfig { session_id, roles, metadata } = read(event_type, text)?;
                Self { session_id, roles, metadata, ..filter }
            }
            EventType::StatusChanged | EventType::MetaUpdated | EventType::Deleted => {
                let SessionConfig { session_id, metadata } = read(event_type, text)?;
                Self { session_id, metadata, ..filter }
            }
        })
    }
}

fn read<C: DeserializeOwned + Default>(event_type: EventType, text: &str) -> Result<C, Error> {
    let invalid =
        |fault: &dyn std::fmt::Display| Error::invalid_request(format!("invalid {event_type} config: {fault}"));
    if text.trim_start().starts_with('[') {
        return Err(invalid(&"invalid type: sequence, expected an object"));
    }
    serde_json::from_str::<Option<C>>(text).map(Option::unwrap_or_default).map_err(|error| invalid(&error))
}

/// How a subscription to `session::created` can be narrowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreatedConfig {
    /// Only sessions whose metadata holds each of these keys with exactly this value.
    pub metadata: Option<Object>,
}

/// How a subscription to `session::message-added` or `session::message-updated` can be narrowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageConfig {
    /// Only this session.
    pub session_id: Option<SessionId>,
    /// Only messages of these roles; entries without a message have no role and are left out.
    pub roles: Option<Vec<Role>>,
    /// Only sessions whose metadata holds each of these keys with exactly this value.
    pub metadata: Option<Object>,
}

/// How a subscription to `session::status-changed`, `session::meta-updated` or `session::deleted` can be narrowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionConfig {
    /// Only this session.
    pub session_id: Option<SessionId>,
    /// Only sessions whose metadata holds each of these keys with exactly this value.
    pub metadata: Option<Object>,
}
