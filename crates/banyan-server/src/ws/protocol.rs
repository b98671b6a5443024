//! The frames of a WebSocket: what a client sends, and how it is answered.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::events::Asked;
use crate::problem::Problem;

/// What a client asks for.
#[derive(Debug)]
pub(super) enum Ask {
    Call {
        function: String,
        request: String,
    },
    Subscribe(Box<Asked>),
    /// The subscription, by the id that it was asked for with, as it is written.
    Unsubscribe(String),
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame<'a> {
    #[serde(borrow, rename = "id")]
    _id: &'a RawValue,
    call: Option<String>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
    #[serde(borrow)]
    subscribe: Option<&'a RawValue>,
    #[serde(borrow)]
    unsubscribe: Option<&'a RawValue>,
}

/// Reads a frame. The id comes first, so that a refusal can carry it.
pub(super) fn read(text: &str) -> (Option<String>, Result<Ask, Problem>) {
    match id_of(text) {
        Ok(id) => (Some(id), ask(text)),
        Err(problem) => (None, Err(problem)),
    }
}

fn id_of(text: &str) -> Result<String, Problem> {
    if !text.trim_start().starts_with('{') {
        return Err(Problem::invalid("a frame is a JSON object"));
    }
    let named: Named<'_> = serde_json::from_str(text)
        .map_err(|error| Problem::invalid(format!("a frame is a JSON object: {error}")))?;
    let id = named.id.ok_or_else(|| Problem::invalid("a frame needs an `id`, which its answer carries"))?;
    written_id(id)
}

/// An id as it is written: a number or a string.
fn written_id(id: &RawValue) -> Result<String, Problem> {
    const MOST: usize = 256;
    let text = id.get();
    let first = text.bytes().next().unwrap_or_default();
    if (first == b'"' || first == b'-' || first.is_ascii_digit()) && text.len() <= MOST {
        return Ok(text.to_owned());
    }
    Err(Problem::invalid(format!("an `id` is a number or a string of at most {MOST} bytes")))
}

fn ask(text: &str) -> Result<Ask, Problem> {
    let frame: Frame<'_> = serde_json::from_str(text)
        .map_err(|error| Problem::invalid(format!("this frame is not understood: {error}")))?;
    match (frame.call, frame.request, frame.subscribe, frame.unsubscribe) {
        (Some(function), request, None, None) => Ok(Ask::Call {
            function,
            request: request.map(|request| request.get().to_owned()).unwrap_or_default(),
        }),
        (None, None, Some(asked), None) if asked.get().starts_with('{') => {
            let asked = serde_json::from_str(asked.get())
                .map_err(|error| Problem::invalid(format!("this subscription is not understood: {error}")))?;
            Ok(Ask::Subscribe(Box::new(asked)))
        }
        (None, None, None, Some(id)) => Ok(Ask::Unsubscribe(written_id(id)?)),
        _ => Err(Problem::invalid(
            "a frame has one of `call` (and `request`), `subscribe` (an object) and `unsubscribe` (an id)",
        )),
    }
}

pub(super) fn answered(id: &str, response: &str) -> String {
    format!(r#"{{"id":{id},"response":{response}}}"#)
}

pub(super) fn subscribed(id: &str) -> String {
    format!(r#"{{"id":{id},"subscribed":true}}"#)
}

pub(super) fn unsubscribed(id: &str) -> String {
    format!(r#"{{"id":{id},"unsubscribed":true}}"#)
}

pub(super) fn refused(id: Option<&str>, problem: &Problem) -> String {
    let document = serde_json::to_string(&problem.document()).unwrap_or_default();
    format!(r#"{{"id":{},"error":{document}}}"#, id.unwrap_or("null"))
}
