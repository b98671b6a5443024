//! The small file about a session.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::WORKSPACE;

/// What the file about a session says, as far as it is of interest here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Workspace {
    pub(super) cwd: Option<String>,
    pub(super) branch: Option<String>,
    pub(super) name: Option<String>,
}

impl Workspace {
    /// Reads the file beside a log. One that is missing or broken says nothing.
    pub(super) fn beside(log: &Path) -> Self {
        let text = fs::read_to_string(log.with_file_name(WORKSPACE)).unwrap_or_default();
        serde_saphyr::from_str(&text).unwrap_or_default()
    }
}
