//! Contexts of the Open Context Protocol, which agents carry from call to call in HTTP headers. `docs/formats/ocp.md` has the tables.
//!
//! In: [`from_headers`] and [`read`] make a [`Received`] of whatever is given, in bounded memory, and say what they left out.
//! [`merge`] joins two by content. Out: [`to_headers`] writes headers that never exceed 8 KiB. A session keeps a context in its metadata and its
//! actions as custom entries: [`Kept`] is the one, [`Gathering`] finds the other.

mod action;
mod context;
mod date;
mod gather;
mod headers;
mod id;
mod keep;
mod merge;
mod read;
mod value;
mod write;

pub use action::Action;
pub use context::{Context, DEFAULT_AGENT, MOST_CHANGES};
pub use gather::{Gathering, Told};
pub use headers::{Headers, Reading, from_headers};
pub use id::{canonical_id, id_of_session, sessions_named_by};
pub use keep::{ACTION, CONTEXT_ID, Kept, OCP, action_entry, action_id, mark_of};
pub use merge::merge;
pub use read::{Received, read, read_file};
pub use value::{LARGEST_CONTEXT, LONGEST_HEADER, Unreadable, decode, encode};
pub use write::{Uncounted, to_headers};

/// The names of the headers, as they are compared.
pub mod header {
    /// Which context this is.
    pub const CONTEXT_ID: &str = "ocp-context-id";
    /// What kind of agent calls.
    pub const AGENT_TYPE: &str = "ocp-agent-type";
    /// What the agent is after.
    pub const CURRENT_GOAL: &str = "ocp-current-goal";
    /// The older name of the goal. It is read, and never written.
    pub const AGENT_GOAL: &str = "ocp-agent-goal";
    /// The context itself, encoded.
    pub const SESSION: &str = "ocp-session";
    /// Whose agent it is, by its own word.
    pub const USER: &str = "ocp-user";
    /// What it works on.
    pub const WORKSPACE: &str = "ocp-workspace";
    /// The version of the protocol.
    pub const VERSION: &str = "ocp-version";
}

/// The version of the protocol that is spoken here.
pub const VERSION: &str = "1.0";

/// Something that was given and left out, in words that are always the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ignored {
    /// What: a header or a field.
    pub what: &'static str,
    /// Why.
    pub why: &'static str,
}
