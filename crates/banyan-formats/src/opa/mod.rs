//! OPA archives (Open Prompt Archive): a session as one file, with its attachments, a prompt, and a signature if somebody wants one.
//!
//! In: [`Archive::open`] reads an archive to its end and refuses it whole for whatever is wrong with it; what it then gives
//! (messages as entries, attachments as streams) can be taken without looking back. Out: a [`Writer`] puts the entries of the
//! active path into a history that everybody reads, and the session's own records beside it. `docs/formats/opa.md` has the rules.

mod archive;
mod check;
mod container;
mod digest;
mod error;
mod extension;
mod identity;
mod index;
mod limits;
mod manifest;
mod mark;
mod mime;
mod numbers;
mod path;
mod read;
mod render;
mod rest;
mod signature;
mod sources;
mod split;
mod time;
mod write;

pub use archive::{Archive, File, History, Kind, Policy};
pub use container::Content;
pub use error::{Error, Refusal, Why};
pub use extension::{EXTENSION_URI, Extension};
pub use limits::Limits;
pub use manifest::Manifest;
pub use read::{Imported, Messages, Report, Unplaced};
pub use signature::{Coverage, Form, Signature, Signer, SigningKey};
pub use write::{Entry, Head, HistoryWriter, Options, Prompt, Writer, Written};

/// What an archive is called on the wire.
pub const MEDIA_TYPE: &str = "application/vnd.opa+zip";

/// Where a written archive has its prompt.
const PROMPT: &str = "prompt.md";
/// Where a written archive has its history.
const HISTORY: &str = "session/history.json";
/// The prompt of an archive that asks nothing. Reading it back makes no message.
const PROMPT_FILLER: &str = "Continue the conversation in `session/history.json`.\n";
