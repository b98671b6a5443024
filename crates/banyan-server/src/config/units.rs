//! Sizes and durations as people write them.

use std::time::Duration;

const SIZES: [(&str, usize); 8] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
];

const DURATIONS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// Reads `64MiB`, `64 MiB` or `65536`.
pub(super) fn size(text: &str) -> Result<usize, String> {
    let wrong = || format!("must be a size such as 64MiB or 65536, not `{text}`");
    let (number, unit) = split(text);
    let unit = match unit {
        "" => 1,
        unit => SIZES.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1,
    };
    let bytes = number.parse::<usize>().ok().and_then(|number| number.checked_mul(unit)).ok_or_else(wrong)?;
    if bytes == 0 { Err("must be more than 0".to_owned()) } else { Ok(bytes) }
}

/// Reads `30s`, `500ms`, `5m` or `1h`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("must be a duration such as 30s, 500ms or 5m, not `{text}`");
    let (number, unit) = split(text);
    let unit = DURATIONS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
    let ms = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).ok_or_else(wrong)?;
    if ms == 0 { Err("must be more than 0".to_owned()) } else { Ok(Duration::from_millis(ms)) }
}

pub(super) fn size_text(bytes: usize) -> String {
    let (name, unit) = SIZES.iter().take(3).find(|(_, unit)| bytes.is_multiple_of(*unit)).unwrap_or(&("B", 1));
    format!("{}{name}", bytes / unit)
}

pub(super) fn duration_text(duration: Duration) -> String {
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let (name, unit) = DURATIONS.iter().rev().find(|(_, unit)| ms.is_multiple_of(*unit)).unwrap_or(&("ms", 1));
    format!("{}{name}", ms / unit)
}

fn split(text: &str) -> (&str, &str) {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    (number, unit.trim_start())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes) in
            [("64MiB", 64 << 20), ("1 KiB", 1024), ("10MB", 10_000_000), ("1500", 1500), ("7B", 7)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
            assert_eq!(size(&size_text(bytes)), Ok(bytes), "{text}");
        }
        assert_eq!((size_text(64 << 20), size_text(1500)), ("64MiB".to_owned(), "1500B".to_owned()));
        for text in ["", "MiB", "-1", "1.5MiB", "64mib", "0", "99999999999GiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_read_and_written() {
        for (text, ms) in [("30s", 30_000), ("500ms", 500), ("5m", 300_000), ("1 h", 3_600_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
            assert_eq!(
                duration(&duration_text(Duration::from_millis(ms))),
                Ok(Duration::from_millis(ms)),
                "{text}"
            );
        }
        for text in ["", "30", "s", "-1s", "1.5s", "0s", "1d"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
