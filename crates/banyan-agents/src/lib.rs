//! The sessions of coding agents: found on this machine, read, and written as the agents themselves would.
//!
//! One module an agent, behind one trait, [`Agent`]; [`AGENTS`] has all of them. Reading goes into a [`Sink`], piece by piece and in
//! bounded memory, and can be taken up where it was left off. Writing takes an [`Outgoing`] session. Sources are never changed.

mod agent;
mod aider;
mod build;
mod claude;
mod cline;
mod codex;
mod copilot;
mod files;
mod gemini;
mod goose;
mod ids;
mod lines;
mod native;
mod opencode;
mod outgoing;
mod outline;
mod own;
mod packed;
mod parts;
mod pi;
mod place;
mod qwen;
mod records;
mod rest;
mod sink;
mod sqlite;
mod steps;
mod story;
mod teller;
mod telling;

pub use agent::{AGENTS, Agent, Destination, Problem, Source, Stamp, Written, agent};
pub(crate) use ids::native_uuid;
pub use ids::{entry_id, session_id};
pub use lines::{Between, Line, Lines, Taken};
pub use outgoing::Outgoing;
pub use own::{OWN, Own};
pub use place::Env;
pub use sink::{Head, Mark, Note, Sink};
pub use story::{COMPACTION, Call, Outcome, Step, Story};
