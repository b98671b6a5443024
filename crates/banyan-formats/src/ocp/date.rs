//! Times as the schema has them: RFC 3339.

use std::fmt;

use crate::history::{milliseconds, rfc3339};

/// A moment, as finely as it was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Instant {
    ms: i64,
    /// Billionths of a second beyond the millisecond.
    rest: u32,
}

impl Instant {
    /// The moment that a text stands for; a time without a zone is UTC.
    pub(super) fn of(text: &str) -> Option<Self> {
        let ms = milliseconds(text)?;
        let fraction = text.split_once('.').map(|(_, after)| after).unwrap_or_default();
        let digits: String = fraction.chars().take_while(char::is_ascii_digit).skip(3).take(6).collect();
        Some(Self { ms, rest: format!("{digits:0<6}").parse().unwrap_or(0) })
    }

    pub(super) fn ms(self) -> i64 {
        self.ms
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.ms, self.rest)
    }
}

/// A time that the schema takes: the text itself if it is one, or the same moment in another spelling. None when it is no time.
pub(super) fn date_time(text: &str) -> Option<String> {
    let ms = milliseconds(text)?;
    match is_rfc3339(text) {
        true => Some(text.to_owned()),
        false => Some(rfc3339(ms)).filter(|text| is_rfc3339(text)),
    }
}

/// Milliseconds since 1970 as a time that the schema takes.
pub(super) fn of_ms(ms: i64) -> String {
    let text = rfc3339(ms);
    if is_rfc3339(&text) { text } else { rfc3339(0) }
}

/// `2026-03-01T10:00:00`, a fraction if there is one, and a zone.
fn is_rfc3339(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shaped = |bytes: &[u8], shape: &[u8]| {
        bytes.len() == shape.len()
            && bytes.iter().zip(shape).all(|(byte, shape)| match shape {
                b'0' => byte.is_ascii_digit(),
                b'T' => matches!(byte, b'T' | b't'),
                shape => byte == shape,
            })
    };
    if bytes.len() < 20 || !shaped(&bytes[..19], b"0000-00-00T00:00:00") {
        return false;
    }
    let number = |at: usize| u32::from(bytes[at] - b'0') * 10 + u32::from(bytes[at + 1] - b'0');
    let year = number(0) * 100 + number(2);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match number(5) {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    if !(1..=days).contains(&number(8)) || number(11) > 23 || number(14) > 59 || number(17) > 59 {
        return false;
    }
    let mut rest = &bytes[19..];
    if rest.first() == Some(&b'.') {
        let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=9).contains(&digits) {
            return false;
        }
        rest = &rest[1 + digits..];
    }
    match rest {
        b"Z" | b"z" => true,
        [b'+' | b'-', zone @ ..] if shaped(zone, b"00:00") => {
            (zone[0] - b'0') * 10 + zone[1] - b'0' < 24 && zone[3] < b'6'
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_times_when_they_are_read_then_the_schema_takes_what_comes_out() {
        for fine in ["2026-03-01T10:00:00+00:00", "2026-03-01T10:00:00.123456Z", "2024-02-29T23:59:59-08:00"] {
            assert_eq!(date_time(fine).as_deref(), Some(fine));
        }
        assert_eq!(date_time("2026-03-01 10:00:00").as_deref(), Some("2026-03-01T10:00:00.000Z"));
        assert_eq!(date_time("2026-03-01T10:00:00.5").as_deref(), Some("2026-03-01T10:00:00.500Z"));
        for wrong in ["", "yesterday", "2026-03-01", "2026-13-01T00:00:00Z", "10:00"] {
            assert_eq!(date_time(wrong), None, "{wrong}");
        }
        // A day that is none is the day after, in a spelling that is one.
        assert_eq!(date_time("2026-02-29T00:00:00Z").as_deref(), Some("2026-03-01T00:00:00.000Z"));
        assert_eq!(of_ms(i64::MAX), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn given_the_same_moment_in_two_spellings_when_they_are_compared_then_they_are_equal() {
        assert_eq!(Instant::of("2026-03-01T10:00:00.120000+00:00"), Instant::of("2026-03-01T11:00:00.12+01:00"));
        assert!(Instant::of("2026-03-01T10:00:00.120001Z") > Instant::of("2026-03-01T10:00:00.120Z"));
    }
}
