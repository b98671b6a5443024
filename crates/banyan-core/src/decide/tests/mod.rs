//! What each call writes and answers, and in which order it refuses.

mod append;
mod attachments;
mod lifecycle;
mod update;

use banyan_model::{Error, ErrorCode};

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorCode {
    result.unwrap_err().code
}
