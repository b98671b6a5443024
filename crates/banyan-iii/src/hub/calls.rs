//! Calls: from whoever calls to whoever has the function, and answers back.

use tokio_tungstenite::tungstenite::Utf8Bytes;
use uuid::Uuid;

use crate::wire::{Action, ErrorBody, InvocationResult, InvokeFunction, Message};

use super::builtins::{self, Failure};
use super::frames::Reader;
use super::outbox::Outbox;
use super::registry::{ConnectionId, Registry};
use super::{DEFAULT_NAMESPACE, relay};

/// Answers of at least this size are passed on in the buffer that they were read into; smaller ones are copied out of it.
const SHARED: usize = 4 << 10;

/// A call that somebody waits for.
pub(super) struct Call {
    caller: ConnectionId,
    callee: ConnectionId,
    function_id: Box<str>,
}

impl Reader<'_> {
    /// Passes a call on, or answers it.
    pub(super) async fn invoke(&mut self, call: InvokeFunction<'_>) {
        let waits = !matches!(call.action, Some(Action::Void));
        let answer_to = call.invocation_id.as_deref().filter(|_| waits);
        if let Err(failure) = self.route(&call, answer_to).await {
            match answer_to {
                Some(id) => self.fail(id, &call.function_id, failure.code, &failure.message),
                None => {
                    tracing::debug!(function = &*call.function_id, why = failure.message, "a call went nowhere")
                }
            }
        }
    }

    async fn route(&mut self, call: &InvokeFunction<'_>, answer_to: Option<&str>) -> Result<(), Failure> {
        let namespace = call.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        if namespace.trim().is_empty() {
            return Err(blank_namespace("namespace"));
        }
        if let Some(Action::Enqueue { queue }) = &call.action {
            return Err(Failure::new(
                "enqueue_error",
                format!(
                    "The queue `{queue}` is not here: {} has no queues. {}",
                    builtins::THIS,
                    builtins::INSTEAD
                ),
            ));
        }
        let found = {
            let registry = self.hub.registry();
            let function = registry.functions.get(namespace, &call.function_id);
            function.and_then(|function| Some((function.owner, registry.outbox(function.owner)?.clone())))
        };
        let Some((callee, outbox)) = found else {
            return self.call_builtin(call, namespace, answer_to).await;
        };
        let text = relay::call(call, answer_to, &self.worker_id);
        let Some(id) = answer_to else {
            outbox.push(text);
            return Ok(());
        };
        let id = Uuid::try_parse(id)
            .map_err(|_| Failure::new("invalid_message", "the `invocation_id` of a call is a UUID".to_owned()))?;
        self.hub.registry().pass_on(self.id, callee, &outbox, id, &call.function_id, text)
    }

    async fn call_builtin(
        &mut self,
        call: &InvokeFunction<'_>,
        namespace: &str,
        answer_to: Option<&str>,
    ) -> Result<(), Failure> {
        let result = match builtins::call(self.hub, namespace, &call.function_id, &call.data).await {
            Some(result) => result?,
            None => return Err(builtins::not_found(&self.hub.registry(), namespace, &call.function_id)),
        };
        if let Some(id) = answer_to {
            let result = InvocationResult {
                invocation_id: id.into(),
                function_id: call.function_id.as_ref().into(),
                result: Some(std::borrow::Cow::Owned(result)),
                error: None,
                traceparent: call.traceparent.clone(),
                baggage: call.baggage.clone(),
            };
            self.outbox.push(Message::InvocationResult(result).write());
        }
        Ok(())
    }

    /// Passes an answer on, as it came.
    pub(super) fn answer(&self, answer: &InvocationResult<'_>, text: &Utf8Bytes) {
        let Ok(id) = Uuid::try_parse(&answer.invocation_id) else { return };
        let text = if text.len() < SHARED { Utf8Bytes::from(text.as_str()) } else { text.clone() };
        self.hub.registry().answer(self.id, id, text);
    }

    /// Answers a call with an error.
    pub(super) fn fail(&self, invocation_id: &str, function_id: &str, code: &str, message: &str) {
        fail(&self.outbox, invocation_id, function_id, code, message);
    }
}

impl Registry {
    /// Queues a call for the worker that has the function, and remembers who waits for the answer.
    fn pass_on(
        &mut self,
        caller: ConnectionId,
        callee: ConnectionId,
        outbox: &Outbox,
        id: Uuid,
        function_id: &str,
        text: String,
    ) -> Result<(), Failure> {
        if !self.connections.contains_key(&callee) {
            return Err(stopped(function_id));
        }
        if self.calls.contains_key(&id) {
            let message = "a call with the same `invocation_id` is under way".to_owned();
            return Err(Failure::new("invocation_error", message));
        }
        // Whoever can be told is told, rather than that the worker is disconnected from everybody.
        if !outbox.has_room(text.len()) {
            let message = format!(
                "The worker that has {function_id} is too far behind with what it was sent. Try again later."
            );
            return Err(Failure::new("worker_busy", message));
        }
        self.calls.insert(id, Call { caller, callee, function_id: function_id.into() });
        outbox.push(text);
        Ok(())
    }

    /// Only the worker that was called can answer.
    fn answer(&mut self, from: ConnectionId, id: Uuid, text: Utf8Bytes) {
        if self.calls.get(&id).is_some_and(|call| call.callee == from)
            && let Some(call) = self.calls.remove(&id)
            && let Some(outbox) = self.outbox(call.caller)
        {
            outbox.push(text);
        }
    }

    /// An answer that could not be read.
    pub(super) fn spoiled_answer(&mut self, from: ConnectionId, invocation_id: &str, why: &str) {
        let Ok(id) = Uuid::try_parse(invocation_id) else { return };
        if self.calls.get(&id).is_some_and(|call| call.callee == from)
            && let Some(call) = self.calls.remove(&id)
            && let Some(outbox) = self.outbox(call.caller)
        {
            let message = format!("The worker's answer could not be read: {why}.");
            fail(outbox, invocation_id, &call.function_id, "invalid_message", &message);
        }
    }

    /// How many calls a connection is part of.
    pub(super) fn calls_of(&self, id: ConnectionId) -> usize {
        self.calls.values().filter(|call| call.callee == id || call.caller == id).count()
    }

    /// A connection is gone: nobody waits for it, and it waits for nobody.
    pub(super) fn forget_calls(&mut self, gone: ConnectionId) {
        let ended = self.calls.extract_if(|_, call| call.callee == gone || call.caller == gone);
        for (id, call) in ended.collect::<Vec<_>>() {
            if let Some(outbox) = self.outbox(call.caller) {
                let failure = stopped(&call.function_id);
                fail(outbox, &id.to_string(), &call.function_id, failure.code, &failure.message);
            }
        }
    }
}

pub(super) fn blank_namespace(field: &str) -> Failure {
    Failure::new("INVALID_NAMESPACE", format!("`{field}` is blank. Name a namespace, or leave it out."))
}

fn stopped(function_id: &str) -> Failure {
    let message = format!("Invocation stopped: the worker that has {function_id} is gone.");
    Failure::new("invocation_stopped", message)
}

fn fail(outbox: &Outbox, invocation_id: &str, function_id: &str, code: &str, message: &str) {
    let error = ErrorBody { code: code.into(), message: message.into(), stacktrace: None };
    let result = InvocationResult {
        invocation_id: invocation_id.into(),
        function_id: function_id.into(),
        result: None,
        error: Some(error),
        traceparent: None,
        baggage: None,
    };
    outbox.push(Message::InvocationResult(result).write());
}
