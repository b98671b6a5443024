//! Files beside the conversation, as their bytes.

use axum::response::Response;
use banyan::model::{GetAttachmentRequest, PutAttachmentRequest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{CONTENT_TYPE, IF_MATCH};
use hyper::{Method, StatusCode};

use super::asked::created;
use super::files::{File, answer};
use super::{Answer, Asked, Input, Operation, Verb, handler, plain};
use crate::path::segment;
use crate::problem::Problem;

pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        id: "listAttachments",
        verb: Verb::Get,
        path: "/v1/sessions/{session_id}/attachments",
        function: "session::list-attachments",
        or_function: None,
        summary: "The files stored with a session.",
        input: Input::Nothing,
        answer: Answer::Plain,
        handler: plain,
    },
    Operation {
        id: "putAttachment",
        verb: Verb::Post,
        path: "/v1/sessions/{session_id}/attachments",
        function: "session::put-attachment",
        or_function: None,
        summary: "Store a file with a session: its bytes, with their Content-Type, or JSON that holds them in base64.",
        input: Input::File,
        answer: Answer::Created,
        handler: handler!(put),
    },
    Operation {
        id: "getAttachment",
        verb: Verb::Get,
        path: "/v1/sessions/{session_id}/attachments/{attachment_id}",
        function: "session::get-attachment",
        or_function: None,
        summary: "A stored file's bytes, or a range of them.",
        input: Input::Nothing,
        answer: Answer::Bytes,
        handler: handler!(get),
    },
    Operation {
        id: "deleteAttachment",
        verb: Verb::Delete,
        path: "/v1/sessions/{session_id}/attachments/{attachment_id}",
        function: "session::delete-attachment",
        or_function: None,
        summary: "Delete a stored file that no message uses.",
        input: Input::Nothing,
        answer: Answer::OrNotFound,
        handler: handler!(delete),
    },
];

/// JSON is read as the function's request unless a name is given: then the body is the file, whatever its type.
async fn put(asked: Asked) -> Result<Response, Problem> {
    let mime =
        asked.headers.get(CONTENT_TYPE).map(|mime| mime.to_str().unwrap_or_default().trim()).unwrap_or_default();
    let essence = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_file = !asked.query.is_empty() || essence != "application/json";
    let answer = match is_file {
        false => {
            let request = asked.request()?;
            asked.call(asked.operation.function, &request).await?
        }
        true => {
            let mime = match essence.as_str() {
                // What clients send when nobody told them what the bytes are.
                "" | "application/x-www-form-urlencoded" => "application/octet-stream",
                _ if essence.starts_with("multipart/") => return Err(is_a_form(mime)),
                _ => mime,
            };
            let request = PutAttachmentRequest {
                session_id: asked.in_path("session_id").into(),
                name: name_of(&asked.query)?,
                mime: mime.to_owned(),
                data: STANDARD.encode(&asked.body),
            };
            let put = asked.caller.store.put_attachment(request).await?;
            serde_json::to_string(&put).map_err(|error| {
                Problem::from(banyan::model::Error::storage(format!("the answer is no JSON: {error}")))
            })?
        }
    };
    let id = serde_json::from_str::<banyan::model::PutAttachmentResponse>(&answer)
        .map(|put| put.attachment.attachment_id)
        .map_err(|error| {
            Problem::from(banyan::model::Error::storage(format!("the answer is no JSON: {error}")))
        })?;
    let session = segment(asked.in_path("session_id"));
    Ok(created(answer, &format!("/v1/sessions/{session}/attachments/{}", segment(id.as_str()))))
}

/// The file's name in the query.
fn name_of(query: &[(String, String)]) -> Result<String, Problem> {
    match query {
        [] => Ok("unnamed".to_owned()),
        [(key, name)] if key == "name" => Ok(name.clone()),
        _ => {
            let keys: Vec<&str> = query.iter().map(|(key, _)| key.as_str()).collect();
            Err(Problem::invalid(format!(
                "the query has {}; this address takes name (text), once",
                keys.join(", ")
            )))
        }
    }
}

fn is_a_form(mime: &str) -> Problem {
    Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "http/unsupported_media_type",
        format!("`{mime}` wraps the file; send its bytes as the body, with their own Content-Type and ?name="),
    )
}

async fn get(asked: Asked) -> Result<Response, Problem> {
    if !asked.query.is_empty() {
        return Err(Problem::invalid(format!(
            "the query has an unknown key `{}`; this address takes no query",
            asked.query[0].0
        )));
    }
    let file = described(&asked).await?;
    if let Some(response) = file.without_bytes(&asked.headers, asked.method == Method::HEAD)? {
        return Ok(response);
    }
    let request = request(&asked, true);
    let found = asked.caller.store.get_attachment(request).await?.ok_or_else(|| asked.not_found())?;
    let bytes = STANDARD.decode(found.data.unwrap_or_default()).map_err(|error| {
        Problem::from(banyan::model::Error::storage(format!("the attachment cannot be decoded: {error}")))
    })?;
    Ok(answer(&file, &asked.headers, bytes))
}

async fn delete(asked: Asked) -> Result<Response, Problem> {
    if asked.headers.contains_key(IF_MATCH) {
        described(&asked).await?.must_match(&asked.headers)?;
    }
    plain(asked).await
}

/// What is known of the file that the address names.
async fn described(asked: &Asked) -> Result<File, Problem> {
    let found = asked.caller.store.get_attachment(request(asked, false)).await?;
    found.map(|found| File::of(found.attachment)).ok_or_else(|| asked.not_found())
}

fn request(asked: &Asked, include_data: bool) -> GetAttachmentRequest {
    GetAttachmentRequest {
        session_id: asked.in_path("session_id").into(),
        attachment_id: asked.in_path("attachment_id").into(),
        include_data: Some(include_data),
    }
}
