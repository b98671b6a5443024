//! The checksum at the end of a line: CRC-32C over every byte before it.

use crate::hex;

/// What stands between the checksummed bytes and the checksum.
const KEY: &[u8] = b",\"crc\":\"";

/// What stands after the checksum, without the line feed.
const END: &[u8] = b"\"}";

/// Bytes from the `,` before the key to the closing brace.
pub(super) const TAIL: usize = KEY.len() + 8 + END.len();

/// The tail that closes a line with these bytes, line feed included.
pub(super) fn tail(line: &[u8]) -> [u8; TAIL + 1] {
    tail_saying(crc32c::crc32c(line))
}

/// The tail that closes a line with these bytes and one bracket more.
pub(super) fn tail_after_bracket(line: &[u8]) -> [u8; TAIL + 1] {
    tail_saying(crc32c::crc32c_append(crc32c::crc32c(line), b"]"))
}

fn tail_saying(crc: u32) -> [u8; TAIL + 1] {
    let mut tail = [b'\n'; TAIL + 1];
    tail[..KEY.len()].copy_from_slice(KEY);
    tail[KEY.len()..KEY.len() + 8].copy_from_slice(&hex::digits::<8>(u64::from(crc)));
    tail[KEY.len() + 8..TAIL].copy_from_slice(END);
    tail
}

/// What the tail of a line says about it.
pub(super) enum Check {
    /// The bytes before the tail are as they were written; so many they are.
    Holds(usize),
    /// The line has a tail, and its bytes have changed.
    Differs,
    /// The line has no such tail.
    Missing,
}

/// Checks a line, which must come without its line feed.
pub(super) fn check(line: &[u8]) -> Check {
    let Some(covered) = line.len().checked_sub(TAIL) else { return Check::Missing };
    let (line, tail) = line.split_at(covered);
    let Some(said) = tail.strip_prefix(KEY).and_then(|rest| rest.strip_suffix(END)) else {
        return Check::Missing;
    };
    let found = u64::from(crc32c::crc32c(line));
    if hex::number::<8>(said) == Some(found) { Check::Holds(covered) } else { Check::Differs }
}
