//! The calls that commands make, each with its request and its answer.

use banyan::model::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::failure::Failure;

/// A request that knows which function takes it.
pub(crate) trait Call: Serialize {
    /// The function.
    const ID: &'static str;
    /// What the function gives back.
    type Answer: DeserializeOwned;
}

/// Makes a call.
pub(crate) fn ask<C: Call>(client: &dyn Client, request: &C) -> Result<C::Answer, Failure> {
    let body = serde_json::to_vec(request)
        .map_err(|error| Failure::storage(format!("the request of {} could not be written: {error}", C::ID)))?;
    serde_json::from_str(&client.call(C::ID, &body)?).map_err(|error| client.unreadable(C::ID, &error))
}

macro_rules! calls {
    ($($request:ty => $id:literal -> $answer:ty;)*) => {
        $(impl Call for $request {
            const ID: &'static str = $id;
            type Answer = $answer;
        })*
    };
}

calls! {
    AppendRequest => "session::append" -> AppendResponse;
    CreateRequest => "session::create" -> CreateResponse;
    DeleteRequest => "session::delete" -> DeleteResponse;
    ExtendMessageRequest => "session::extend-message" -> ExtendMessageResponse;
    ForkRequest => "session::fork" -> ForkResponse;
    GetMessageRequest => "session::get-message" -> Option<GetMessageResponse>;
    GetRequest => "session::get" -> Option<GetResponse>;
    ListAttachmentsRequest => "session::list-attachments" -> ListAttachmentsResponse;
    ListRequest => "session::list" -> ListResponse;
    MessagesRequest => "session::messages" -> MessagesResponse;
    PutAttachmentRequest => "session::put-attachment" -> PutAttachmentResponse;
    SearchRequest => "session::search" -> SearchResponse;
    SetStatusRequest => "session::set-status" -> SetStatusResponse;
    TurnsRequest => "session::turns" -> TurnsResponse;
    TreeRequest => "session::tree" -> TreeResponse;
}
