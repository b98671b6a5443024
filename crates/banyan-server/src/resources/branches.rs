//! The tree of a session: its shape, the leaf that is active, and forks.

use super::{Answer, Input, Operation, Verb, plain};

pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        id: "getTree",
        verb: Verb::Get,
        path: "/v1/sessions/{session_id}/tree",
        function: "session::tree",
        or_function: None,
        summary: "Every entry of every branch, without content, or a page of them.",
        input: Input::Query,
        answer: Answer::Plain,
        handler: plain,
    },
    Operation {
        id: "setActiveLeaf",
        verb: Verb::Put,
        path: "/v1/sessions/{session_id}/leaf",
        function: "session::set-active-leaf",
        or_function: None,
        summary: "Make the active path end at an entry.",
        input: Input::Body,
        answer: Answer::Plain,
        handler: plain,
    },
    Operation {
        id: "forkSession",
        verb: Verb::Post,
        path: "/v1/sessions/{session_id}/fork",
        function: "session::fork",
        or_function: None,
        summary: "Start a new session from the path up to an entry.",
        input: Input::Body,
        answer: Answer::Created,
        handler: plain,
    },
];
