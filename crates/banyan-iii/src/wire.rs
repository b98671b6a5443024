//! What an engine and its workers say to each other: one JSON object in each text frame of a WebSocket.
//!
//! Whatever is passed on stays the text that it came as ([`RawValue`]); nobody in between parses it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A message, in either direction.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Message<'a> {
    /// A worker offers a kind of trigger.
    RegisterTriggerType {
        /// Its name, for example `session::created`.
        id: Cow<'a, str>,
        /// What it is, for people.
        description: Cow<'a, str>,
        /// JSON Schema of a binding's `config`.
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger_request_format: Option<Cow<'a, RawValue>>,
        /// JSON Schema of what a bound function is called with.
        #[serde(skip_serializing_if = "Option::is_none")]
        call_request_format: Option<Cow<'a, RawValue>>,
    },
    /// The kind of trigger is gone.
    UnregisterTriggerType {
        /// Its name.
        id: Cow<'a, str>,
    },
    /// A function is bound to a kind of trigger. The engine passes this on to whoever offers the kind.
    RegisterTrigger(RegisterTrigger<'a>),
    /// Whoever offers the kind of trigger took the binding, or says why not.
    TriggerRegistrationResult {
        /// The binding.
        id: Cow<'a, str>,
        /// The kind of trigger.
        trigger_type: Cow<'a, str>,
        /// The bound function.
        function_id: Cow<'a, str>,
        /// Why it was refused.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorBody<'a>>,
    },
    /// A binding is gone.
    UnregisterTrigger {
        /// The binding.
        id: Cow<'a, str>,
        /// The kind of trigger. Some senders leave it out.
        trigger_type: Cow<'a, str>,
    },
    /// A worker offers a function.
    RegisterFunction {
        /// Its name, for example `session::append`.
        id: Cow<'a, str>,
        /// What it does, for people.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<Cow<'a, str>>,
        /// JSON Schema of what it is called with.
        #[serde(skip_serializing_if = "Option::is_none")]
        request_format: Option<Cow<'a, RawValue>>,
        /// JSON Schema of what it answers.
        #[serde(skip_serializing_if = "Option::is_none")]
        response_format: Option<Cow<'a, RawValue>>,
        /// Anything else that the worker says about it.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Cow<'a, RawValue>>,
    },
    /// The function is gone.
    UnregisterFunction {
        /// Its name.
        id: Cow<'a, str>,
    },
    /// A call: from a worker to the engine, and from the engine to the worker that has the function.
    InvokeFunction(InvokeFunction<'a>),
    /// The answer to a call.
    InvocationResult(InvocationResult<'a>),
    /// Are you there?
    Ping,
    /// I am.
    Pong,
    /// A worker that had a connection before. The engine ends the old one, if it still stands.
    Reattach {
        /// What the engine called the worker then.
        previous_worker_id: Cow<'a, str>,
        /// What the engine gave it to prove that.
        #[serde(skip_serializing_if = "Option::is_none")]
        reattach_token: Option<Cow<'a, str>>,
    },
    /// The engine's greeting.
    WorkerRegistered {
        /// What the engine calls the worker.
        worker_id: Cow<'a, str>,
        /// What a `Reattach` has to show.
        #[serde(skip_serializing_if = "Option::is_none")]
        reattach_token: Option<Cow<'a, str>>,
    },
    /// Somebody else has the name already.
    RegistrationRejected {
        /// `WORKER_NAMESPACE_CONFLICT` (the connection ends) or `FUNCTION_NAMESPACE_CONFLICT` (only that function is refused).
        code: Cow<'a, str>,
        /// Where both are.
        namespace: Cow<'a, str>,
        /// The worker's name.
        #[serde(skip_serializing_if = "Option::is_none")]
        worker_name: Option<Cow<'a, str>>,
        /// The function that was refused.
        #[serde(skip_serializing_if = "Option::is_none")]
        function_id: Option<Cow<'a, str>>,
        /// Who has it.
        owner_worker_id: Cow<'a, str>,
    },
}

/// A function is bound to a kind of trigger.
#[derive(Clone, Debug, Serialize)]
pub struct RegisterTrigger<'a> {
    /// The binding. It stays the same when the worker comes back after a lost connection.
    pub id: Cow<'a, str>,
    /// The kind of trigger.
    pub trigger_type: Cow<'a, str>,
    /// The function to call.
    pub function_id: Cow<'a, str>,
    /// What is to be heard of, in the words of the kind of trigger.
    pub config: Cow<'a, RawValue>,
    /// Goes along with every call of the function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Cow<'a, RawValue>>,
    /// Where the function is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Cow<'a, str>>,
    /// Where the kind of trigger is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_namespace: Option<Cow<'a, str>>,
}

/// A call.
#[derive(Clone, Debug, Serialize)]
pub struct InvokeFunction<'a> {
    /// What the answer will refer to; without one there is none.
    pub invocation_id: Option<Cow<'a, str>>,
    /// The function.
    pub function_id: Cow<'a, str>,
    /// What it is called with.
    pub data: Cow<'a, RawValue>,
    /// The trace that it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Cow<'a, str>>,
    /// What goes along with the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baggage: Option<Cow<'a, str>>,
    /// How it is to be carried out; answered when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Action<'a>>,
    /// What goes along with this call, besides `data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Cow<'a, RawValue>>,
    /// Where the function is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Cow<'a, str>>,
}

