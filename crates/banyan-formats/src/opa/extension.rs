//! What a session holds beyond its history, carried along in a declared extension: any files, by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How the manifest declares the extension.
pub const EXTENSION_URI: &str = "urn:banyan:opa-ext:session:v1";
/// Where the extension's files are.
pub(crate) const FOLDER: &str = "META-INF/extensions/banyan-session/";
/// The file that says what the extension belongs to.
pub(crate) const INFO: &str = "META-INF/extensions/banyan-session/info.json";

/// What the extension belongs to: the visible files, as they were when it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Info {
    pub version: u32,
    pub files: BTreeMap<String, Sum>,
}

/// What a file looked like. Attachments are compared by size and checksum: this finds what somebody edited, and is no proof of
/// who did. That is what signatures are for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sum {
    pub size: u64,
    pub crc32: u32,
    /// The SHA-256 in hex, of the prompt and the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A session's own records, found in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The names of its files, as they were given to the writer.
    pub files: Vec<String>,
    /// The visible files that are not as they were when the records were written. While this is empty the records are still
    /// true; otherwise the change wins and the history is what counts.
    pub changed: Vec<String>,
}

impl Extension {
    /// Whether nothing that people see was changed since the records were written.
    pub fn is_true(&self) -> bool {
        self.changed.is_empty()
    }
}
