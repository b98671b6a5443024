//! Cursors, as callers hand them back: refused or read, and what is read is written the same.

#![no_main]

use banyan_core::cursor::{EntryCursor, ListCursor};
use banyan_model::ListOrder;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        decode(text);
    }
    // Mutated base64 is seldom JSON, so JSON is tried too.
    decode(&STANDARD.encode(data));
});

fn decode(text: &str) {
    for order in [ListOrder::CreatedAsc, ListOrder::CreatedDesc, ListOrder::UpdatedDesc] {
        if let Ok(cursor) = ListCursor::decode(text, order) {
            assert_eq!(cursor.order, order);
            assert_eq!(ListCursor::decode(&cursor.encode(), order), Ok(cursor));
        }
    }
    if let Ok(cursor) = EntryCursor::decode(text) {
        assert_eq!(EntryCursor::decode(&cursor.encode()), Ok(cursor));
    }
}
