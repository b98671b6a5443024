//! Banyan over HTTP: every function of the table, the resource API on top of it, live streams that resume,
//! keys and tenants.
//!
//! A request passes, in this order: the connection's limits (`connections.rs`), the browser's checks (`guard.rs`), the key
//! (`caller.rs`), the key's rate (`rates.rs`), and then a handler that has nothing but the caller's own handle on the store,
//! which sees and changes only what the key may.

mod app;
mod body;
mod caller;
mod calls;
mod connections;
mod docs;
mod events;
mod guard;
mod health;
mod keys;
mod openapi;
mod path;
mod presence;
mod problem;
mod resources;
mod serve;
mod settings;
mod ws;

pub use keys::{Key, KeyError, Keys, NewKey};
pub use serve::{Running, ServeError, start, start_with};
pub use settings::{Limits, Settings, Tls};
