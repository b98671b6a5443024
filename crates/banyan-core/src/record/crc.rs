//! The checksum at the end of a line: CRC-32C over every byte before it.

use crate::hex;

/// What stands between the checksummed bytes and the checksum.
const KEY: &[u8] = b",\"crc\":\"";

/// The same in a line whose content was erased.
const ERASED_KEY: &[u8] = b",\"del\":\"";

/// What the checksum of such a line begins with, so that no key that changed by itself makes a line an erased one.
const ERASED: &[u8] = b"erased";

/// What stands after the checksum, without the line feed.
const END: &[u8] = b"\"}";

/// Bytes from the `,` before the key to the closing brace.
pub(super) const TAIL: usize = KEY.len() + 8 + END.len();

/// The tail that closes a line with these bytes, line feed included.
pub(super) fn tail(line: &[u8]) -> [u8; TAIL + 1] {
    tail_saying(KEY, crc32c::crc32c(line))
}

/// The tail that closes the line of an erased record with these bytes, line feed included.
pub(super) fn erased_tail(line: &[u8]) -> [u8; TAIL + 1] {
    tail_saying(ERASED_KEY, erased_crc(line))
}

/// The tail that closes a line with these bytes and one bracket more.
pub(super) fn tail_after_bracket(line: &[u8]) -> [u8; TAIL + 1] {
    tail_saying(KEY, crc32c::crc32c_append(crc32c::crc32c(line), b"]"))
}

fn erased_crc(line: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(ERASED), line)
}

fn tail_saying(key: &[u8], crc: u32) -> [u8; TAIL + 1] {
    let mut tail = [b'\n'; TAIL + 1];
    tail[..KEY.len()].copy_from_slice(key);
    tail[KEY.len()..KEY.len() + 8].copy_from_slice(&hex::digits::<8>(u64::from(crc)));
    tail[KEY.len() + 8..TAIL].copy_from_slice(END);
    tail
}

/// What the tail of a line says about it.
pub(super) enum Check {
    /// The bytes before the tail are as they were written; so many they are.
    Holds(usize),
    /// The same, of a record whose content was erased.
    Erased(usize),
    /// The line has a tail, and its bytes have changed.
    Differs,
    /// The line has no such tail.
    Missing,
}

/// Checks a line, which must come without its line feed.
pub(super) fn check(line: &[u8]) -> Check {
    let Some(covered) = line.len().checked_sub(TAIL) else { return Check::Missing };
    let (line, tail) = line.split_at(covered);
    let Some(rest) = tail.strip_suffix(END) else { return Check::Missing };
    if let Some(said) = rest.strip_prefix(KEY) {
        let found = u64::from(crc32c::crc32c(line));
        return if hex::number::<8>(said) == Some(found) { Check::Holds(covered) } else { Check::Differs };
    }
    let Some(said) = rest.strip_prefix(ERASED_KEY) else { return Check::Missing };
    if hex::number::<8>(said) == Some(u64::from(erased_crc(line))) {
        Check::Erased(covered)
    } else {
        Check::Differs
    }
}
