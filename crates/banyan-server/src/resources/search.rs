//! Search over all sessions.

use super::{Answer, Input, Operation, Verb, plain};

pub(super) const OPERATIONS: &[Operation] = &[Operation {
    id: "searchSessions",
    verb: Verb::Get,
    path: "/v1/search",
    function: "session::search",
    or_function: None,
    summary: "The entries that match a query best, over all sessions or some of them.",
    input: Input::Query,
    answer: Answer::Plain,
    handler: plain,
}];
