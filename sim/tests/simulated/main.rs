//! A whole store on a disk in memory that crashes, fails and fills up.

mod crashes;
mod failing_flush;
mod fork_chain;
mod full_disk;
mod kill_then_cut;
