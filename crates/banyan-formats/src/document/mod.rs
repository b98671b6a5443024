//! Sessions for people: Markdown to paste, and HTML that is one file. `docs/formats/markdown-html.md` has the rules.
//!
//! Both are written as entries come, so that a long session needs no more memory than a short one.

mod html;
mod markdown;
mod words;

use banyan_model::{AttachmentId, SessionMeta};

use crate::audit::Facts;

pub use html::Html;
pub use markdown::Markdown;

/// What a document says first.
#[derive(Clone, Debug)]
pub struct Head {
    /// The session.
    pub meta: SessionMeta,
    /// What is known of the surroundings.
    pub facts: Facts,
}

/// A picture that is stored beside the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The media type.
    pub mime: String,
    /// The picture, in base64.
    pub data: String,
}

/// Finds pictures that are stored beside the conversation.
pub type Pictures<'a> = dyn FnMut(&AttachmentId) -> Option<Picture> + 'a;
