//! Banyan over HTTP: every function of the table, the resource API on top of it, live streams that resume,
//! keys and tenants.
//!
//! A request passes, in this order: the connection's limits (`connections.rs`), what is noted of it (`observe.rs`), the
//! browser's checks (`guard.rs`), the key
//! (`caller.rs`), the key's rate (`rates.rs`), and then a handler that has nothing but the caller's own handle on the store,
//! which sees and changes only what the key may.

mod apart;
mod app;
mod backup;
mod body;
mod budget;
mod bus_gate;
mod caller;
mod calls;
pub mod config;
mod connections;
mod console;
mod descriptors;
mod docs;
mod events;
mod guard;
mod health;
mod history;
mod intake;
mod key_calls;
mod keys;
pub mod logs;
mod metrics;
mod observe;
mod ocp;
mod openapi;
mod path;
mod portable;
mod presence;
mod problem;
mod purge;
mod rates;
mod request_id;
mod resources;
mod response;
mod serve;
mod settings;
mod shapes;
mod socket;
mod spool;
mod tls;
mod traces;
mod unread;
mod ws;

pub use bus_gate::{BusGate, BusPass, BusRefusal};
pub use keys::{Key, KeyError, KeyStore, NewKey, Reach, RefusedKey};
pub use serve::{Running, ServeError, start, start_with};
pub use settings::{Limits, Settings, Tls, Traces};
pub use tls::TlsError;
pub use traces::TracesError;
