//! Any bytes as a manifest: refused, or written and read the same; and as the manifest of an archive.

#![no_main]

use std::io::Cursor;

use banyan_formats::opa::{Archive, Manifest};
use banyan_fuzz::opa::{policy, zip};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let entries: [(&str, &[u8]); 4] = [
        ("META-INF/MANIFEST.MF", data),
        ("prompt.md", b"p"),
        ("META-INF/SIGNATURE.SF", data),
        ("META-INF/SIGNATURE.RSA", data),
    ];
    let _ = Archive::examine(Cursor::new(zip(&entries[..2])), &policy().limits);
    let _ = Archive::examine(Cursor::new(zip(&entries)), &policy().limits);
    let Ok(manifest) = Manifest::read(data) else { return };
    let bytes = manifest.write();
    let again = Manifest::read(&bytes).unwrap();
    assert_eq!(again.attributes, manifest.attributes);
    assert_eq!(again.write(), bytes);
});
