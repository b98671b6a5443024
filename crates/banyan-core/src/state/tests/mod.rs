//! What a session is after its records.

mod damage;
mod forks;
mod glimpse;
mod import;
mod legacy;
mod meta;
mod put;
mod replay;
mod snapshot;
