//! `configuration::*`: values that workers register, read and change, and hear of when they change.
//!
//! Values are stored as they are given. `${NAME}` and `${NAME:otherwise}` in them are looked up in the environment when they are read.
//! Unlike an engine, the bus does not check values against their schema: whoever uses a value has to check it anyway.

mod expand;
mod store;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Hub;
use super::builtins::{self, Failure};

pub(super) use store::Configuration;
use store::Entry;

/// Its kind of trigger.
pub(super) const TRIGGER_TYPE: &str = "configuration";

/// The functions there are, and what they do.
pub(super) const FUNCTIONS: [(&str, &str, Function); 6] = [
    ("configuration::register", "Makes a configuration known, with a value if one is given.", Function::Register),
    ("configuration::set", "Replaces the value of a configuration.", Function::Set),
    ("configuration::get", "Reads the value of a configuration, with the environment filled in.", Function::Get),
    ("configuration::list", "Lists configurations, without their values.", Function::List),
    ("configuration::schema", "Reads what a configuration is, without its value.", Function::Schema),
    ("configuration::delete", "Removes a configuration.", Function::Delete),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Register,
    Set,
    Get,
    List,
    Schema,
    Delete,
}

#[derive(Deserialize)]
struct Named {
    id: String,
    #[serde(default)]
    raw: bool,
}

#[derive(Deserialize)]
struct Set {
    id: String,
    value: Value,
}

#[derive(Deserialize)]
struct Register {
    id: String,
    name: String,
    description: String,
    schema: Value,
    initial_value: Option<Value>,
    metadata: Option<Value>,
}

/// What a binding may ask for.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Wanted {
    configuration_id: Option<String>,
    event_types: Option<Vec<String>>,
    condition_function_id: Option<String>,
}

