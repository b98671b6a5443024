//! Record times: milliseconds since the epoch, written as RFC 3339 in UTC with exactly three decimals.

use jiff::Timestamp;

/// The text of a time. Times that RFC 3339 cannot write are moved to the nearest that it can.
pub(crate) fn to_text(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms.max(0)).unwrap_or(Timestamp::MAX);
    format!("{time:.3}")
}

/// The time that a text says.
pub(crate) fn from_text(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_a_fixed_width() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_794_774_600_123, "2026-11-15T20:30:00.123Z"),
            (1_794_774_600_000, "2026-11-15T20:30:00.000Z"),
        ] {
            assert_eq!(to_text(ms), text);
            assert_eq!(from_text(text), Some(ms));
        }
        assert_eq!(to_text(i64::MAX).len(), 24);
        assert_eq!(to_text(-1), "1970-01-01T00:00:00.000Z");
    }
}