/// The answer to a call: a result (nothing means null) or an error.
#[derive(Clone, Debug, Serialize)]
pub struct InvocationResult<'a> {
    /// Which call.
    pub invocation_id: Cow<'a, str>,
    /// The function.
    pub function_id: Cow<'a, str>,
    /// What it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Cow<'a, RawValue>>,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody<'a>>,
    /// The trace that it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Cow<'a, str>>,
    /// What goes along with the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baggage: Option<Cow<'a, str>>,
}

/// How a call is to be carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Action<'a> {
    /// Through a named queue.
    Enqueue {
        /// The queue.
        queue: Cow<'a, str>,
    },
    /// Nobody waits for an answer.
    Void,
}

/// Why something was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody<'a> {
    /// A word for programs.
    pub code: Cow<'a, str>,
    /// A sentence for people. Clients of session-manager look for `session/<code>` in here.
    #[serde(default)]
    pub message: Cow<'a, str>,
    /// Where it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacktrace: Option<Cow<'a, str>>,
}

/// A frame that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BadFrame {
    /// It is not the JSON of a message.
    #[error("the frame is not a message: {0}")]
    Json(#[from] serde_json::Error),
    /// A field is missing.
    #[error("a `{kind}` message has no `{field}`")]
    Missing {
        /// The message's type.
        kind: String,
        /// The field.
        field: &'static str,
    },
}

/// A string that stays in the frame, unless it is written there with escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Every field that any message has: which of them count depends on the type, which may come last.
#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    description: Option<Text<'a>>,
    #[serde(borrow, default)]
    trigger_request_format: Option<&'a RawValue>,
    #[serde(borrow, default)]
    call_request_format: Option<&'a RawValue>,
    #[serde(borrow, default)]
    trigger_type: Option<Text<'a>>,
    #[serde(borrow, default)]
    function_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    config: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    namespace: Option<Text<'a>>,
    #[serde(borrow, default)]
    trigger_namespace: Option<Text<'a>>,
    #[serde(borrow, default)]
    error: Option<ErrorBody<'a>>,
    #[serde(borrow, default)]
    request_format: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response_format: Option<&'a RawValue>,
    #[serde(borrow, default)]
    invocation_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    traceparent: Option<Text<'a>>,
    #[serde(borrow, default)]
    baggage: Option<Text<'a>>,
    #[serde(borrow, default)]
    action: Option<Action<'a>>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    previous_worker_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    reattach_token: Option<Text<'a>>,
    #[serde(borrow, default)]
    worker_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    code: Option<Text<'a>>,
    #[serde(borrow, default)]
    worker_name: Option<Text<'a>>,
    #[serde(borrow, default)]
    owner_worker_id: Option<Text<'a>>,
}

