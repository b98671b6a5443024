//! The function table: every function once, for every door.

use std::future::Future;
use std::pin::Pin;
use std::sync::LazyLock;

use banyan_model::*;
use serde::Serialize;
use serde_json::Value;

use crate::Banyan;

/// A function that can be called by its id, with JSON in and JSON out.
pub struct Function {
    /// For example `session::append`.
    pub id: &'static str,
    /// What it does, in a sentence.
    pub description: &'static str,
    /// Whether a call can change anything.
    pub effect: Effect,
    request_schema: fn() -> Value,
    response_schema: fn() -> Value,
    handler: Handler,
}

/// Whether a function can change anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only looks.
    Reads,
    /// It may change something.
    Writes,
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<String, Error>> + Send + 'a>>;
type Handler = for<'a> fn(&'a Banyan, &'a [u8]) -> Answer<'a>;

/// Why a call by id failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// There is no such function; ids that look like it.
    UnknownFunction {
        /// What was asked for.
        id: String,
        /// What may have been meant.
        similar: Vec<&'static str>,
    },
    /// The function said no.
    Refused(Error),
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownFunction { id, similar } if similar.is_empty() => {
                write!(f, "there is no function `{id}`")
            }
            Self::UnknownFunction { id, similar } => {
                write!(f, "there is no function `{id}`; did you mean {}?", similar.join(" or "))
            }
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CallError {}

impl Function {
    /// JSON Schema of the request.
    pub fn request_schema(&self) -> Value {
        (self.request_schema)()
    }

    /// JSON Schema of the response.
    pub fn response_schema(&self) -> Value {
        (self.response_schema)()
    }
}

/// Every function, in the order people meet them.
pub fn functions() -> &'static [Function] {
    &FUNCTIONS
}

/// The functions by which another instance stores through this one. They look at no scope and at few rules, so they are
/// for instances that trust each other, and no door for everyone serves them.
pub fn store_functions() -> &'static [Function] {
    &STORE_FUNCTIONS
}

/// The error of a call by an id that no function has.
pub fn unknown_function(id: &str) -> CallError {
    CallError::UnknownFunction { id: id.to_owned(), similar: similar_to(id) }
}

impl Banyan {
    /// Calls a function by its id. An empty body is `{}`.
    pub async fn call(&self, id: &str, body: &[u8]) -> Result<String, CallError> {
        let Some(function) = functions().iter().find(|function| function.id == id) else {
            return Err(unknown_function(id));
        };
        if function.effect == Effect::Writes {
            self.access.must_write().map_err(CallError::Refused)?;
        }
        (function.handler)(self, body).await.map_err(CallError::Refused)
    }

    /// Calls one of [`store_functions`]. Refused on a handle that may not do everything.
    pub async fn store_call(&self, id: &str, body: &[u8]) -> Result<String, CallError> {
        let Some(function) = store_functions().iter().find(|function| function.id == id) else {
            return Err(CallError::UnknownFunction { id: id.to_owned(), similar: Vec::new() });
        };
        self.access.must_do_everything().map_err(CallError::Refused)?;
        (function.handler)(self, body).await.map_err(CallError::Refused)
    }
}

macro_rules! table {
    ($table:ident $($effect:ident $id:literal $method:ident($request:ty) -> $response:ty, $description:literal;)*) => {
        static $table: LazyLock<Vec<Function>> = LazyLock::new(|| vec![$(Function {
            id: $id,
            description: $description,
            effect: Effect::$effect,
            request_schema: schema_of::<$request>,
            response_schema: schema_of::<$response>,
            handler: |store, body| Box::pin(async move {
                answer(&store.$method(read_request::<$request>(body)?).await?)
            }),
        }),*]);
    };
}

