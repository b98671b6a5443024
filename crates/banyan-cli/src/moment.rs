//! Times as people type them.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Reads a time: a date, a date with its time and zone, or how long ago, such as `90m`, `12h`, `3d` or `2w`.
/// In milliseconds since 1970.
pub(crate) fn moment(text: &str) -> Result<i64, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    moment_from(text, i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}

fn moment_from(text: &str, now_ms: i64) -> Result<i64, String> {
    let wrong = || {
        "write a date like 2026-01-31, a time like 2026-01-31T12:00:00Z, or how long ago like 12h or 3d".to_owned()
    };
    if let Ok(date) = text.parse::<Date>() {
        let midnight = date.to_zoned(TimeZone::system()).map_err(|error| error.to_string())?;
        return Ok(midnight.timestamp().as_millisecond());
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.as_millisecond());
    }
    let unit_ms: i64 = match text.chars().next_back() {
        Some('m') => 60_000,
        Some('h') => 3_600_000,
        Some('d') => 86_400_000,
        Some('w') => 7 * 86_400_000,
        _ => return Err(wrong()),
    };
    let number: i64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    Ok(now_ms.saturating_sub(number.saturating_mul(unit_ms)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_typed() {
        assert_eq!(moment_from("2h", 10_000_000), Ok(10_000_000 - 7_200_000));
        assert_eq!(moment_from("3d", 0), Ok(-3 * 86_400_000));
        assert_eq!(moment_from("1970-01-01T00:00:01Z", 0), Ok(1000));
        assert!(moment_from("1970-01-02", 0).is_ok());
        for wrong in ["", "yesterday", "5", "h", "5x", "é"] {
            assert!(moment_from(wrong, 0).is_err(), "{wrong}");
        }
    }
}
