//! The resource API: sessions, messages, branches and attachments under the addresses that people expect.
//!
//! An [`Operation`] is one method at one address. It names the function that it stands for, and whatever is not in the
//! address (query, body, documentation) follows from that function's own types.

mod asked;
mod attachments;
mod branches;
mod conditions;
mod fields;
mod files;
mod messages;
mod query;
mod search;
mod sessions;

use std::future::Future;
use std::pin::Pin;

use axum::Router;
use axum::extract::{FromRequest, Request, State};
use axum::response::Response;
use axum::routing::{MethodFilter, on};

use crate::app::Shared;
use crate::body::Whole;
use crate::caller::Caller;
use crate::path::Captured;
use crate::problem::Problem;

pub(crate) use asked::Asked;
pub(crate) use conditions::is_known;
pub(crate) use query::{Field, Kind, fields_of, pairs};

/// One method at one address.
pub(crate) struct Operation {
    /// What generated clients call it.
    pub(crate) id: &'static str,
    pub(crate) verb: Verb,
    pub(crate) path: &'static str,
    /// The function that it stands for.
    pub(crate) function: &'static str,
    /// The function that it stands for when the body asks for that.
    pub(crate) or_function: Option<&'static str>,
    /// What it does, in a sentence.
    pub(crate) summary: &'static str,
    /// Where the function's fields that the address does not name are taken from.
    pub(crate) input: Input,
    pub(crate) answer: Answer,
    handler: Handler,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    /// As OpenAPI spells it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }

    fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Put => MethodFilter::PUT,
            Self::Patch => MethodFilter::PATCH,
            Self::Delete => MethodFilter::DELETE,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Query,
    Body,
    /// A JSON body, or a file's bytes with its name in the query.
    File,
    Nothing,
}

/// What an answer looks like, besides being the function's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 200 with what the function gives.
    Plain,
    /// As `Plain`, and 404 in place of `null` or of nothing to delete.
    OrNotFound,
    /// One message: as `OrNotFound`, with its revision as ETag.
    Revised,
    /// A changed message: as `Plain`, and 412 when the revision asked for is not the current one.
    IfRevision,
    /// 201 and where it is.
    Created,
    /// 201 when it is new, otherwise 200.
    Ensured,
    /// A file's bytes.
    Bytes,
}

type Handler = fn(Asked) -> Pin<Box<dyn Future<Output = Result<Response, Problem>> + Send>>;

/// All of them, in the order of the documentation.
pub(crate) fn operations() -> impl Iterator<Item = &'static Operation> {
    [sessions::OPERATIONS, search::OPERATIONS, messages::OPERATIONS, branches::OPERATIONS, attachments::OPERATIONS]
        .into_iter()
        .flatten()
}

/// The addresses of the resource API.
pub(crate) fn routes() -> Router<Shared> {
    operations().fold(Router::new(), |router, operation| {
        let handler = move |app: State<Shared>, caller: Caller, path: Captured, request: Request| {
            serve(operation, app, caller, path, request)
        };
        router.route(operation.path, on(operation.verb.filter(), handler))
    })
}

async fn serve(
    operation: &'static Operation,
    State(app): State<Shared>,
    caller: Caller,
    Captured(path): Captured,
    request: Request,
) -> Result<Response, Problem> {
    let (method, headers) = (request.method().clone(), request.headers().clone());
    let query = query::pairs(request.uri().query())?;
    let body = match operation.input {
        Input::Body | Input::File => Whole::from_request(request, &app).await?.0,
        Input::Query | Input::Nothing => bytes::Bytes::new(),
    };
    (operation.handler)(Asked { operation, caller, method, path, query, headers, body }).await
}

/// A handler that does nothing but call the function.
fn plain(asked: Asked) -> Pin<Box<dyn Future<Output = Result<Response, Problem>> + Send>> {
    Box::pin(async move {
        let request = asked.request()?;
        let answer = asked.call(asked.operation.function, &request).await?;
        asked.answer(answer)
    })
}

/// Makes an async function a handler.
macro_rules! handler {
    ($function:path) => {
        |asked| Box::pin($function(asked))
    };
}
use handler;
