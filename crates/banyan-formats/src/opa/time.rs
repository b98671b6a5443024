//! Times as archives have them.

use crate::history::iso;

/// A time as it is written: `2026-03-01T10:00:00Z`, with milliseconds when there are some.
pub(crate) fn written(ms: i64) -> String {
    let text = iso(ms);
    let text = text.strip_suffix("000+00:00").unwrap_or(&text);
    format!("{}Z", text.strip_suffix(".000").unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_times_when_they_are_written_then_only_milliseconds_that_are_there_are_shown() {
        assert_eq!(written(1_772_359_200_000), "2026-03-01T10:00:00Z");
        assert_eq!(written(1_772_359_204_250), "2026-03-01T10:00:04.250Z");
        assert_eq!(written(-1), "1969-12-31T23:59:59.999Z");
    }
}
