//! A bus, a worker on it, and clients that others wrote.

#![allow(dead_code, reason = "each scenario uses a part of this")]

mod client;
mod engine;
mod proxy;
mod worker;

pub use client::{Client, Ears, eventually, reply, said, text_of};
pub use engine::Bus;
pub use proxy::Proxy;
pub use worker::{InProcess, Process, bridged_to, in_directory};
