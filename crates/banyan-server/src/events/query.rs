//! What a subscriber asks for, in the query of a stream or in a frame of a WebSocket. Whatever is not understood is refused.

use banyan::model::{EventFilter, EventType, Object, Position, Role, SessionId, null_as_default};
use banyan::{Start, Subscribe};
use serde::Deserialize;

use crate::problem::Problem;
use crate::resources::pairs;

/// What a subscriber asks for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Asked {
    /// All six types when there is none.
    #[serde(deserialize_with = "null_as_default")]
    types: Vec<EventType>,
    pub(crate) session_id: Option<SessionId>,
    roles: Option<Vec<Role>>,
    metadata: Option<Object>,
    after: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    snapshot: bool,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) deltas: bool,
    /// Whether only what becomes of the messages matters, not each revision.
    #[serde(skip)]
    newest_only: bool,
}

const KEYS: &str = "type, session_id, roles, metadata, after, snapshot, deltas";

impl Asked {
    /// Reads the query of a stream. `Last-Event-ID` is newer than an `after` in the address, which stays the same when a
    /// browser connects again.
    pub(crate) fn in_query(query: Option<&str>, last_event_id: Option<&str>) -> Result<Self, Problem> {
        let mut asked = Self::default();
        let mut seen = Vec::new();
        for (key, value) in pairs(query)? {
            if key != "type" && seen.contains(&key) {
                return Err(Problem::invalid(format!("`{key}` is given twice in the query")));
            }
            match key.as_str() {
                "type" => asked.types.push(value.parse().map_err(Problem::from)?),
                "session_id" => asked.session_id = Some(SessionId::from(value)),
                // As in the contract, a list without any role lets no message through.
                "roles" if value.is_empty() => asked.roles = Some(Vec::new()),
                "roles" => asked.roles = Some(value.split(',').map(role).collect::<Result<_, _>>()?),
                "metadata" => asked.metadata = Some(object(&value)?),
                "after" => asked.after = Some(value),
                "snapshot" => asked.snapshot = yes_or_no(&key, &value)?,
                "deltas" => asked.deltas = yes_or_no(&key, &value)?,
                _ => {
                    return Err(Problem::invalid(format!("`{key}` is not known in the query; there is {KEYS}")));
                }
            }
            seen.push(key);
        }
        if let Some(last) = last_event_id {
            asked.after = Some(last.to_owned());
        }
        Ok(asked)
    }

    /// Whatever changes the messages that one session shows, from a position on or from now.
    pub(crate) fn of_messages(id: SessionId, after: Option<Position>) -> Self {
        use EventType::{Deleted, MessageAdded, MessageUpdated, StatusChanged};
        let types = vec![MessageAdded, MessageUpdated, StatusChanged, Deleted];
        let after = after.map(|position| position.to_string());
        Self { types, session_id: Some(id), after, newest_only: true, ..Self::default() }
    }

    /// The same, asked of one session.
    pub(crate) fn in_session(mut self, id: SessionId) -> Result<Self, Problem> {
        if self.session_id.as_ref().is_some_and(|other| *other != id) {
            return Err(Problem::invalid("the query names another session than the address"));
        }
        self.session_id = Some(id);
        Ok(self)
    }

    /// Whether additions that follow each other may come as one event.
    pub(crate) fn joins_additions(&self) -> bool {
        self.deltas || self.newest_only
    }

    /// Whether it goes on from a position.
    pub(crate) fn resumes(&self) -> bool {
        self.after.is_some()
    }

    /// Whether it begins with a session as it is.
    pub(crate) fn begins_with_snapshot(&self) -> bool {
        self.snapshot && !self.resumes()
    }

    /// The same as the store understands it.
    pub(crate) fn subscribe(&self) -> Result<Subscribe, Problem> {
        let types = if self.types.is_empty() { &EventType::ALL[..] } else { &self.types[..] };
        if self.roles.is_some() && !types.iter().copied().any(has_role) {
            return Err(Problem::invalid(
                "only events of messages have roles, and none of these types was asked for",
            ));
        }
        let start = match (&self.after, &self.session_id) {
            (Some(after), _) => Start::After(after.parse::<Position>()?),
            (None, Some(session)) if self.snapshot => Start::Snapshot(session.clone()),
            (None, None) if self.snapshot => {
                return Err(Problem::invalid("a snapshot is of one session; give `session_id`"));
            }
            (None, _) => Start::Now,
        };
        let filters = types.iter().map(|event_type| EventFilter {
            event_type: *event_type,
            session_id: self.session_id.clone(),
            // What has no role is not left out because roles were asked for.
            roles: self.roles.clone().filter(|_| has_role(*event_type)),
            metadata: self.metadata.clone(),
        });
        Ok(Subscribe { filters: filters.collect(), start })
    }
}

fn has_role(event_type: EventType) -> bool {
    matches!(event_type, EventType::MessageAdded | EventType::MessageUpdated)
}

fn role(name: &str) -> Result<Role, Problem> {
    let all = [Role::User, Role::Assistant, Role::FunctionResult, Role::Custom];
    all.into_iter().find(|role| role.as_str() == name).ok_or_else(|| {
        let all = all.map(Role::as_str).join(", ");
        Problem::invalid(format!("there is no role `{name}`; the roles are {all}"))
    })
}

fn object(text: &str) -> Result<Object, Problem> {
    serde_json::from_str(text)
        .map_err(|error| Problem::invalid(format!("`metadata` is not a JSON object: {error}")))
}

fn yes_or_no(key: &str, value: &str) -> Result<bool, Problem> {
    match value {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(Problem::invalid(format!("`{key}` is 1 or 0, not `{value}`"))),
    }
}
