//! Histories: what chat front ends read of a session, one question and one answer a turn.
//!
//! Out: a [`Projector`] takes the entries of the active path, as they come, and gives messages. In: [`entries_of`] makes
//! entries of a message, and [`compare`] says what is new in one that is there already. `docs/history.md` has the rules.

mod accept;
mod assemble;
mod compare;
mod dialect;
mod display;
mod entry;
mod fields;
pub mod identity;
mod message;
mod origin;
mod part;
mod parts;
mod projector;
mod read;
mod time;

pub(crate) use assemble::ended_as;
pub use assemble::{ABANDONED_AFTER_MS, Projected, Standing};
pub use compare::{Comparison, Growth, Rest, compare};
pub use entry::Entry;
pub(crate) use entry::display_of;
pub use fields::Fields;
pub(crate) use fields::{json_of, same_value, value_of, without_technical_details};
pub use message::{Disclosure, HistoryMessage, Speaker, Status};
pub use origin::{hides_something, public_origin};
pub use part::{Activity, Part, TextPart, ToolCall, ToolResult};
pub use parts::{Options, Place};
pub(crate) use parts::{failure, text_of};
pub use projector::{Change, Delta, Projector};
pub use read::{NewEntry, entries_of};
pub use time::milliseconds;
pub(crate) use time::{iso, rfc3339};
