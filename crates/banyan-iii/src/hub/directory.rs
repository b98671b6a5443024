//! What is on the bus, in the words of `engine::*::list` and `engine::*::info`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::DEFAULT_NAMESPACE;
use super::builtins::{self, Failure};
use super::configuration;
use super::functions::Function;
use super::registry::{Connection, ConnectionId, Registry};
use super::triggers::{Binding, OWN_TYPES};

/// The most characters of a binding's config in its summary.
const SUMMARY: usize = 80;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionsInput {
    search: Option<String>,
    prefix: Option<String>,
    worker: Option<String>,
    workers: Option<Vec<String>>,
    include_internal: Option<bool>,
}

impl FunctionsInput {
    pub(super) fn everything() -> Self {
        Self { include_internal: Some(true), ..Self::default() }
    }
}

#[derive(Serialize)]
pub(super) struct FunctionSummary<'a> {
    function_id: &'a str,
    namespace: &'a str,
    worker_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a RawValue>,
}

pub(super) fn functions(registry: &Registry, input: &FunctionsInput) -> Vec<Value> {
    let own = configuration::FUNCTIONS
        .iter()
        .filter(|(id, ..)| registry.functions.get(DEFAULT_NAMESPACE, id).is_none())
        .map(|(id, description, _)| FunctionSummary {
            function_id: id,
            namespace: DEFAULT_NAMESPACE,
            worker_name: first_part(id),
            description: Some(description),
            metadata: None,
        });
    let of_workers =
        registry.functions.iter().map(|(namespace, id, function)| summary(registry, namespace, id, function));
    let internal = |it: &FunctionSummary<'_>| {
        let tagged = || serde_json::from_str::<Value>(it.metadata?.get()).ok()?.get("internal")?.as_bool();
        it.function_id.starts_with("engine::") || tagged() == Some(true)
    };
    let named = |it: &FunctionSummary<'_>| {
        let several = input.workers.as_deref().unwrap_or_default();
        (input.worker.is_none() && several.is_empty())
            || input.worker.as_deref() == Some(it.worker_name)
            || several.iter().any(|name| name == it.worker_name)
    };
    let mut found: Vec<FunctionSummary<'_>> = own
        .chain(of_workers)
        .filter(|it| input.include_internal == Some(true) || !internal(it))
        .filter(|it| input.prefix.as_deref().is_none_or(|prefix| it.function_id.starts_with(prefix)))
        .filter(named)
        .filter(|it| matches(input.search.as_deref(), &[it.function_id, it.description.unwrap_or_default()]))
        .collect();
    found.sort_unstable_by_key(|it| (it.function_id, it.namespace));
    found.iter().map(|it| json!(it)).collect()
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionInput {
    function_id: Option<String>,
    function_ids: Option<Vec<String>>,
    namespace: Option<String>,
}

/// One function, or several at once.
pub(super) fn function(registry: &Registry, input: &FunctionInput) -> Result<Box<RawValue>, Failure> {
    match (&input.function_id, &input.function_ids) {
        (Some(id), None) => {
            let detail = function_detail(registry, id, input.namespace.as_deref());
            let missing = || Failure::new("NOT_FOUND", format!("Function '{id}' is not registered."));
            builtins::output(&detail.ok_or_else(missing)?)
        }
        (None, Some(ids)) => {
            let details = ids.iter().map(|id| {
                function_detail(registry, id, input.namespace.as_deref())
                    .unwrap_or_else(|| json!({"function_id": id, "error": "not_found"}))
            });
            builtins::output(&json!({"functions": details.collect::<Vec<_>>()}))
        }
        _ => Err(Failure::new("INVALID_ARGUMENTS", "Name either `function_id` or `function_ids`.")),
    }
}

fn function_detail(registry: &Registry, id: &str, namespace: Option<&str>) -> Option<Value> {
    let known = registry.functions.namespaces_of(id);
    let namespace = match (namespace, known.as_slice()) {
        (Some(named), _) => named,
        (None, [only]) => only,
        (None, _) => DEFAULT_NAMESPACE,
    };
    let function = registry.functions.get(namespace, id)?;
    let mut detail = json!(summary(registry, namespace, id, function));
    let formats = [("request_schema", &function.request_format), ("response_schema", &function.response_format)];
    for (name, format) in formats {
        if let Some(format) = format {
            detail[name] = json!(format);
        }
    }
    let bound = registry.bindings.iter().filter(|(_, it)| it.namespace == namespace && it.function_id == id);
    detail["registered_triggers"] =
        bound.map(|(id, it)| json!({"id": id, "trigger_type": it.trigger_type, "config": it.config})).collect();
    Some(detail)
}

