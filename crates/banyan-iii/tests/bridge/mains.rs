//! Main instances to store through, in this process: a Banyan, and one that does what session-manager's store does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use banyan::model::store::EventEnvelope;
use banyan::model::{Event, Position};
use banyan::{Banyan, CallError};
use banyan_iii::bridge::{Main, MainFailed};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A Banyan at the other end of a bus that writes requests anew, their keys in another order.
pub struct BanyanMain(pub Banyan);

impl Main for BanyanMain {
    fn call<'a>(
        &'a self,
        function_id: &'a str,
        body: String,
        _: Option<Duration>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, MainFailed>> {
        Box::pin(async move {
            let mut body: Value = serde_json::from_str(&body).unwrap();
            body.sort_all_objects();
            let body = body.to_string();
            let answered = match function_id.starts_with("session::store::") {
                true => self.0.store_call(function_id, body.as_bytes()).await,
                false => self.0.call(function_id, body.as_bytes()).await,
            };
            match answered {
                Ok(answer) => Ok(RawValue::from_string(answer).unwrap()),
                Err(CallError::UnknownFunction { .. }) => Err(MainFailed::NoSuchFunction),
                Err(CallError::Refused(error)) => Err(MainFailed::Refused {
                    code: "invocation_failed".into(),
                    message: format!("handler error: {error}"),
                }),
            }
        })
    }
}

/// What session-manager's store does: things are put and read as they are.
#[derive(Default)]
pub struct ReferenceMain(Mutex<Kept>);

#[derive(Default)]
pub struct Kept {
    pub metas: BTreeMap<String, Value>,
    pub entries: BTreeMap<String, BTreeMap<String, Value>>,
    pub leaves: BTreeMap<String, String>,
    pub published: Vec<Arc<Event>>,
    /// Which functions were called, in order.
    pub calls: Vec<String>,
}

impl ReferenceMain {
    pub fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap()
    }
}

impl Kept {
    fn call(&mut self, function: &str, request: &Value) -> Option<Value> {
        let session = || request["session_id"].as_str().unwrap().to_owned();
        let done = json!({"ok": true});
        Some(match function {
            "get-meta" => self.metas.get(&session()).cloned().unwrap_or_default(),
            "put-meta" => {
                let id = request["meta"]["session_id"].as_str().unwrap();
                self.metas.insert(id.to_owned(), request["meta"].clone());
                done
            }
            "delete-meta" => {
                self.metas.remove(&session());
                done
            }
            "list-metas" => json!({"metas": self.metas.values().collect::<Vec<_>>()}),
            "get-entry" => {
                let entries = self.entries.get(&session());
                entries.and_then(|it| it.get(request["entry_id"].as_str().unwrap())).cloned().unwrap_or_default()
            }
            "put-entry" => {
                let id = request["entry"]["id"].as_str().unwrap().to_owned();
                self.entries.entry(session()).or_default().insert(id, request["entry"].clone());
                done
            }
            "list-entries" => {
                let entries = self.entries.get(&session()).map(|it| it.values().collect::<Vec<_>>());
                json!({"entries": entries.unwrap_or_default()})
            }
            "delete-entries" => {
                self.entries.remove(&session());
                done
            }
            "get-active-leaf" => json!({"entry_id": self.leaves.get(&session())}),
            "set-active-leaf" => {
                self.leaves.insert(session(), request["entry_id"].as_str().unwrap().to_owned());
                done
            }
            "delete-active-leaf" => {
                self.leaves.remove(&session());
                done
            }
            "publish-events" => {
                let envelopes: Vec<EventEnvelope> = serde_json::from_value(request["events"].clone()).unwrap();
                let before = self.published.len();
                for envelope in envelopes {
                    let Some((payload, role)) = envelope.open() else { continue };
                    let position = Position::new((self.published.len() as u64 + 1).into(), 0);
                    let metadata = envelope.session_metadata.map(Arc::new);
                    self.published.push(Arc::new(Event::new(position, payload, role, metadata)));
                }
                json!({"published": self.published.len() - before})
            }
            _ => return None,
        })
    }
}

impl Main for ReferenceMain {
    fn call<'a>(
        &'a self,
        function_id: &'a str,
        body: String,
        _: Option<Duration>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, MainFailed>> {
        Box::pin(async move {
            let request: Value = serde_json::from_str(&body).unwrap();
            let function = function_id.strip_prefix("session::store::").ok_or(MainFailed::NoSuchFunction)?;
            let mut kept = self.kept();
            kept.calls.push(function.to_owned());
            let answer = kept.call(function, &request).ok_or(MainFailed::NoSuchFunction)?;
            Ok(RawValue::from_string(answer.to_string()).unwrap())
        })
    }
}

/// A Banyan of which only what session-manager publishes is used, as session-manager's own bridge does.
pub struct PublishedOnly(pub BanyanMain);

impl Main for PublishedOnly {
    fn call<'a>(
        &'a self,
        function_id: &'a str,
        body: String,
        within: Option<Duration>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, MainFailed>> {
        match function_id {
            "session::store::look" | "session::store::commit" => {
                Box::pin(async { Err(MainFailed::NoSuchFunction) })
            }
            _ => self.0.call(function_id, body, within),
        }
    }
}
