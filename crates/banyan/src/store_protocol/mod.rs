//! `session::store::*`: how another instance stores through this one.
//!
//! Session-manager's own functions put and get things as they are ([`raw`], [`publish`]). Two Banyans do better: one looks at
//! a session ([`look`]), decides by the same rules, and commits if the session is still as it was seen ([`commit`]).

mod commit;
mod look;
mod publish;
mod raw;
mod tokens;

use banyan_core::Born;
use banyan_core::state::SessionState;
use banyan_model::SessionId;
use banyan_model::store::Version;

pub(crate) use tokens::{Token, Tokens};

/// Names the state that a session is in.
pub(crate) fn version_of(id: &SessionId, state: Option<&SessionState>) -> Version {
    match state {
        Some(state) => {
            Version { born: state.born().to_string(), seq: state.next_seq(), commit: state.last_commit().0 }
        }
        None => Version { born: Born::unsaid(id).to_string(), seq: banyan_model::Seq(0), commit: 0 },
    }
}
