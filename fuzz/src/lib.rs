//! What the fuzz targets share: checksums that hold, so that mutated bytes get past the first check, and what must be
//! true of every session however it came about.

pub mod files;
pub mod lines;
pub mod opa;
pub mod sessions;
