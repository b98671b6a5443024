//! Lower-case hexadecimal, the form of ids, incarnations, commit numbers and checksums.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// What a byte that is no digit is worth.
const NO_DIGIT: u8 = 0xff;

/// What a digit is worth.
fn value(byte: u8) -> u8 {
    VALUES[usize::from(byte)]
}

const VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        values[DIGITS[digit] as usize] = digit as u8;
        digit += 1;
    }
    values
};

/// The 32 digits of sixteen bytes.
pub(crate) fn encode16(bytes: &[u8; 16]) -> [u8; 32] {
    let mut digits = [0; 32];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    digits
}

/// The last `N` digits of a number.
pub(crate) fn digits<const N: usize>(number: u64) -> [u8; N] {
    let mut digits = [0; N];
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(rest & 15) as usize];
        rest >>= 4;
    }
    digits
}

/// Digits as text.
pub(crate) fn text(digits: &[u8]) -> &str {
    std::str::from_utf8(digits).unwrap_or_default()
}

/// Sixteen bytes from exactly 32 digits.
pub(crate) fn decode16(text: &[u8]) -> Option<[u8; 16]> {
    let text: &[u8; 32] = text.try_into().ok()?;
    let (mut bytes, mut seen) = ([0; 16], 0);
    for (byte, pair) in bytes.iter_mut().zip(text.as_chunks::<2>().0) {
        let (high, low) = (value(pair[0]), value(pair[1]));
        seen |= high | low;
        *byte = high << 4 | low;
    }
    (seen < 16).then_some(bytes)
}

/// The number that exactly `N` digits tell, at most sixteen.
pub(crate) fn number<const N: usize>(text: &[u8]) -> Option<u64> {
    const { assert!(N <= 16) };
    let text: &[u8; N] = text.try_into().ok()?;
    let (mut number, mut seen) = (0, 0);
    for byte in text {
        let value = value(*byte);
        seen |= value;
        number = number << 4 | u64::from(value & 15);
    }
    (seen < 16).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_numbers_come_back_and_nothing_else_is_taken() {
        let bytes = [0, 1, 0xff, 0x7f, 0x80, 9, 0xa0, 0x0f, 1, 2, 3, 4, 5, 6, 7, 0xde];
        assert_eq!(text(&encode16(&bytes)), "0001ff7f8009a00f01020304050607de");
        assert_eq!(decode16(&encode16(&bytes)), Some(bytes));
        assert_eq!(text(&digits::<12>(0xabc)), "000000000abc");
        assert_eq!(number::<12>(b"000000000abc"), Some(0xabc));
        assert_eq!(number::<16>(b"ffffffffffffffff"), Some(u64::MAX));
        for wrong in [&b""[..], b"1", b"0A", b"+1", b"0g", b" 1", b"0/", b"0:", b"0`", b"111"] {
            assert_eq!(number::<2>(wrong), None);
        }
        assert_eq!(decode16(b"0001ff7f8009a00f01020304050607dE"), None);
        assert_eq!(decode16(b"0001ff7f8009a00f01020304050607d"), None);
    }
}
