//! Banyan is the session database for AI agents: a durable, reactive, branching store of typed conversation entries.
//!
//! ```
//! use banyan::model::{AppendRequest, CreateRequest, MessagesRequest};
//! use banyan::{Banyan, Options, block_on};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Banyan::in_memory(Options::default())?;
//! block_on(async {
//!     let session = store.create(CreateRequest::default()).await?;
//!     let request = serde_json::from_value::<AppendRequest>(serde_json::json!({
//!         "session_id": session.session_id,
//!         "message": {"role": "user", "content": [{"type": "text", "text": "Hello"}], "timestamp": 1717800000000_i64}
//!     }))?;
//!     store.append(request).await?;
//!     let page = store.messages(MessagesRequest::of(session.session_id)).await?;
//!     assert_eq!(page.messages.len(), 1);
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! })?;
//! store.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! An answer to a mutation leaves when it is durable ([`Durability::Synced`]). Methods are `async` and need no
//! particular runtime; [`block_on`] serves programs that have none.

mod access;
mod attachments;
pub mod backup;
mod block_on;
mod bodies;
mod clock;
mod commit;
mod content;
mod contexts;
mod damage;
mod erasure;
mod expected;
pub mod export;
mod file_damage;
mod housekeeping;
mod hub;
pub mod import;
mod leaf_watch;
mod load;
mod mutations;
mod opening;
mod options;
mod partial;
mod path;
mod progress;
mod reads;
mod recent;
mod reconcile;
pub mod repair;
mod replay;
mod search;
mod sessions;
mod snapshot;
mod space;
mod store;
mod store_protocol;
mod subscription;
mod table;
mod tell;
mod tombstone;
mod trees;
mod turns;
pub mod verify;
mod walk;

pub use access::{Access, Scope};
pub use attachments::content_of;
/// The rules themselves, for those who store elsewhere.
pub use banyan_core as rules;
pub use banyan_core::decide::{Incoming, NewEntry, Taken};
pub use banyan_core::page::WalkOrder;
/// Archives of others and our own, for those who only look into them; pieces of sessions, and whole ones, as lines.
pub use banyan_formats::{batch, opa, session_log};
pub use banyan_log::disk::private;
pub use banyan_log::{Durability, LogError};
pub use banyan_model as model;
pub use block_on::block_on;
pub use clock::{FreshIds, now_ms};
pub use content::SweptContent;
pub use contexts::Tied;
pub use damage::DAMAGED;
pub use erasure::{EraseAfter, NotReached, Purged};
pub use leaf_watch::LeafWatch;
pub use opening::OpenError;
pub use options::{Options, SearchIndexing};
pub use path::{PathPage, PathRequest, PathState, Stretch, Whereabouts};
pub use progress::Progress;
pub use replay::ReplayCost;
pub use space::{DiskSpace, SpaceLevel};
pub use store::Banyan;
pub use subscription::{Delivery, Start, Subscribe, Subscription};
pub use table::{CallError, Effect, Function, functions, store_functions, unknown_function};
pub use turns::{TurnSource, turns_of};
pub use walk::{Walk, Walked};
