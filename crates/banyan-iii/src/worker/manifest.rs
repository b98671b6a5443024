//! What an installer asks a worker about itself.

use serde_json::{Value, json};

use super::config::WorkerConfig;

/// The name that everyone on the bus knows the worker by.
pub(super) const NAME: &str = "session-manager";
/// The version of the contract that it keeps.
pub(super) const VERSION: &str = "1.0.0";
/// What it is, in a sentence.
pub(super) const DESCRIPTION: &str =
    concat!("Durable, reactive, branching store of conversations (Banyan ", env!("CARGO_PKG_VERSION"), ").");

/// The worker's manifest, as an installer asks for it.
pub fn manifest() -> Value {
    json!({
        "name": NAME,
        "version": VERSION,
        "description": DESCRIPTION,
        "default_config": WorkerConfig::default().to_value(),
        "supported_targets": [env!("BANYAN_TARGET")],
    })
}

/// What the worker tells the engine about itself, as JSON.
pub(super) fn identity() -> String {
    let named = std::env::var("III_WORKER_NAME").ok().filter(|name| !name.trim().is_empty());
    identity_of(named.as_deref().unwrap_or(NAME))
}

/// The same, for the engine that a main instance is on, where this worker is another one of many.
pub(super) fn bridge_identity(which: &str) -> String {
    identity_of(&format!("{NAME}-bridge-{which}"))
}

fn identity_of(name: &str) -> String {
    use std::env::{consts, var};
    let mut identity = json!({
        "runtime": "rust",
        "version": VERSION,
        "name": name,
        "description": DESCRIPTION,
        "os": format!("{} {} ({})", consts::OS, consts::ARCH, consts::FAMILY),
        "pid": std::process::id(),
    });
    for (key, variable) in [("namespace", "III_NAMESPACE"), ("isolation", "III_ISOLATION")] {
        if let Some(value) = var(variable).ok().filter(|value| !value.trim().is_empty()) {
            identity[key] = Value::String(value);
        }
    }
    identity.to_string()
}
