//! The numbers and texts that a snapshot is made of. Numbers have one byte for each seven bits, low bits first, so
//! that small ones are short.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes a snapshot.
pub(super) struct Writer<'a>(pub(super) &'a mut Vec<u8>);

impl Writer<'_> {
    pub(super) fn number(&mut self, number: impl Into<u64>) {
        let mut rest: u64 = number.into();
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
    }

    /// How much `value` is more than `expected`, which is little when the guess is good, either way.
    pub(super) fn difference(&mut self, value: u64, expected: u64) {
        let difference = value.wrapping_sub(expected) as i64;
        self.number((difference << 1 ^ difference >> 63) as u64);
    }

    pub(super) fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    /// Bytes whose number is known to the reader.
    pub(super) fn plain(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.count(text.len());
        self.plain(text.as_bytes());
    }

    /// Anything as JSON. What has none becomes a text that no reader accepts.
    pub(super) fn json(&mut self, value: &impl Serialize) {
        self.text(&serde_json::to_string(value).unwrap_or_default());
    }
}

/// Reads a snapshot, as far as it is one.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub(super) fn number(&mut self) -> Option<u64> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        if *first < 0x80 { Some(u64::from(*first)) } else { self.long_number(*first) }
    }

    fn long_number(&mut self, first: u8) -> Option<u64> {
        let mut number = u64::from(first & 0x7f);
        let mut shift = 7;
        loop {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if *byte < 0x80 {
                return Some(number);
            }
            shift += 7;
        }
    }

    pub(super) fn number32(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    pub(super) fn number16(&mut self) -> Option<u16> {
        self.number()?.try_into().ok()
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(super) fn difference(&mut self, expected: u64) -> Option<u64> {
        let number = self.number()?;
        let difference = number >> 1 ^ (number & 1).wrapping_neg();
        Some(expected.wrapping_add(difference))
    }

    /// How many things follow, each of at least `least` bytes. More than there can be is refused, so that room can be
    /// made for all of them.
    pub(super) fn count(&mut self, least: usize) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.rest.len() / least).then_some(count)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        let len = self.count(1)?;
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        std::str::from_utf8(bytes).ok()
    }

    pub(super) fn json<T: DeserializeOwned>(&mut self) -> Option<T> {
        serde_json::from_str(self.text()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_and_differences_come_back(number: u64, other: u64, small in 0_u64..300) {
            let mut bytes = Vec::new();
            let mut writer = Writer(&mut bytes);
            writer.number(number);
            writer.number(small);
            writer.difference(number, other);
            writer.difference(number, number.wrapping_add(small));
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.number(), Some(number));
            prop_assert_eq!(reader.number(), Some(small));
            prop_assert_eq!(reader.difference(other), Some(number));
            prop_assert_eq!(reader.difference(number.wrapping_add(small)), Some(number));
            prop_assert!(reader.is_at_end());
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for bytes in
            [&[][..], &[0x80], &[0xff; 9], &[0xff; 11], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]]
        {
            assert_eq!(Reader::new(bytes).number(), None, "{bytes:?}");
        }
        assert_eq!(Reader::new(&[3, 0, 0]).count(1), None);
        assert_eq!(Reader::new(&[2, 0, 0]).count(1), Some(2));
    }
}
