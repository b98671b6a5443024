//! One pass over JSON text that is already known to be well formed: removes the blanks between tokens and
//! refuses what a reader downstream could not parse (too deep, half a surrogate pair, a number past `f64`).

use std::borrow::Cow;

use memchr::{memchr2, memchr2_iter};

/// How deep a caller's own value may nest. Readers commonly stop at 128, and what is stored comes back wrapped in a few levels more.
pub(crate) const VALUE_DEPTH: usize = 112;

/// How deep the fields of a message may nest, a caller's own values included.
pub(crate) const FIELD_DEPTH: usize = 128;

/// Why JSON text that is well formed is refused all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("JSON nested deeper than {0} levels; flatten it or pass it as a string")]
    TooDeep(usize),
    #[error("a string holds half of a surrogate pair; escape the whole character")]
    LoneSurrogate,
    #[error("a number is out of range for a 64-bit float; pass it as a string")]
    NumberOutOfRange,
}

/// The same value without blanks between its tokens, so that it fits on one line of a log.
pub(crate) fn compact(text: &str, max_depth: usize) -> Result<Cow<'_, str>, Unreadable> {
    let bytes = text.as_bytes();
    // Everything before `kept` is either in `out` or blank.
    let (mut out, mut kept, mut at, mut depth) = (String::new(), 0, 0, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        at = match byte {
            b'"' => end_of_string(bytes, at)?,
            b'-' | b'0'..=b'9' => end_of_number(text, at)?,
            b' ' | b'\t' | b'\r' | b'\n' => {
                out.push_str(&text[kept..at]);
                kept = at + 1;
                at + 1
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > max_depth {
                    return Err(Unreadable::TooDeep(max_depth));
                }
                at + 1
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at + 1
            }
            _ => at + 1,
        };
    }
    if kept == 0 {
        return Ok(Cow::Borrowed(text));
    }
    out.push_str(&text[kept..]);
    Ok(Cow::Owned(out))
}

/// Adds a string as JSON, byte for byte as serde_json writes it, which looks at one byte at a time.
pub(crate) fn quote_into(text: &str, out: &mut String) {
    out.reserve(text.len() + text.len() / 16 + 2);
    let mut rest = text;
    out.push('"');
    while let Some((at, byte)) = first_to_escape(rest.as_bytes()) {
        out.push_str(&rest[..at]);
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            control => {
                out.push_str("\\u00");
                out.extend(
                    [control >> 4, control & 15].map(|half| char::from(b"0123456789abcdef"[usize::from(half)])),
                );
            }
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// The first byte that JSON cannot have in a string as it is.
fn first_to_escape(bytes: &[u8]) -> Option<(usize, u8)> {
    let escaped = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    // Without an early way out of the inner loop its bytes are compared together.
    let clean = |stretch: &&[u8]| stretch.iter().fold(true, |clean, byte| clean & !escaped(*byte));
    let from = bytes.chunks(32).take_while(clean).count() * 32;
    let at = from + bytes.get(from..)?.iter().position(|byte| escaped(*byte))?;
    Some((at, bytes[at]))
}

/// Whether JSON that is known to be well formed nests deeper than this many levels.
pub(crate) fn is_deeper_than(most: usize, json: &[u8]) -> bool {
    // Counting brackets, those in strings included, costs next to nothing and is most often enough.
    if memchr2_iter(b'{', b'[', json).nth(most).is_none() {
        return false;
    }
    let (mut depth, mut in_string, mut bytes) = (0_usize, false, json.iter());
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' => {
                bytes.next();
            }
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > most {
            return true;
        }
    }
    false
}

/// Where the next quote or backslash is in a JSON string. Most strings are short: for them eight bytes at a time are faster than
/// looking for the fastest way.
pub fn quote_or_escape(rest: &[u8]) -> Option<usize> {
    const SHORT: usize = 64;
    let (mut at, mut ahead) = (0, rest);
    while let Some((eight, after)) = ahead.split_first_chunk::<8>().filter(|_| at < SHORT) {
        let word = u64::from_le_bytes(*eight);
        let found = zero_bytes(word ^ QUOTES) | zero_bytes(word ^ BACKSLASHES);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        (at, ahead) = (at + 8, after);
    }
    memchr2(b'"', b'\\', ahead).map(|found| at + found)
}

const QUOTES: u64 = u64::from_le_bytes([b'"'; 8]);
const BACKSLASHES: u64 = u64::from_le_bytes([b'\\'; 8]);

/// A bit in each byte that is zero, the lowest of which is certain.
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(u64::from_le_bytes([1; 8])) & !word & u64::from_le_bytes([0x80; 8])
}

/// The index after the string that opens at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> Result<usize, Unreadable> {
    let mut at = start + 1;
    while let Some(ahead) = bytes.get(at..).and_then(quote_or_escape) {
        at += ahead;
        match bytes.get(at..at + 2) {
            Some(b"\\u") => at = end_of_unicode_escape(bytes, at)?,
            Some([b'\\', _]) => at += 2,
            _ => return Ok(at + 1),
        }
    }
    Ok(bytes.len())
}

fn end_of_unicode_escape(bytes: &[u8], start: usize) -> Result<usize, Unreadable> {
    let unit = |at: usize| {
        let escape = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()
    };
    match unit(start) {
        Some(0xD800..=0xDBFF) => match unit(start + 6) {
            Some(0xDC00..=0xDFFF) => Ok(start + 12),
            _ => Err(Unreadable::LoneSurrogate),
        },
        Some(0xDC00..=0xDFFF) => Err(Unreadable::LoneSurrogate),
        _ => Ok(start + 6),
    }
}

/// The index after the number that starts at `start`.
fn end_of_number(text: &str, start: usize) -> Result<usize, Unreadable> {
    let rest = &text.as_bytes()[start..];
    let length = rest
        .iter()
        .position(|b| !matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
        .unwrap_or(rest.len());
    let number = &text[start..start + length];
    // Fewer than 300 digits without an exponent cannot overflow a 64-bit float.
    let suspect = length >= 300 || number.contains(['e', 'E']);
    if suspect && !number.parse::<f64>().is_ok_and(f64::is_finite) {
        return Err(Unreadable::NumberOutOfRange);
    }
    Ok(start + length)
}

#[cfg(test)]
mod tests {
    use super::{is_deeper_than, quote_into};

    #[test]
    fn every_character_that_needs_it_is_escaped_wherever_it_stands() {
        for character in (0..=0x7f_u8).map(char::from) {
            for before in [0, 1, 31, 32, 33, 300] {
                let text = format!("{}{character}é\n{character}", "x".repeat(before));
                let mut quoted = String::new();
                quote_into(&text, &mut quoted);
                assert_eq!(quoted, serde_json::to_string(&text).unwrap());
            }
        }
    }

    #[test]
    fn depth_is_told_however_many_brackets_there_are() {
        for (json, deep) in [("[".repeat(120), false), ("[".repeat(121), true), ("[]".repeat(500), false)] {
            assert_eq!(is_deeper_than(120, json.as_bytes()), deep);
        }
        assert!(!is_deeper_than(120, format!("[\"{}\"]", "[".repeat(400)).as_bytes()));
    }
}