impl<'a> Message<'a> {
    /// Reads a frame. `None` when it is of a type that is not known here: others may know more.
    pub fn read(text: &'a str) -> Result<Option<Self>, BadFrame> {
        let frame: Frame<'a> = serde_json::from_str(text)?;
        let kind = frame.kind.clone();
        let missing = |field| BadFrame::Missing { kind: kind.clone().into_owned(), field };
        let need = |value: Option<Text<'a>>, field| value.map(|text| text.0).ok_or_else(|| missing(field));
        let text = |value: Option<Text<'a>>| value.map(|text| text.0);
        Ok(Some(match &*frame.kind {
            "registertriggertype" => Self::RegisterTriggerType {
                id: need(frame.id, "id")?,
                description: text(frame.description).unwrap_or_default(),
                trigger_request_format: frame.trigger_request_format.map(Cow::Borrowed),
                call_request_format: frame.call_request_format.map(Cow::Borrowed),
            },
            "unregistertriggertype" => Self::UnregisterTriggerType { id: need(frame.id, "id")? },
            "registertrigger" => Self::RegisterTrigger(RegisterTrigger {
                id: need(frame.id, "id")?,
                trigger_type: need(frame.trigger_type, "trigger_type")?,
                function_id: need(frame.function_id, "function_id")?,
                config: frame.config.map_or(Cow::Borrowed(RawValue::NULL), Cow::Borrowed),
                metadata: frame.metadata.map(Cow::Borrowed),
                namespace: text(frame.namespace),
                trigger_namespace: text(frame.trigger_namespace),
            }),
            "triggerregistrationresult" => Self::TriggerRegistrationResult {
                id: need(frame.id, "id")?,
                trigger_type: need(frame.trigger_type, "trigger_type")?,
                function_id: text(frame.function_id).unwrap_or_default(),
                error: frame.error,
            },
            "unregistertrigger" => Self::UnregisterTrigger {
                id: need(frame.id, "id")?,
                trigger_type: text(frame.trigger_type).unwrap_or_default(),
            },
            "registerfunction" => Self::RegisterFunction {
                id: need(frame.id, "id")?,
                description: text(frame.description),
                request_format: frame.request_format.map(Cow::Borrowed),
                response_format: frame.response_format.map(Cow::Borrowed),
                metadata: frame.metadata.map(Cow::Borrowed),
            },
            "unregisterfunction" => Self::UnregisterFunction { id: need(frame.id, "id")? },
            "invokefunction" => Self::InvokeFunction(InvokeFunction {
                invocation_id: text(frame.invocation_id),
                function_id: need(frame.function_id, "function_id")?,
                data: frame.data.map_or(Cow::Borrowed(RawValue::NULL), Cow::Borrowed),
                traceparent: text(frame.traceparent),
                baggage: text(frame.baggage),
                action: frame.action,
                metadata: frame.metadata.map(Cow::Borrowed),
                namespace: text(frame.namespace),
            }),
            "invocationresult" => Self::InvocationResult(InvocationResult {
                invocation_id: need(frame.invocation_id, "invocation_id")?,
                function_id: text(frame.function_id).unwrap_or_default(),
                result: frame.result.map(Cow::Borrowed),
                error: frame.error,
                traceparent: text(frame.traceparent),
                baggage: text(frame.baggage),
            }),
            "ping" => Self::Ping,
            "pong" => Self::Pong,
            "reattach" => Self::Reattach {
                previous_worker_id: need(frame.previous_worker_id, "previous_worker_id")?,
                reattach_token: text(frame.reattach_token),
            },
            "workerregistered" => Self::WorkerRegistered {
                worker_id: need(frame.worker_id, "worker_id")?,
                reattach_token: text(frame.reattach_token),
            },
            "registrationrejected" => Self::RegistrationRejected {
                code: need(frame.code, "code")?,
                namespace: text(frame.namespace).unwrap_or_default(),
                worker_name: text(frame.worker_name),
                function_id: text(frame.function_id),
                owner_worker_id: text(frame.owner_worker_id).unwrap_or_default(),
            },
            _ => return Ok(None),
        }))
    }

    /// The message as a frame's text.
    pub fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