/// Why a binding to the trigger cannot be taken.
pub(super) fn check_binding(config: &RawValue) -> Result<(), String> {
    match wanted(config) {
        Ok(Wanted { condition_function_id: Some(_), .. }) => {
            Err(format!("`condition_function_id` is not possible: {} does not ask functions.", builtins::THIS))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(format!("the config of a configuration trigger cannot be read: {error}")),
    }
}

fn wanted(config: &RawValue) -> Result<Wanted, serde_json::Error> {
    Ok(serde_json::from_str::<Option<Wanted>>(config.get())?.unwrap_or_default())
}

impl Function {
    pub(super) fn of(id: &str) -> Option<Self> {
        FUNCTIONS.iter().find(|(known, ..)| *known == id).map(|(.., function)| *function)
    }

    pub(super) async fn call(self, hub: &Hub, id: &str, data: &RawValue) -> Result<Box<RawValue>, Failure> {
        match self {
            Self::Get => hub.shared.configuration.lock().await.get(&builtins::input(id, data)?),
            Self::Schema => hub.shared.configuration.lock().await.schema(&builtins::input(id, data)?),
            Self::List => hub.shared.configuration.lock().await.list(),
            Self::Register | Self::Set | Self::Delete => {
                let change = self.change(id, data)?;
                let hub = hub.clone();
                // A change that was begun is finished, whatever becomes of whoever asked for it.
                let changed = tokio::task::spawn_blocking(move || {
                    let mut configuration = hub.shared.configuration.blocking_lock();
                    let (answer, event) = configuration.change(change)?;
                    // Under the lock, so that changes are told in their order.
                    if let Some(event) = event {
                        tell(&hub, &event);
                    }
                    builtins::output(&answer)
                });
                changed.await.unwrap_or_else(|error| Err(Failure::new("ADAPTER_ERROR", error.to_string())))
            }
        }
    }

    fn change(self, id: &str, data: &RawValue) -> Result<Change, Failure> {
        Ok(match self {
            Self::Set => Change::Set(builtins::input(id, data)?),
            Self::Delete => Change::Delete(builtins::input(id, data)?),
            _ => Change::Register(builtins::input(id, data)?),
        })
    }
}

enum Change {
    Register(Register),
    Set(Set),
    Delete(Named),
}

/// Something happened to a configuration.
struct Event {
    kind: &'static str,
    entry: Entry,
    old: Option<Value>,
    new: Option<Value>,
}

fn tell(hub: &Hub, event: &Event) {
    let expanded = |value: &Option<Value>| value.as_ref().map(|value| expand::expand(value).0);
    let entry = &event.entry;
    let mut data = json!({"type": "configuration", "event_type": event.kind, "id": entry.id, "name": entry.name,
        "description": entry.description, "schema": entry.schema, "old_value": expanded(&event.old),
        "new_value": expanded(&event.new)});
    if let Some(metadata) = &entry.metadata {
        data["metadata"] = metadata.clone();
    }
    hub.registry().fire(TRIGGER_TYPE, &data.to_string(), |config| {
        wanted(config).is_ok_and(|wanted| {
            wanted.configuration_id.is_none_or(|id| id == entry.id)
                && wanted.event_types.is_none_or(|kinds| kinds.iter().any(|kind| kind == event.kind))
        })
    });
}

impl Configuration {
    fn get(&self, input: &Named) -> Result<Box<RawValue>, Failure> {
        let entry = self.find(&input.id)?;
        if input.raw {
            return builtins::output(&json!({"id": entry.id, "value": entry.value}));
        }
        let (value, unset) = expand::expand(&entry.value);
        if !unset.is_empty() {
            let message = format!(
                "configuration '{}' needs environment variables that are not set and have no default: {}",
                entry.id,
                unset.join(", ")
            );
            return Err(Failure::new("EXPAND_FAILED", message));
        }
        builtins::output(&json!({"id": entry.id, "value": value}))
    }

    fn schema(&self, input: &Named) -> Result<Box<RawValue>, Failure> {
        builtins::output(&self.find(&input.id)?.without_value())
    }

    fn list(&self) -> Result<Box<RawValue>, Failure> {
        let all: Vec<Value> = self.entries().map(Entry::without_value).collect();
        builtins::output(&json!({"configurations": all}))
    }

    /// Makes a change, and says what to answer and what to tell.
    fn change(&mut self, change: Change) -> Result<(Value, Option<Event>), Failure> {
        match change {
            Change::Register(register) => {
                check_id(&register.id)?;
                let old = self.find(&register.id).ok().map(|entry| entry.value.clone());
                let value = register.initial_value.or_else(|| old.clone()).unwrap_or_default();
                let kind = if old.is_some() { "configuration:updated" } else { "configuration:registered" };
                let entry = Entry {
                    id: register.id,
                    name: register.name,
                    description: register.description,
                    schema: register.schema,
                    value,
                    metadata: register.metadata,
                };
                self.put(entry.clone())?;
                Ok((json!(entry), Some(Event { kind, old, new: Some(entry.value.clone()), entry })))
            }
            Change::Set(set) => {
                check_id(&set.id)?;
                let Ok(entry) = self.find(&set.id) else {
                    let message = format!(
                        "configuration '{}' is not registered; call configuration::register first",
                        set.id
                    );
                    return Err(Failure::new("NOT_REGISTERED", message));
                };
                let old = entry.value.clone();
                let entry = Entry { value: set.value, ..entry.clone() };
                self.put(entry.clone())?;
                let answer = json!({"old_value": old, "new_value": entry.value});
                let new = Some(entry.value.clone());
                Ok((answer, Some(Event { kind: "configuration:updated", old: Some(old), new, entry })))
            }
            Change::Delete(named) => {
                let entry = self.find(&named.id)?.clone();
                self.remove(&named.id)?;
                let old = Some(entry.value.clone());
                Ok((json!({"ok": true}), Some(Event { kind: "configuration:deleted", old, new: None, entry })))
            }
        }
    }

    fn find(&self, id: &str) -> Result<&Entry, Failure> {
        self.entry(id).ok_or_else(|| Failure::new("NOT_FOUND", format!("configuration '{id}' not found")))
    }
}

/// The id is part of a file's name.
fn check_id(id: &str) -> Result<(), Failure> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    if (1..=64).contains(&id.len()) && id.bytes().all(fits) {
        return Ok(());
    }
    Err(Failure::new("INVALID_ID", format!("invalid configuration id '{id}': must match [a-z0-9_-]{{1,64}}")))
}
