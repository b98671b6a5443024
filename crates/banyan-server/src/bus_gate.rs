//! Who may join the bus of the same process: connections with a key that may see and change everything, because the bus reaches
//! `session::store::*` and the functions of other workers, which look at no key.

use hyper::{Request, StatusCode};

use crate::app::Shared;
use crate::caller::key_of;
use crate::guard;
use crate::presence::Presence;
use crate::problem::Problem;

/// Decides who may join a bus by the rules of the server: its keys, `hosts` and `cors_origins`.
#[derive(Clone)]
pub struct BusGate(pub(crate) Shared);

/// Why a connection may not join: the status of the answer, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusRefusal {
    /// 401 without a key that is known, 403 with one that may not join or from a foreign page.
    pub status: StatusCode,
    /// What is wrong, and what to do.
    pub reason: String,
}

/// A connection that was admitted.
pub struct BusPass(Presence);

impl BusGate {
    /// Admits the connection of a handshake.
    pub fn admit<B>(&self, request: &Request<B>) -> Result<BusPass, BusRefusal> {
        guard::admit(&self.0, request)?;
        let key = key_of(&self.0, request.headers(), request.uri())?;
        if let Some(key) = key.as_ref().filter(|key| !key.is_operator()) {
            let what = if key.scope.is_empty() { "only reads" } else { "has a scope" };
            return Err(Problem::forbidden(format!(
                "the key {} {what}; a bus is joined with a key that has no scope and may write",
                key.id
            ))
            .into());
        }
        Ok(BusPass(Presence::new(&self.0, key)))
    }
}

impl BusPass {
    /// Resolves when the connection would not be admitted any more: its key was removed, the first key was made, or the server stops.
    pub async fn withdrawn(mut self) {
        self.0.told_to_leave().await;
    }
}

impl From<Problem> for BusRefusal {
    fn from(problem: Problem) -> Self {
        Self { status: problem.status, reason: problem.detail }
    }
}
