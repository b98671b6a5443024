//! A request to the resource API, and how it becomes a call and an answer.

use axum::response::{IntoResponse, Response};
use banyan::model::{Error, SessionId};
use bytes::Bytes;
use hyper::header::{HeaderValue, LOCATION};
use hyper::{HeaderMap, Method, StatusCode};
use serde::Deserialize;

use super::fields::{Body, Fields};
use super::{Answer, Field, Input, Operation, fields_of, query};
use crate::caller::Caller;
use crate::calls;
use crate::problem::Problem;

/// A request, taken apart.
pub(crate) struct Asked {
    pub(crate) operation: &'static Operation,
    pub(crate) caller: Caller,
    pub(crate) method: Method,
    /// What the address says, named as the function's fields are.
    pub(crate) path: Vec<(String, String)>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Asked {
    /// What the address says for a field.
    pub(crate) fn in_path(&self, name: &str) -> &str {
        self.path.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The function's request, put together from address, query and body.
    pub(crate) fn request(&self) -> Result<Vec<u8>, Problem> {
        match self.operation.input {
            Input::Body | Input::File => self.request_with(&Body::read(&self.body)?, |_| {}),
            Input::Query | Input::Nothing => self.request_with(&Body::read(b"")?, |_| {}),
        }
    }

    /// The same, with a body that was read already and fields of the handler's own.
    pub(crate) fn request_with(
        &self,
        body: &Body<'_>,
        more: impl FnOnce(&mut Fields),
    ) -> Result<Vec<u8>, Problem> {
        let mut fields = Fields::new();
        for (name, value) in &self.path {
            fields.value(name, value);
        }
        query::read(&self.query, &self.in_query(), &mut fields)?;
        fields.body(body, &self.path)?;
        more(&mut fields);
        Ok(fields.finish())
    }

    /// The fields that the query may have.
    fn in_query(&self) -> Vec<&'static Field> {
        match self.operation.input {
            Input::Query => fields_of(self.operation.function)
                .iter()
                .filter(|field| !self.path.iter().any(|(name, _)| *name == field.name))
                .collect(),
            Input::Body | Input::File | Input::Nothing => Vec::new(),
        }
    }

    pub(crate) async fn call(&self, function: &str, request: &[u8]) -> Result<String, Problem> {
        Ok(self.caller.store.call(function, request).await?)
    }

    /// The answer to a call whose status follows from what the function said.
    pub(crate) fn answer(&self, answer: String) -> Result<Response, Problem> {
        match self.operation.answer {
            Answer::OrNotFound if answer == "null" || answer == r#"{"deleted":false}"# => Err(self.not_found()),
            Answer::Ensured if Said::of(&answer).created == Some(false) => Ok(calls::json(answer)),
            Answer::Ensured | Answer::Created => {
                let location = self.location(&Said::of(&answer));
                Ok(created(answer, &location))
            }
            _ => Ok(calls::json(answer)),
        }
    }

    /// Where the thing that a call made can be found.
    fn location(&self, said: &Said) -> String {
        let session = said.session_id.as_deref().unwrap_or_else(|| self.in_path("session_id"));
        let session = format!("/v1/sessions/{}", crate::path::segment(session));
        match said.entry_id.as_ref().or(said.last_entry_id.as_ref()) {
            Some(entry) => format!("{session}/messages/{}", crate::path::segment(entry)),
            None => session,
        }
    }

    /// What the address names does not exist, as far as the caller can see.
    pub(crate) fn not_found(&self) -> Problem {
        let session = SessionId::from(self.in_path("session_id"));
        match (self.in_path("entry_id"), self.in_path("attachment_id")) {
            ("", "") => Error::not_found(&session).into(),
            ("", attachment) => Problem::new(
                StatusCode::NOT_FOUND,
                "session/attachment_not_found",
                format!("session `{session}` has no attachment `{attachment}`"),
            ),
            (entry, _) => Error::entry_not_found(&session, &entry.into()).into(),
        }
    }
}

/// What an answer says of the thing that was made.
#[derive(Default, Deserialize)]
struct Said {
    session_id: Option<String>,
    created: Option<bool>,
    entry_id: Option<String>,
    last_entry_id: Option<String>,
}

impl Said {
    fn of(answer: &str) -> Self {
        serde_json::from_str(answer).unwrap_or_default()
    }
}

/// 201 and where it is.
pub(crate) fn created(answer: String, location: &str) -> Response {
    let mut response = (StatusCode::CREATED, calls::json(answer)).into_response();
    // Every segment is percent-encoded, so it always fits a header.
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}
