//! What a session is after its records.

mod damage;
mod forks;
mod legacy;
mod replay;
mod snapshot;
