//! What a server says when it refuses: the same failures as a data directory gives.

use banyan::model::{Error, ErrorCode};
use serde::Deserialize;
use ureq::http::StatusCode;

use crate::failure::Failure;

/// What matters of a problem document.
#[derive(Deserialize)]
struct Problem {
    code: String,
    detail: String,
}

/// An answer that is not a success, as a failure.
pub(super) fn failure(url: &str, status: StatusCode, body: &str) -> Failure {
    let Ok(Problem { code, detail }) = serde_json::from_str(body) else {
        return Failure::trouble(
            "http/unexpected",
            format!("{url} answered {status}, which is not how a Banyan server answers; check the address"),
        );
    };
    // The store's own refusals are told by code, so that they read and end like those of a directory.
    if let Some(known) = ErrorCode::ALL.into_iter().find(|known| known.as_str() == code) {
        return Error::new(known, detail).into();
    }
    match code.as_str() {
        "call/unknown_function" => Failure::unknown_function(detail),
        "auth/unauthenticated" => Failure::refused(&code, format!("{detail}; pass it with --key or BANYAN_KEY")),
        _ if status.is_server_error() => Failure::trouble(&code, detail),
        _ => Failure::refused(&code, detail),
    }
}

/// A request that got no answer, as a failure.
pub(super) fn no_answer(url: &str, error: &ureq::Error) -> Failure {
    let listen = url.split_once("://").map_or(url, |(_, rest)| rest);
    let refused = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
    let message = match error {
        ureq::Error::Io(error) if refused(error) => format!(
            "nothing listens at {url}; start a server there with `banyan serve --listen {listen}`, or check --url"
        ),
        ureq::Error::HostNotFound => format!("there is no host by the name in {url}; check --url"),
        ureq::Error::Timeout(_) => format!("{url} did not answer in time; whether the call was done is not known"),
        error => format!("no answer from {url}: {error}"),
    };
    Failure::trouble("http/unreachable", message)
}
