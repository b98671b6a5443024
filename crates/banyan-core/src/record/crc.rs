//! The checksum at the end of a line: CRC-32C over every byte before it.

/// What stands between the checksummed bytes and the checksum.
const KEY: &[u8] = b",\"crc\":\"";

/// What stands after the checksum, without the line feed.
const END: &[u8] = b"\"}";

/// Bytes from the `,` before the key to the closing brace.
pub(super) const TAIL: usize = KEY.len() + 8 + END.len();

/// The tail that closes a line with these bytes, line feed included.
pub(super) fn tail(line: &[u8]) -> Vec<u8> {
    tail_saying(crc32c::crc32c(line))
}

/// The tail that closes a line with these bytes and one bracket more.
pub(super) fn tail_after_bracket(line: &[u8]) -> Vec<u8> {
    tail_saying(crc32c::crc32c_append(crc32c::crc32c(line), b"]"))
}

fn tail_saying(crc: u32) -> Vec<u8> {
    let mut tail = Vec::with_capacity(TAIL + 1);
    tail.extend_from_slice(KEY);
    tail.extend_from_slice(format!("{crc:08x}").as_bytes());
    tail.extend_from_slice(END);
    tail.push(b'\n');
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
    let tail = &line[covered..];
    let Some(digits) = tail.strip_prefix(KEY).and_then(|rest| rest.strip_suffix(END)) else {
        return Check::Missing;
    };
    let said = std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok());
    if said == Some(crc32c::crc32c(&line[..covered])) { Check::Holds(covered) } else { Check::Differs }
}
