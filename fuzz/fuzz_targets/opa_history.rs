//! Any bytes as a history: refused, or it comes out as it went in.

#![no_main]

use std::io::{Cursor, Read};

use banyan_formats::opa::Archive;
use banyan_fuzz::opa::{policy, taken, written, zip};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let picture = [0x89, b'P', b'N', b'G'];
    let bytes = zip(&[
        ("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\nOPA-Version: 0.1\n"),
        ("prompt.md", b"p"),
        ("session/history.json", data),
        ("session/attachments/a.png", &picture),
    ]);
    let Ok(archive) = Archive::open(Cursor::new(bytes.as_slice()), &policy()) else { return };
    let entries = taken(&archive);
    assert_eq!(taken(&archive), entries);
    let bytes = written(&archive, &entries).unwrap();
    let again = Archive::open(Cursor::new(bytes.as_slice()), &Default::default()).unwrap();
    let mut text = String::new();
    again.read("session/history.json").unwrap().read_to_string(&mut text).unwrap();
    // Text that no value holds (half a surrogate pair) is compared as it is spelled only.
    let (Ok(given), Ok(found)) = (serde_json::from_slice::<Value>(data), serde_json::from_str::<Value>(&text))
    else {
        return;
    };
    let has_file = data.windows(6).any(|word| word == b"\"file\"");
    if !has_file {
        assert_eq!(given["messages"], found["messages"]);
    }
});
