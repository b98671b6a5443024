//! The schemas of the fourteen public functions, and of the store protocol, agree with the contract's, save for additions that are named here.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of a test fail it by panicking")]

mod contract;

use std::collections::BTreeSet;

use banyan_model::store::*;
use banyan_model::*;
use contract::compare::{Comparison, compare};
use schemars::JsonSchema;
use serde_json::Value;

const API: &str = include_str!("contract/session-manager.api.json");

/// Everything that we accept or send beyond the contract. All of it is optional.
const ADDITIONS: [&str; 12] = [
    "AgentMessage<assistant>.agent",
    "AppendRequest.expected_leaf",
    "ContentBlock<file>",
    "ContentBlock<image>.attachment_id",
    "GetMessageRequest.include_image_data",
    "MessageItem.elided",
    "MessageItem.origin",
    "MessagesRequest.after_entry_id",
    "MessagesRequest.bytes",
    "MessagesRequest.include_image_data",
    "MessagesResponse.damaged",
    "UpdateMessageRequest.usage",
];

#[test]
fn given_the_contract_when_the_schemas_are_compared_then_only_the_named_additions_differ() {
    let api: Value = serde_json::from_str(API).unwrap();
    let mut found = Comparison::default();

    check::<CreateRequest, CreateResponse>(&api, "session::create", &mut found);
    check::<EnsureRequest, EnsureResponse>(&api, "session::ensure", &mut found);
    check::<GetRequest, Option<GetResponse>>(&api, "session::get", &mut found);
    check::<ListRequest, ListResponse>(&api, "session::list", &mut found);
    check::<SetMetaRequest, SetMetaResponse>(&api, "session::set-meta", &mut found);
    check::<SetStatusRequest, SetStatusResponse>(&api, "session::set-status", &mut found);
    check::<DeleteRequest, DeleteResponse>(&api, "session::delete", &mut found);
    check::<AppendRequest, AppendResponse>(&api, "session::append", &mut found);
    check::<AppendManyRequest, AppendManyResponse>(&api, "session::append-many", &mut found);
    check::<UpdateMessageRequest, UpdateMessageResponse>(&api, "session::update-message", &mut found);
    check::<MessagesRequest, MessagesResponse>(&api, "session::messages", &mut found);
    check::<GetMessageRequest, Option<GetMessageResponse>>(&api, "session::get-message", &mut found);
    check::<ForkRequest, ForkResponse>(&api, "session::fork", &mut found);
    check::<SetActiveLeafRequest, SetActiveLeafResponse>(&api, "session::set-active-leaf", &mut found);

    check::<SessionIdRequest, Option<SessionMeta>>(&api, "session::store::get-meta", &mut found);
    check::<PutMetaRequest, OkResponse>(&api, "session::store::put-meta", &mut found);
    check::<SessionIdRequest, OkResponse>(&api, "session::store::delete-meta", &mut found);
    check::<ListMetasRequest, ListMetasResponse>(&api, "session::store::list-metas", &mut found);
    check::<EntryIdRequest, Option<SessionEntry>>(&api, "session::store::get-entry", &mut found);
    check::<PutEntryRequest, OkResponse>(&api, "session::store::put-entry", &mut found);
    check::<SessionIdRequest, ListEntriesResponse>(&api, "session::store::list-entries", &mut found);
    check::<SessionIdRequest, OkResponse>(&api, "session::store::delete-entries", &mut found);
    check::<SessionIdRequest, ActiveLeafResponse>(&api, "session::store::get-active-leaf", &mut found);
    check::<EntryIdRequest, OkResponse>(&api, "session::store::set-active-leaf", &mut found);
    check::<SessionIdRequest, OkResponse>(&api, "session::store::delete-active-leaf", &mut found);
    check::<PublishEventsRequest, PublishEventsResponse>(&api, "session::store::publish-events", &mut found);

    let expected = Comparison {
        differences: Vec::new(),
        additions: ADDITIONS.into_iter().map(String::from).collect::<BTreeSet<_>>(),
    };
    assert_eq!(found, expected);
}

fn check<Request: JsonSchema, Response: JsonSchema>(api: &Value, name: &str, found: &mut Comparison) {
    let function = api["functions"]
        .as_array()
        .and_then(|functions| functions.iter().find(|function| function["name"] == name))
        .unwrap_or_else(|| panic!("the contract has no function {name}"));
    compare(&schema_of::<Request>(), &function["request_schema"], &format!("{name} request"), found);
    compare(&schema_of::<Response>(), &function["response_schema"], &format!("{name} response"), found);
}
