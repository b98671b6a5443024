//! What became of the last change of the configuration.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// What became of the last change of the configuration.
#[derive(Default)]
pub(super) struct Status(Mutex<Told>);

#[derive(Clone, Default, Serialize)]
struct Told {
    last_outcome: Outcome,
    last_error: Option<String>,
    rejected_reloads: u64,
}

#[derive(Clone, Copy, Default, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    #[default]
    Applied,
    Rejected,
}

impl Status {
    pub(super) fn applied(&self) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.last_outcome = Outcome::Applied;
        told.last_error = None;
    }

    pub(super) fn rejected(&self, why: String) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.last_outcome = Outcome::Rejected;
        told.last_error = Some(why);
        told.rejected_reloads += 1;
    }

    /// As `session::config-status` answers it.
    pub(super) fn json(&self) -> String {
        serde_json::to_string(&*self.0.lock().unwrap_or_else(PoisonError::into_inner)).unwrap_or_default()
    }
}
