//! Messages and other entries of a session.

use axum::response::{IntoResponse, Response};
use banyan::model::{ExtendMessageRequest, UpdateMessageRequest, read_request};
use hyper::StatusCode;
use hyper::header::{ETAG, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use serde::Deserialize;

use super::conditions::{failed, is_known, wanted};
use super::fields::{Body, Fields};
use super::{Answer, Asked, Input, Operation, Verb, fields_of, handler, plain};
use crate::calls;
use crate::problem::Problem;
use crate::shapes;

pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        id: "listMessages",
        verb: Verb::Get,
        path: "/v1/sessions/{session_id}/messages",
        function: "session::messages",
        or_function: None,
        summary: "A page of the active path, oldest first.",
        input: Input::Query,
        answer: Answer::Plain,
        handler: handler!(list),
    },
    Operation {
        id: "appendMessages",
        verb: Verb::Post,
        path: "/v1/sessions/{session_id}/messages",
        function: "session::append",
        or_function: Some("session::append-many"),
        summary: "Append a message or a custom entry; with `messages`, several messages, all or none.",
        input: Input::Body,
        answer: Answer::Created,
        handler: handler!(append),
    },
    Operation {
        id: "tailMessages",
        verb: Verb::Get,
        path: "/v1/sessions/{session_id}/messages/tail",
        function: "session::messages-tail",
        or_function: None,
        summary: "The newest page of the active path, and from there back.",
        input: Input::Query,
        answer: Answer::Plain,
        handler: plain,
    },
    Operation {
        id: "rangeOfMessages",
        verb: Verb::Get,
        path: "/v1/sessions/{session_id}/messages/range",
        function: "session::messages-range",
        or_function: None,
        summary: "Named entries of the active path, or all between two of them.",
        input: Input::Query,
        answer: Answer::Plain,
        handler: plain,
    },
    Operation {
        id: "listTurns",
        verb: Verb::Get,
        path: "/v1/sessions/{session_id}/turns",
        function: "session::turns",
        or_function: None,
        summary: "A page of turns: how each ended, what it consumed, and what became of its tool calls.",
        input: Input::Query,
        answer: Answer::Plain,
        handler: plain,
    },
    Operation {
        id: "getMessage",
        verb: Verb::Get,
        path: "/v1/sessions/{session_id}/messages/{entry_id}",
        function: "session::get-message",
        or_function: None,
        summary: "One entry of any branch.",
        input: Input::Query,
        answer: Answer::Revised,
        handler: handler!(get),
    },
    Operation {
        id: "updateMessage",
        verb: Verb::Put,
        path: "/v1/sessions/{session_id}/messages/{entry_id}",
        function: "session::update-message",
        or_function: None,
        summary: "Replace a message's content.",
        input: Input::Body,
        answer: Answer::IfRevision,
        handler: handler!(change),
    },
    Operation {
        id: "extendMessage",
        verb: Verb::Post,
        path: "/v1/sessions/{session_id}/messages/{entry_id}/extend",
        function: "session::extend-message",
        or_function: None,
        summary: "Add text to the end of a message's block, for streaming.",
        input: Input::Body,
        answer: Answer::IfRevision,
        handler: handler!(change),
    },
];

/// A page of entries, or messages in the shape of a front end.
async fn list(asked: Asked) -> Result<Response, Problem> {
    match shapes::asked(&asked.query)? {
        Some(shape) => shapes::messages(asked, shape).await,
        None => plain(asked).await,
    }
}

/// One entry, or several when the body has `messages`; or messages in the shape of a front end.
async fn append(asked: Asked) -> Result<Response, Problem> {
    if let Some(shape) = shapes::asked(&asked.query)? {
        return shapes::append(asked, shape).await;
    }
    let body = Body::read(&asked.body)?;
    let request = asked.request_with(&body, |_| {})?;
    let function = match body.has("messages") {
        true => several(&body)?,
        false => "session::append",
    };
    let answer = asked.call(function, &request).await?;
    asked.answer(answer)
}

