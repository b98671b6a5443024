//! What the tests share: a way to call a store and to hear its events, and short ways to say common things.

#![allow(dead_code, unused_imports, unreachable_pub, reason = "each test program uses a part of this")]

pub mod directory;
pub mod door;
pub mod ears;
pub mod model;
pub mod step;
pub mod words;

pub use directory::*;
pub use door::*;
pub use ears::*;
pub use words::*;
