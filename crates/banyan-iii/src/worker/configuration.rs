//! Asking the engine's configuration worker.

use std::time::Duration;

use serde_json::{Value, json};

use super::config::WorkerConfig;
use super::offers::{CONFIGURATION, DELETED};
use crate::link::{CallFailed, Link};

/// How long one call may take, how often it is tried, and what is waited before the next try, times the tries so far.
const WITHIN: Duration = Duration::from_secs(5);
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(250);

/// Why the settings could not be made known.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotRegistered {
    /// The value to begin with makes no sense. Nothing was stored.
    #[error("{0}")]
    Seed(String),
    /// The configuration worker could not be asked.
    #[error(transparent)]
    Call(#[from] CallFailed),
}

/// Makes the settings known. `seed` becomes their value if there is none yet.
pub(super) async fn register(link: &Link, seed: &Value) -> Result<(), NotRegistered> {
    // A value that is there already is not touched: not every configuration worker keeps it when it is given another.
    if stored(link, true).await?.is_some_and(|value| !value.is_null()) {
        return Ok(describe(link).await?);
    }
    // What is left for the configuration worker to put in is only known there.
    if !seed.to_string().contains("${") {
        WorkerConfig::read(seed).map_err(NotRegistered::Seed)?;
    }
    let mut request = described();
    request["initial_value"] = seed.clone();
    match ask(link, "configuration::register", &request).await {
        Ok(_) => Ok(()),
        Err(CallFailed::Refused(error)) if is_invalid(&error.code) => {
            Err(NotRegistered::Seed(error.message.into_owned()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Says again what the settings are, and leaves their value alone.
pub(super) async fn describe(link: &Link) -> Result<(), CallFailed> {
    ask(link, "configuration::register", &described()).await.map(drop)
}

/// Whether the configuration worker says by a code that a value makes no sense.
pub(super) fn is_invalid(code: &str) -> bool {
    ["SCHEMA_INVALID", "EXPAND_FAILED"].iter().any(|invalid| code.eq_ignore_ascii_case(invalid))
}

fn described() -> Value {
    json!({
        "id": CONFIGURATION,
        "name": "Session Manager",
        "description": "Where sessions are stored, and how large a page may be.",
        "schema": WorkerConfig::schema(),
    })
}

/// The value as it is now, with everything put in; `None` when there is none.
pub(super) async fn value(link: &Link) -> Result<Option<Value>, CallFailed> {
    Ok(stored(link, false).await?.filter(|value| !value.is_null()))
}

/// Whether a change of the settings is that they are gone.
pub(super) fn are_gone(change: &str) -> bool {
    let change: Value = serde_json::from_str(change).unwrap_or_default();
    change["event_type"] == DELETED
}

async fn stored(link: &Link, raw: bool) -> Result<Option<Value>, CallFailed> {
    match ask(link, "configuration::get", &json!({"id": CONFIGURATION, "raw": raw})).await {
        Ok(mut answer) => Ok(Some(answer.get_mut("value").map(Value::take).unwrap_or_default())),
        Err(CallFailed::Refused(error)) if is_missing(&error.code) || is_missing(&error.message) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_missing(text: &str) -> bool {
    let text = text.to_ascii_uppercase();
    text.contains("NOT_FOUND") && !text.contains("FUNCTION_NOT_FOUND")
}

async fn ask(link: &Link, function_id: &str, request: &Value) -> Result<Value, CallFailed> {
    let mut tried = 0;
    loop {
        let answer = link.call(function_id, &request.to_string(), WITHIN).await;
        tried += 1;
        match answer {
            Ok(answer) => return Ok(serde_json::from_str(answer.get()).unwrap_or_default()),
            Err(error @ CallFailed::Refused(_)) if !is_starting(&error) => return Err(error),
            Err(error) if tried == TRIES => return Err(error),
            Err(_) => tokio::time::sleep(PAUSE * tried).await,
        }
    }
}

/// Whether it may work once the engine has started everything.
fn is_starting(error: &CallFailed) -> bool {
    matches!(error, CallFailed::Refused(error) if error.code.eq_ignore_ascii_case("function_not_found"))
}
