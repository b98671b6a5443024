//! What the fuzz targets share: checksums that hold, so that mutated bytes get past the first check.

pub mod files;
pub mod lines;
