//! Long strings taken out of any JSON go back to where they were, byte for byte.

#![no_main]

use banyan_core::blobs::{self, Encoding, Piece};
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Ok(json) = std::str::from_utf8(data) else { return };
    if serde_json::from_str::<IgnoredAny>(json).is_err() {
        return;
    }
    for threshold in [0, 1, 3, 8, 20] {
        out_and_back(json, threshold);
    }
    if let Ok(value) = serde_json::from_str::<Value>(json) {
        every_long_string_goes(&value, 8);
    }
    foreign_pieces(json);
});

fn out_and_back(json: &str, threshold: usize) {
    let Some((short, pieces)) = blobs::extract(json, threshold) else { return };
    assert!(serde_json::from_str::<IgnoredAny>(&short).is_ok(), "not JSON any more: {short}");
    assert_eq!(blobs::restore(&short, &pieces).as_deref(), Ok(json));
}

/// Only a repeated key may keep a long string in its place.
fn every_long_string_goes(value: &Value, threshold: usize) {
    let json = value.to_string();
    let taken = blobs::extract(&json, threshold).map_or(0, |(_, pieces)| pieces.len());
    assert_eq!(taken, long_strings(value, threshold), "{json}");
}

fn long_strings(value: &Value, threshold: usize) -> usize {
    match value {
        Value::String(_) => usize::from(value.to_string().len() - 2 >= threshold),
        Value::Array(items) => items.iter().map(|item| long_strings(item, threshold)).sum(),
        Value::Object(fields) => fields.values().map(|field| long_strings(field, threshold)).sum(),
        _ => 0,
    }
}

/// Pieces that do not belong to the body are refused or put somewhere, and the body stays JSON.
fn foreign_pieces(json: &str) {
    for encoding in [Encoding::Text, Encoding::Base64] {
        for pointer in ["", "/0", "/a", "/data"] {
            let piece = Piece { pointer: pointer.into(), bytes: json.as_bytes().to_vec(), encoding };
            if let Ok(whole) = blobs::restore(json, &[piece]) {
                assert!(serde_json::from_str::<IgnoredAny>(&whole).is_ok(), "not JSON any more: {whole}");
            }
        }
    }
}