/// The function for several entries, which would pass over what is about one.
fn several(body: &Body<'_>) -> Result<&'static str, Problem> {
    const MANY: &str = "session::append-many";
    let of_one = fields_of("session::append").iter().filter(|field| body.has(&field.name));
    match of_one.map(|field| &field.name).find(|name| !fields_of(MANY).iter().any(|field| field.name == **name)) {
        Some(field) => Err(Problem::invalid(format!(
            "`{field}` is about one entry, and `messages` are several; leave one out"
        ))),
        None => Ok(MANY),
    }
}

#[derive(Deserialize)]
struct Found {
    entry: Version,
}

/// What tells one state of an entry from all others.
#[derive(Deserialize)]
struct Version {
    revision: u64,
    timestamp: i64,
}

impl Version {
    fn tag(&self) -> String {
        format!("\"{}-{}\"", self.revision, self.timestamp)
    }
}

/// One entry, with its revision as its tag.
async fn get(asked: Asked) -> Result<Response, Problem> {
    let request = asked.request()?;
    let answer = asked.call(asked.operation.function, &request).await?;
    let Ok(Found { entry }) = serde_json::from_str(&answer) else { return Err(asked.not_found()) };
    // Without the bytes of its pictures it is another text, which has no tag of its own.
    if !asked.query.is_empty() {
        return Ok(calls::json(answer));
    }
    let tag = entry.tag();
    let mut response = if is_known(&asked.headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        calls::json(answer)
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    Ok(response)
}

#[derive(Deserialize)]
struct Changed {
    updated: bool,
}

/// A new content, or more of it. `If-Match` with the entry's tag is the same as `expected_revision`, answered as HTTP does.
async fn change(asked: Asked) -> Result<Response, Problem> {
    let mut body = Body::read(&asked.body)?;
    let unconditional = asked.request_with(&body, |_| {})?;
    if asked.headers.contains_key(IF_MATCH) || asked.headers.contains_key(IF_NONE_MATCH) {
        // What would be refused without a condition is refused with one (RFC 9110, 13.2.1).
        match asked.operation.function {
            "session::update-message" => read_request::<UpdateMessageRequest>(&unconditional).map(drop)?,
            _ => read_request::<ExtendMessageRequest>(&unconditional).map(drop)?,
        }
    }
    if asked.headers.contains_key(IF_NONE_MATCH) && is_known(&asked.headers, &current(&asked).await?.tag()) {
        return Err(failed("the message is one that `If-None-Match` rules out"));
    }
    let Some(tags) = wanted(&asked.headers) else {
        return Ok(calls::json(asked.call(asked.operation.function, &unconditional).await?));
    };
    if body.has("expected_revision") {
        return Err(Problem::invalid("`If-Match` and `expected_revision` are both given; give one of them"));
    }
    body.leave_out("expected_revision");
    let entry = current(&asked).await?;
    if !tags.contains(&entry.tag().as_bytes()) {
        return Err(another());
    }
    // Whoever changes it from here on changes its revision.
    let request = asked.request_with(&body, |fields| fields.value("expected_revision", &entry.revision))?;
    let answer = asked.call(asked.operation.function, &request).await?;
    match serde_json::from_str(&answer) {
        Ok(Changed { updated: false }) => Err(another()),
        _ => Ok(calls::json(answer)),
    }
}

/// The state of the entry that the address names.
async fn current(asked: &Asked) -> Result<Version, Problem> {
    let mut fields = Fields::new();
    for (name, value) in &asked.path {
        fields.value(name, value);
    }
    fields.value("include_image_data", &false);
    let answer = asked.call("session::get-message", &fields.finish()).await?;
    let Ok(Found { entry }) = serde_json::from_str(&answer) else { return Err(asked.not_found()) };
    Ok(entry)
}

fn another() -> Problem {
    failed("the message is not the one that `If-Match` names")
}