table! { FUNCTIONS
    Writes "session::create" create(CreateRequest) -> CreateResponse,
        "Start a session.";
    Writes "session::ensure" ensure(EnsureRequest) -> EnsureResponse,
        "Make sure that a session with this id exists; an existing one is left as it is.";
    Reads "session::get" get(GetRequest) -> Option<GetResponse>,
        "A session's title, status and other metadata, or null.";
    Reads "session::list" list(ListRequest) -> ListResponse,
        "A page of sessions, ordered and filtered.";
    Writes "session::set-meta" set_meta(SetMetaRequest) -> SetMetaResponse,
        "Set a session's title, description or metadata.";
    Writes "session::set-status" set_status(SetStatusRequest) -> SetStatusResponse,
        "Set a session's status: idle, working, done or error.";
    Writes "session::delete" delete(DeleteRequest) -> DeleteResponse,
        "Delete a session and its entries.";
    Writes "session::append" append(AppendRequest) -> AppendResponse,
        "Append a message or a custom entry. Repeating an entry_id changes nothing.";
    Writes "session::append-many" append_many(AppendManyRequest) -> AppendManyResponse,
        "Append several messages, all or none.";
    Writes "session::update-message" update_message(UpdateMessageRequest) -> UpdateMessageResponse,
        "Replace a message's content.";
    Writes "session::extend-message" extend_message(ExtendMessageRequest) -> ExtendMessageResponse,
        "Add text to the end of a message's block, for streaming.";
    Reads "session::messages" messages(MessagesRequest) -> MessagesResponse,
        "A page of the active path, oldest first.";
    Reads "session::messages-tail" messages_tail(MessagesTailRequest) -> MessagesTailResponse,
        "The newest page of the active path, and from there back.";
    Reads "session::messages-range" messages_range(MessagesRangeRequest) -> MessagesRangeResponse,
        "Named entries of the active path, or all between two of them.";
    Reads "session::get-message" get_message(GetMessageRequest) -> Option<GetMessageResponse>,
        "One entry of any branch, or null.";
    Reads "session::turns" turns(TurnsRequest) -> TurnsResponse,
        "A page of turns: how each ended, what it consumed, and what became of its tool calls.";
    Reads "session::search" search(SearchRequest) -> SearchResponse,
        "The entries that match a query best, over all sessions or some of them.";
    Reads "session::tree" tree(TreeRequest) -> TreeResponse,
        "Every entry of every branch, without content.";
    Writes "session::fork" fork(ForkRequest) -> ForkResponse,
        "Start a new session from the path up to an entry.";
    Writes "session::set-active-leaf" set_active_leaf(SetActiveLeafRequest) -> SetActiveLeafResponse,
        "Make the active path end at an entry.";
    Writes "session::put-attachment" put_attachment(PutAttachmentRequest) -> PutAttachmentResponse,
        "Store a file with a session.";
    Reads "session::get-attachment" get_attachment(GetAttachmentRequest) -> Option<GetAttachmentResponse>,
        "A stored file, or null.";
    Reads "session::list-attachments" list_attachments(ListAttachmentsRequest) -> ListAttachmentsResponse,
        "The files stored with a session.";
    Writes "session::delete-attachment" delete_attachment(DeleteAttachmentRequest) -> DeleteAttachmentResponse,
        "Delete a stored file that no message uses.";
}

table! { STORE_FUNCTIONS
    Reads "session::store::get-meta" store_get_meta(store::SessionIdRequest) -> Option<SessionMeta>,
        "For other instances: what a session is known by, or null.";
    Writes "session::store::put-meta" store_put_meta(store::PutMetaRequest) -> store::OkResponse,
        "For other instances: put what a session is known by.";
    Writes "session::store::delete-meta" store_delete_meta(store::SessionIdRequest) -> store::OkResponse,
        "For other instances: delete what a session is known by, and so the session.";
    Reads "session::store::list-metas" store_list_metas(store::ListMetasRequest) -> store::ListMetasResponse,
        "For other instances: what every session is known by.";
    Reads "session::store::get-entry" store_get_entry(store::EntryIdRequest) -> Option<SessionEntry>,
        "For other instances: one entry, or null.";
    Writes "session::store::put-entry" store_put_entry(store::PutEntryRequest) -> store::OkResponse,
        "For other instances: put one entry, new or in place of the one of the same id.";
    Reads "session::store::list-entries" store_list_entries(store::SessionIdRequest) -> store::ListEntriesResponse,
        "For other instances: every entry of a session.";
    Writes "session::store::delete-entries" store_delete_entries(store::SessionIdRequest) -> store::OkResponse,
        "For other instances: delete every entry of a session.";
    Reads "session::store::get-active-leaf" store_get_active_leaf(store::SessionIdRequest) -> store::ActiveLeafResponse,
        "For other instances: a session's active leaf, or null.";
    Writes "session::store::set-active-leaf" store_set_active_leaf(store::EntryIdRequest) -> store::OkResponse,
        "For other instances: put a session's active leaf.";
    Writes "session::store::delete-active-leaf" store_delete_active_leaf(store::SessionIdRequest) -> store::OkResponse,
        "For other instances: take a session's active leaf away.";
    Writes "session::store::publish-events" store_publish_events(store::PublishEventsRequest) -> store::PublishEventsResponse,
        "For other instances: tell subscribers, here and of every instance that stores through this one.";
    Reads "session::store::look" store_look(store::LookRequest) -> store::LookResponse,
        "For other Banyans: what a decision about a session needs.";
    Writes "session::store::commit" store_commit(store::CommitRequest) -> store::CommitResponse,
        "For other Banyans: commit what was decided, if the session is still as it was seen.";
}

fn answer<T: Serialize>(response: &T) -> Result<String, Error> {
    serde_json::to_string(response)
        .map_err(|error| Error::storage(format!("the answer could not be written as JSON: {error}")))
}

/// Ids that share their last word's beginning with what was typed, or contain it.
fn similar_to(id: &str) -> Vec<&'static str> {
    let word = id.rsplit(':').next().unwrap_or(id);
    let start = word.get(..2).unwrap_or(word);
    let close = |known: &&Function| {
        known.id.rsplit(':').next().is_some_and(|name| !start.is_empty() && name.starts_with(start))
    };
    functions().iter().filter(close).map(|function| function.id).take(3).collect()
}