fn summary<'a>(
    registry: &'a Registry,
    namespace: &'a str,
    id: &'a str,
    function: &'a Function,
) -> FunctionSummary<'a> {
    FunctionSummary {
        function_id: id,
        namespace,
        worker_name: worker_name(registry, function.owner).unwrap_or(first_part(id)),
        description: function.description.as_deref(),
        metadata: function.metadata.as_deref(),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct TypesInput {
    search: Option<String>,
    prefix: Option<String>,
    worker: Option<String>,
    include_internal: Option<bool>,
}

#[derive(Serialize)]
pub(super) struct TypeSummary {
    id: String,
    namespace: String,
    worker_name: String,
    description: String,
}

pub(super) fn types(registry: &Registry, input: &TypesInput) -> Vec<TypeSummary> {
    let mut found: Vec<TypeSummary> = all_types(registry)
        .into_iter()
        .filter(|it| input.include_internal == Some(true) || !it.id.starts_with("engine::"))
        .filter(|it| input.prefix.as_deref().is_none_or(|prefix| it.id.starts_with(prefix)))
        .filter(|it| input.worker.as_deref().is_none_or(|worker| it.worker_name == worker))
        .filter(|it| matches(input.search.as_deref(), &[&it.id, &it.description]))
        .collect();
    found.sort_unstable_by(|a, b| (&a.id, &a.namespace).cmp(&(&b.id, &b.namespace)));
    found
}

fn all_types(registry: &Registry) -> Vec<TypeSummary> {
    let own = OWN_TYPES.iter().filter(|(id, _)| registry.types.get(DEFAULT_NAMESPACE, id).is_none());
    let own = own.map(|(id, description)| TypeSummary {
        id: (*id).to_owned(),
        namespace: DEFAULT_NAMESPACE.to_owned(),
        worker_name: first_part(id).to_owned(),
        description: (*description).to_owned(),
    });
    let of_workers = registry.types.iter().map(|(namespace, id, kind)| TypeSummary {
        id: id.to_owned(),
        namespace: namespace.to_owned(),
        worker_name: worker_name(registry, kind.owner).unwrap_or(first_part(id)).to_owned(),
        description: kind.description.clone(),
    });
    own.chain(of_workers).collect()
}

#[derive(Deserialize)]
pub(super) struct TypeInput {
    id: String,
    namespace: Option<String>,
}

pub(super) fn kind(registry: &Registry, input: &TypeInput) -> Result<Box<RawValue>, Failure> {
    let namespace = input.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
    let found = all_types(registry).into_iter().find(|it| it.id == input.id && it.namespace == namespace);
    let missing = || {
        let message = format!("Trigger type '{}' is not registered in namespace '{namespace}'.", input.id);
        Failure::new("NOT_FOUND", message)
    };
    let mut detail = json!(found.ok_or_else(missing)?);
    if let Some(kind) = registry.types.get(namespace, &input.id) {
        let formats = [
            ("configuration_schema", &kind.trigger_request_format),
            ("request_schema", &kind.call_request_format),
        ];
        for (name, format) in formats {
            if let Some(format) = format {
                detail[name] = json!(format);
            }
        }
    }
    let bound = registry.bindings.values().filter(|it| it.trigger_type == input.id);
    detail["instance_count"] = bound.filter(|it| it.at.as_deref() == Some(namespace)).count().into();
    builtins::output(&detail)
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct BindingsInput {
    search: Option<String>,
    trigger_type: Option<String>,
    function_id: Option<String>,
    worker: Option<String>,
    include_internal: Option<bool>,
}

pub(super) fn bindings(registry: &Registry, input: &BindingsInput) -> Vec<Value> {
    registry
        .bindings
        .iter()
        .filter(|(_, it)| it.at.is_some())
        .filter(|(_, it)| input.include_internal == Some(true) || !it.function_id.starts_with("engine::"))
        .filter(|(_, it)| input.trigger_type.as_deref().is_none_or(|kind| it.trigger_type == kind))
        .filter(|(_, it)| input.function_id.as_deref().is_none_or(|id| it.function_id == id))
        .filter(|(id, it)| matches(input.search.as_deref(), &[id, &it.trigger_type, &it.function_id]))
        .map(|(id, it)| binding_summary(registry, id, it))
        .filter(|it| input.worker.as_deref().is_none_or(|worker| it["worker_name"] == worker))
        .collect()
}

fn binding_summary(registry: &Registry, id: &str, binding: &Binding) -> Value {
    let owner = registry.functions.get(&binding.namespace, &binding.function_id).map(|function| function.owner);
    let name = owner.and_then(|owner| worker_name(registry, owner)).unwrap_or(first_part(&binding.function_id));
    let mut short: String = binding.config.get().chars().take(SUMMARY).collect();
    if short.len() < binding.config.get().len() {
        short.push('…');
    }
    json!({"id": id, "trigger_type": binding.trigger_type, "function_id": binding.function_id, "worker_name": name,
        "config": binding.config, "config_summary": short})
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct WorkersInput {
    search: Option<String>,
    runtime: Option<String>,
    status: Option<String>,
}

/// Those that said what they are. An engine lists only those that gave their `pid`.
pub(super) fn workers(registry: &Registry, input: &WorkersInput) -> Vec<Value> {
    let mut found: Vec<Value> = registry
        .connections
        .iter()
        .filter(|(_, it)| it.about.announced)
        .filter(|(_, it)| input.runtime.is_none() || it.about.runtime == input.runtime)
        .filter(|_| input.status.as_deref().is_none_or(|status| status == "connected"))
        .filter(|(_, it)| matches(input.search.as_deref(), &[it.about.name.as_deref().unwrap_or_default()]))
        .map(|(id, it)| worker_summary(registry, *id, it))
        .collect();
    found.sort_by(|a, b| (a["name"].as_str(), a["id"].as_str()).cmp(&(b["name"].as_str(), b["id"].as_str())));
    found
}

#[derive(Deserialize)]
pub(super) struct WorkerInput {
    name: String,
    namespace: Option<String>,
}

pub(super) fn worker(registry: &Registry, input: &WorkerInput) -> Result<Box<RawValue>, Failure> {
    let mut named: Vec<(&ConnectionId, &Connection)> = registry
        .connections
        .iter()
        .filter(|(_, it)| it.about.name.as_deref() == Some(&input.name))
        .filter(|(_, it)| input.namespace.as_deref().is_none_or(|namespace| it.namespace == namespace))
        .collect();
    named.sort_by_key(|(_, it)| it.namespace != DEFAULT_NAMESPACE);
    let Some(&(&id, connection)) = named.first() else {
        return Err(Failure::new("NOT_FOUND", format!("Worker '{}' is not connected.", input.name)));
    };
    let mut worker = worker_summary(registry, id, connection);
    worker["internal"] = false.into();
    if let Some(pid) = connection.about.pid {
        worker["pid"] = pid.into();
    }
    let mut functions: Vec<FunctionSummary<'_>> = registry
        .functions
        .iter()
        .filter(|(_, _, function)| function.owner == id)
        .map(|(namespace, id, function)| summary(registry, namespace, id, function))
        .collect();
    functions.sort_unstable_by_key(|it| it.function_id);
    let of_it = |it: &Binding| {
        registry.functions.get(&it.namespace, &it.function_id).is_some_and(|function| function.owner == id)
    };
    let bound = registry.bindings.iter().filter(|(_, it)| of_it(it));
    let bound: Vec<Value> = bound.map(|(id, it)| binding_summary(registry, id, it)).collect();
    let mut kinds: Vec<(&str, &str, &str)> = registry
        .types
        .iter()
        .filter(|(_, _, kind)| kind.owner == id)
        .map(|(namespace, id, kind)| (id, namespace, kind.description.as_str()))
        .collect();
    kinds.sort_unstable();
    let kinds: Vec<Value> = kinds
        .iter()
        .map(|(id, namespace, description)| {
            json!({"id": id, "namespace": namespace, "worker_name": input.name, "description": description})
        })
        .collect();
    builtins::output(&json!({"worker": worker, "functions": functions, "trigger_types": kinds,
        "registered_triggers": bound}))
}

fn worker_summary(registry: &Registry, id: ConnectionId, connection: &Connection) -> Value {
    let about = &connection.about;
    let functions = registry.functions.iter().filter(|(_, _, function)| function.owner == id).count();
    json!({"name": about.name, "description": about.description, "version": about.version,
        "id": &*connection.worker_id, "namespace": connection.namespace, "runtime": about.runtime, "os": about.os,
        "status": "connected", "function_count": functions, "connected_at_ms": connection.connected_at_ms,
        "active_invocations": registry.calls_of(id), "isolation": about.isolation,
        "ip_address": connection.peer.map(|peer| peer.to_string())})
}

fn worker_name(registry: &Registry, id: ConnectionId) -> Option<&str> {
    registry.connections.get(&id)?.about.name.as_deref()
}

fn first_part(id: &str) -> &str {
    id.split("::").next().unwrap_or(id)
}

/// Whether any of the texts contains what is searched for, in whatever case.
fn matches(search: Option<&str>, texts: &[&str]) -> bool {
    let search = search.unwrap_or_default().to_lowercase();
    search.is_empty() || texts.iter().any(|text| text.to_lowercase().contains(&search))
}
