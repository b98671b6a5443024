//! The functions that the bus has itself. A worker that offers one of the same name is called instead.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::wire::{Action, InvokeFunction, Message};

use super::calls::blank_namespace;
use super::frames::Reader;
use super::registry::{About, Registry};
use super::{DEFAULT_NAMESPACE, Hub, configuration, directory};

/// What a worker says of itself. Every SDK calls this when it connects, and it tells the namespace.
pub(super) const REGISTER_WORKER: &str = "engine::workers::register";

pub(super) const THIS: &str = "this is Banyan's own bus, which";
pub(super) const INSTEAD: &str =
    "For that, run a full engine (the command `iii`, see https://iii.dev) and connect to it.";

/// What only a full engine has: functions that start with these.
const OF_AN_ENGINE: [&str; 9] =
    ["engine::", "iii::", "state::", "stream::", "queue::", "pubsub::", "cron::", "http::", "durable::"];
/// Kinds of triggers that only a full engine has.
const TYPES_OF_AN_ENGINE: [&str; 10] = [
    "http",
    "cron",
    "subscribe",
    "state",
    "durable:subscriber",
    "queue",
    "stream",
    "stream:join",
    "stream:leave",
    "log",
];
/// What is said of a worker's name or description goes no further than this.
const TEXT: usize = 280;

/// Why a call failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Failure {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Calls a function of the bus. `None` when it has none of that name.
pub(super) async fn call(
    hub: &Hub,
    namespace: &str,
    id: &str,
    data: &RawValue,
) -> Option<Result<Box<RawValue>, Failure>> {
    if namespace != DEFAULT_NAMESPACE {
        return None;
    }
    if let Some(function) = configuration::Function::of(id) {
        return Some(function.call(hub, id, data).await);
    }
    Some(match id {
        "engine::workers::list" => list(hub, id, data, directory::workers, "workers"),
        "engine::functions::list" => list(hub, id, data, directory::functions, "functions"),
        "engine::triggers::list" => list(hub, id, data, directory::types, "triggers"),
        "engine::registered-triggers::list" => list(hub, id, data, directory::bindings, "registered_triggers"),
        "engine::functions::info" => input(id, data).and_then(|it| directory::function(&hub.registry(), &it)),
        "engine::triggers::info" => input(id, data).and_then(|it| directory::kind(&hub.registry(), &it)),
        "engine::workers::info" => input(id, data).and_then(|it| directory::worker(&hub.registry(), &it)),
        _ => return None,
    })
}

fn list<I: DeserializeOwned, O: serde::Serialize>(
    hub: &Hub,
    id: &str,
    data: &RawValue,
    find: impl Fn(&Registry, &I) -> Vec<O>,
    name: &str,
) -> Result<Box<RawValue>, Failure> {
    let found = find(&hub.registry(), &input(id, data)?);
    output(&std::collections::BTreeMap::from([(name, found)]))
}

/// What a function of the bus is called with. Nothing is as good as an empty object.
pub(super) fn input<I: DeserializeOwned>(id: &str, data: &RawValue) -> Result<I, Failure> {
    let data = if data.get() == "null" { "{}" } else { data.get() };
    serde_json::from_str(data).map_err(|error| {
        Failure::new("deserialization_error", format!("{id} cannot be called with this: {error}"))
    })
}

pub(super) fn output(answer: &impl serde::Serialize) -> Result<Box<RawValue>, Failure> {
    serde_json::value::to_raw_value(answer).map_err(|error| Failure::new("serialization_error", error.to_string()))
}

/// Says that there is no such function, and where one might be.
pub(super) fn not_found(registry: &Registry, namespace: &str, id: &str) -> Failure {
    let mut message = format!("Function {id} not found in namespace {namespace}.");
    let mut elsewhere = registry.functions.namespaces_of(id);
    if configuration::Function::of(id).is_some() && !elsewhere.contains(&DEFAULT_NAMESPACE) {
        elsewhere.push(DEFAULT_NAMESPACE);
    }
    if !elsewhere.is_empty() {
        message += &format!(" It is registered in namespace(s): {}.", elsewhere.join(", "));
    } else if OF_AN_ENGINE.iter().any(|prefix| id.starts_with(prefix)) || matches!(id, "publish" | "enqueue") {
        message += &format!(
            " The reason: {THIS} has only the functions of the workers that are connected to it. {INSTEAD}"
        );
    }
    Failure::new("function_not_found", message)
}

/// Says that nobody offers a kind of trigger yet.
pub(super) fn warn_of_waiting(id: &str, kind: &str, function: &str) {
    if TYPES_OF_AN_ENGINE.contains(&kind) {
        tracing::warn!(trigger = id, kind, function, "{THIS} has no triggers of this kind. {INSTEAD}");
    } else {
        tracing::info!(trigger = id, kind, function, "a trigger waits for a worker that offers its kind");
    }
}

#[derive(Deserialize)]
struct RegisterWorker {
    name: Option<String>,
    description: Option<String>,
    version: Option<String>,
    runtime: Option<String>,
    os: Option<String>,
    isolation: Option<String>,
    pid: Option<u32>,
    namespace: Option<String>,
}

impl Reader<'_> {
    /// The worker says what it is, and with that where its functions belong.
    pub(super) fn announce(&mut self, call: &InvokeFunction<'_>) {
        let result = self.take_announcement(&call.data);
        let waits = !matches!(call.action, Some(Action::Void));
        match (result, call.invocation_id.as_deref().filter(|_| waits)) {
            (Ok(()), Some(id)) => self.outbox.push(
                Message::InvocationResult(crate::wire::InvocationResult {
                    invocation_id: id.into(),
                    function_id: REGISTER_WORKER.into(),
                    result: output(&serde_json::json!({"success": true})).ok().map(std::borrow::Cow::Owned),
                    error: None,
                    traceparent: call.traceparent.clone(),
                    baggage: call.baggage.clone(),
                })
                .write(),
            ),
            (Err(failure), Some(id)) => self.fail(id, REGISTER_WORKER, failure.code, &failure.message),
            (Err(failure), None) => {
                tracing::warn!(
                    worker = self.worker_id(),
                    why = failure.message,
                    "a worker did not say what it is"
                );
            }
            (Ok(()), None) => {}
        }
    }

    fn take_announcement(&mut self, data: &RawValue) -> Result<(), Failure> {
        let said: RegisterWorker = input(REGISTER_WORKER, data)?;
        if said.namespace.as_ref().is_some_and(|namespace| namespace.trim().is_empty()) {
            return Err(blank_namespace("namespace"));
        }
        let about = About {
            announced: true,
            name: said.name.and_then(shown),
            description: said.description.and_then(shown),
            version: said.version,
            runtime: Some(said.runtime.unwrap_or_else(|| "unknown".to_owned())),
            os: said.os,
            isolation: said.isolation,
            pid: said.pid,
        };
        // Whoever took too long to say so is in the default namespace by now.
        let namespace = said.namespace.filter(|_| self.waits());
        self.hub.registry().announce(self.id, about, namespace);
        self.stop_waiting();
        Ok(())
    }
}

/// What others say of themselves, fit to be shown: one line without control characters.
fn shown(text: String) -> Option<String> {
    let hidden = |c: &char| {
        c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
    };
    let text: String = text.chars().filter(|c| !hidden(c)).take(TEXT).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
