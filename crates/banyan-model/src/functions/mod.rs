//! What each function takes and gives back.
//!
//! Unknown fields of a request are ignored, and an explicit `null` means the same as leaving an optional field out.

mod attachments;
mod branching;
mod import;
mod lifecycle;
mod messages;
mod pages;
mod search;
mod turns;

use std::fmt;

use serde::de::DeserializeOwned;

use crate::Error;
use crate::json_text::is_deeper_than;

pub use attachments::*;
pub use branching::*;
pub use import::*;
pub use lifecycle::*;
pub use messages::*;
pub use pages::*;
pub use search::*;
pub use turns::*;

/// How deep a request may nest. What it leaves in the store comes back wrapped in a few levels more, and readers
/// commonly stop at 128.
const REQUEST_DEPTH: usize = 120;

/// Reads the body of a call. An empty body is an empty request; anything but an object is refused.
pub fn read_request<Request: DeserializeOwned>(body: &[u8]) -> Result<Request, Error> {
    let body = match body.trim_ascii() {
        b"" => b"{}",
        body => body,
    };
    // serde would also take an array and fill the fields by their order.
    if body.first() == Some(&b'[') {
        return Err(Error::invalid_request(
            "the request is an array; pass a JSON object with the function's fields",
        ));
    }
    // Looking over all of it at once is faster than string by string.
    let text = simdutf8::compat::from_utf8(body).map_err(|error| refused(&error))?;
    let request = serde_json::from_str(text).map_err(|error| refused(&error))?;
    if is_deeper_than(REQUEST_DEPTH, body) {
        return Err(Error::invalid_request(format!(
            "the request nests deeper than {REQUEST_DEPTH} levels; flatten it or pass the deep part as a string"
        )));
    }
    Ok(request)
}

fn refused(error: &dyn fmt::Display) -> Error {
    Error::invalid_request(format!("the request is not valid: {error}"))
}
