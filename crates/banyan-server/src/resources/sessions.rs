//! Sessions as a whole.

use axum::response::Response;

use super::fields::Body;
use super::{Answer, Asked, Input, Operation, Verb, handler, plain};
use crate::problem::Problem;

pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        id: "createSession",
        verb: Verb::Post,
        path: "/v1/sessions",
        function: "session::create",
        or_function: Some("session::ensure"),
        summary: "Start a session. With a session_id, make sure that this one exists.",
        input: Input::Body,
        answer: Answer::Ensured,
        handler: handler!(create),
    },
    Operation {
        id: "listSessions",
        verb: Verb::Get,
        path: "/v1/sessions",
        function: "session::list",
        or_function: None,
        summary: "A page of sessions, ordered and filtered.",
        input: Input::Query,
        answer: Answer::Plain,
        handler: plain,
    },
    Operation {
        id: "getSession",
        verb: Verb::Get,
        path: "/v1/sessions/{session_id}",
        function: "session::get",
        or_function: None,
        summary: "A session's title, status and other metadata.",
        input: Input::Nothing,
        answer: Answer::OrNotFound,
        handler: plain,
    },
    Operation {
        id: "ensureSession",
        verb: Verb::Put,
        path: "/v1/sessions/{session_id}",
        function: "session::ensure",
        or_function: None,
        summary: "Make sure that this session exists; an existing one is left as it is.",
        input: Input::Body,
        answer: Answer::Ensured,
        handler: plain,
    },
    Operation {
        id: "updateSession",
        verb: Verb::Patch,
        path: "/v1/sessions/{session_id}",
        function: "session::set-meta",
        or_function: None,
        summary: "Set a session's title, description or metadata.",
        input: Input::Body,
        answer: Answer::Plain,
        handler: plain,
    },
    Operation {
        id: "deleteSession",
        verb: Verb::Delete,
        path: "/v1/sessions/{session_id}",
        function: "session::delete",
        or_function: None,
        summary: "Delete a session and its entries. Its forks stay whole.",
        input: Input::Nothing,
        answer: Answer::OrNotFound,
        handler: plain,
    },
    Operation {
        id: "setSessionStatus",
        verb: Verb::Put,
        path: "/v1/sessions/{session_id}/status",
        function: "session::set-status",
        or_function: None,
        summary: "Set a session's status.",
        input: Input::Body,
        answer: Answer::Plain,
        handler: plain,
    },
];

/// A session with an id of the store's making, or one that the caller names.
async fn create(asked: Asked) -> Result<Response, Problem> {
    let body = Body::read(&asked.body)?;
    let request = asked.request_with(&body, |_| {})?;
    let function = if body.has("session_id") { "session::ensure" } else { "session::create" };
    let answer = asked.call(function, &request).await?;
    asked.answer(answer)
}
