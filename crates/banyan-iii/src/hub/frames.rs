//! What a worker says, one message after the other.

use std::net::IpAddr;
use std::sync::Arc;

use serde::Deserialize;
use tokio_tungstenite::tungstenite::{Bytes, Utf8Bytes};

use crate::wire::Message;

use super::outbox::Outbox;
use super::registry::ConnectionId;
use super::{Hub, builtins};

/// A worker's side of the bus, for as long as its connection lasts.
pub(super) struct Reader<'h> {
    pub(super) hub: &'h Hub,
    pub(super) id: ConnectionId,
    pub(super) worker_id: Arc<str>,
    pub(super) outbox: Outbox,
    /// Registrations from before the worker said which namespace it is in. Some SDKs say so last.
    waiting: Option<Vec<Utf8Bytes>>,
    waiting_bytes: usize,
}

impl<'h> Reader<'h> {
    pub(super) fn connect(hub: &'h Hub, outbox: Outbox, peer: Option<IpAddr>) -> Self {
        let (id, worker_id) = hub.registry().connect(outbox.clone(), peer);
        Self { hub, id, worker_id, outbox, waiting: Some(Vec::new()), waiting_bytes: 0 }
    }

    /// What the worker brought is gone with its connection, at the latest when this is dropped.
    pub(super) fn disconnect(&self) {
        self.hub.registry().disconnect(self.id);
        self.hub.functions_changed();
    }

    pub(super) fn worker_id(&self) -> &str {
        &self.worker_id
    }

    /// Whether registrations may have to wait.
    pub(super) fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// Takes in the registrations that waited.
    pub(super) fn stop_waiting(&mut self) {
        for text in self.waiting.take().unwrap_or_default() {
            if let Ok(Some(message)) = Message::read(&text) {
                self.register(message);
            }
        }
        self.hub.functions_changed();
    }

    /// One message.
    pub(super) async fn take(&mut self, text: Utf8Bytes) {
        match Message::read(&text) {
            Ok(Some(Message::InvokeFunction(call))) if call.function_id == builtins::REGISTER_WORKER => {
                self.announce(&call);
            }
            Ok(Some(Message::InvokeFunction(call))) => self.invoke(call).await,
            Ok(Some(Message::InvocationResult(answer))) => self.answer(&answer, &text),
            Ok(Some(Message::TriggerRegistrationResult { id, error, .. })) => {
                self.hub.registry().trigger_result(self.id, &id, error);
            }
            Ok(Some(Message::Ping)) => self.outbox.push(Message::Pong.write()),
            Ok(Some(Message::Reattach { previous_worker_id, reattach_token })) => {
                self.hub.registry().reattach(self.id, &previous_worker_id, reattach_token.as_deref());
            }
            // These come from an engine, or ask for nothing.
            Ok(Some(Message::Pong | Message::WorkerRegistered { .. } | Message::RegistrationRejected { .. })) => {}
            Ok(Some(message)) => {
                if self.waiting.is_some() {
                    self.wait(text.clone());
                } else {
                    self.register(message);
                }
            }
            // Newer SDKs may know messages that this bus does not; they are told what it can by what it answers.
            Ok(None) => tracing::debug!(worker = self.worker_id(), "a message of an unknown type is passed over"),
            Err(error) => {
                tracing::warn!(worker = self.worker_id(), %error, "a message could not be read");
                self.unreadable(&text, &error.to_string());
            }
        }
    }

    /// Telemetry comes in binary frames and is dropped; anything else is taken as text.
    pub(super) async fn take_bytes(&mut self, bytes: Bytes) {
        if [b"OTLP", b"MTRC", b"LOGS"].iter().any(|telemetry| bytes.starts_with(*telemetry)) {
            return;
        }
        match Utf8Bytes::try_from(bytes) {
            Ok(text) => self.take(text).await,
            Err(_) => tracing::warn!(worker = self.worker_id(), "a binary message could not be read"),
        }
    }

    fn wait(&mut self, text: Utf8Bytes) {
        self.waiting_bytes += text.len();
        if let Some(waiting) = &mut self.waiting {
            waiting.push(text);
        }
        if self.waiting_bytes > self.hub.options().queue_bytes {
            tracing::warn!(worker = self.worker_id(), "a worker registers a lot and does not say its namespace");
            self.stop_waiting();
        }
    }

    fn register(&self, message: Message<'_>) {
        let mut registry = self.hub.registry();
        let functions = matches!(message, Message::RegisterFunction { .. } | Message::UnregisterFunction { .. });
        match message {
            Message::RegisterFunction { id, description, request_format, response_format, metadata } => {
                registry.register_function(
                    self.id,
                    &id,
                    description.map(Into::into),
                    [request_format, response_format, metadata].map(|it| it.map(|raw| raw.into_owned())),
                );
            }
            Message::UnregisterFunction { id } => registry.unregister_function(self.id, &id),
            Message::RegisterTriggerType { id, description, trigger_request_format, call_request_format } => {
                let formats =
                    [trigger_request_format, call_request_format].map(|it| it.map(|raw| raw.into_owned()));
                registry.register_type(self.id, &id, description.into_owned(), formats);
            }
            Message::UnregisterTriggerType { id } => registry.unregister_type(self.id, &id),
            Message::RegisterTrigger(trigger) => registry.bind(self.id, &trigger),
            Message::UnregisterTrigger { id, .. } => registry.unbind(&id),
            _ => {}
        }
        drop(registry);
        if functions && self.waiting.is_none() {
            self.hub.functions_changed();
        }
    }

    /// Whoever waits for an answer gets one, even when what was said makes no sense.
    fn unreadable(&self, text: &str, why: &str) {
        #[derive(Deserialize)]
        struct Glimpse {
            #[serde(rename = "type")]
            kind: String,
            invocation_id: String,
            #[serde(default)]
            function_id: String,
        }
        let Ok(glimpse) = serde_json::from_str::<Glimpse>(text) else { return };
        match glimpse.kind.as_str() {
            "invokefunction" => self.fail(&glimpse.invocation_id, &glimpse.function_id, "invalid_message", why),
            "invocationresult" => self.hub.registry().spoiled_answer(self.id, &glimpse.invocation_id, why),
            _ => {}
        }
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.disconnect();
    }
}
