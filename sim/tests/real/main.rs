//! The real binary on real file systems: killed, without power, without room, with flushes that fail.

mod flush_error;
mod kill;
mod power_cut;
mod small_disk;
