//! Lower-case hexadecimal of sixteen bytes, the form that ids and incarnations share.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The 32 lower-case digits of sixteen bytes.
pub(crate) fn encode16(bytes: &[u8; 16]) -> String {
    let mut text = String::with_capacity(32);
    push16(bytes, &mut text);
    text
}

/// Appends the 32 lower-case digits of sixteen bytes.
pub(crate) fn push16(bytes: &[u8; 16], text: &mut String) {
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Sixteen bytes from exactly 32 lower-case digits.
pub(crate) fn decode16(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 32 {
        return None;
    }
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(text: u8) -> Option<u8> {
    match text {
        b'0'..=b'9' => Some(text - b'0'),
        b'a'..=b'f' => Some(text - b'a' + 10),
        _ => None,
    }
}
