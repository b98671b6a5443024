//! Any bytes as an OPA archive: refused, or everything in it can be read and written again.

#![no_main]

use std::io::Cursor;

use banyan_formats::opa::Archive;
use banyan_fuzz::opa::{policy, taken, written};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(archive) = Archive::open(Cursor::new(data), &policy()) else { return };
    let entries = taken(&archive);
    let bytes = written(&archive, &entries).unwrap();
    Archive::open(Cursor::new(&bytes), &Default::default()).unwrap();
});
