//! Times, sizes and other people's text, in words that fit a line.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::failure::complain;

/// How long ago a time in milliseconds since 1970 was.
pub(crate) fn ago(then_ms: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    since(now_ms.saturating_sub(then_ms) / 1000)
}

fn since(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    match seconds {
        ..MINUTE => "just now".to_owned(),
        MINUTE..HOUR => format!("{} min ago", seconds / MINUTE),
        HOUR..DAY => format!("{} h ago", seconds / HOUR),
        _ if seconds < 60 * DAY => format!("{} ago", count(seconds / DAY, "day")),
        _ if seconds < 730 * DAY => format!("{} ago", count(seconds / (30 * DAY), "month")),
        _ => format!("{} ago", count(seconds / (365 * DAY), "year")),
    }
}

/// Reads a time in the past: so long ago (`7d`, `12h`, `2w`), a date, or a moment. Gives milliseconds since 1970.
pub(crate) fn since_ms(text: &str) -> Result<i64, String> {
    let now = Timestamp::now();
    if let Some((at, unit)) = text.char_indices().last()
        && let Ok(number) = text[..at].parse::<i64>()
    {
        let seconds = match unit {
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'w' => 7 * 86_400,
            _ => return Err("write it as 30m, 12h, 7d, 2w, or a date such as 2026-01-31".to_owned()),
        };
        return Ok(now.as_millisecond().saturating_sub(number.saturating_mul(seconds * 1000)));
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment.as_millisecond());
    }
    let date: Date = text.parse().map_err(|error| format!("{error}; write it as 7d, 12h, or 2026-01-31"))?;
    let day = date.to_zoned(TimeZone::system()).map_err(|error| error.to_string())?;
    Ok(day.timestamp().as_millisecond())
}

/// Tells times of day, and the date when it is another one than before.
#[derive(Default)]
pub(crate) struct Clock {
    date: Option<Date>,
}

impl Clock {
    /// The local time of a moment in milliseconds since 1970.
    pub(crate) fn tell(&mut self, ms: i64) -> String {
        let Ok(moment) = Timestamp::from_millisecond(ms) else { return "at an unknown time".to_owned() };
        let moment = moment.to_zoned(TimeZone::system());
        let known = self.date.replace(moment.date()) == Some(moment.date());
        moment.strftime(if known { "%H:%M" } else { "%Y-%m-%d %H:%M" }).to_string()
    }
}

/// A number and what it counts.
pub(crate) fn count(number: impl Into<i128>, noun: &str) -> String {
    let number = number.into();
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Warns of entries that an export has no content for.
pub(crate) fn complain_of_damaged(entries: u64) {
    if entries > 0 {
        let entries = if entries == 1 { "1 entry is".to_owned() } else { format!("{entries} entries are") };
        complain(&format!("{entries} damaged and left out; `banyan verify` names them."));
    }
}

/// A number of bytes.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut amount = bytes as f64 / 1000.0;
    let mut units = UNITS.iter();
    let mut unit = units.next().unwrap_or(&"");
    while amount >= 1000.0
        && let Some(larger) = units.next()
    {
        amount /= 1000.0;
        unit = larger;
    }
    format!("{amount:.1} {unit}")
}

/// Text as it may be shown: nothing in it can move the cursor or turn the direction of reading.
pub(crate) fn safe(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => Some(c),
        '\r' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => None,
        c if c.is_control() => Some('\u{fffd}'),
        c => Some(c),
    };
    text.chars().filter_map(shown).collect()
}

/// Text on one line, each run of blanks as one.
pub(crate) fn one_line(text: &str) -> String {
    safe(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The beginning of a line, at most so many columns wide.
pub(crate) fn clip(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let fits = |c: &char| match left.checked_sub(columns_of(*c)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let mut kept: String = line.chars().take_while(fits).collect();
    kept.push('…');
    kept
}

/// The end of a line, at most so many columns wide.
pub(crate) fn clip_start(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let reversed: String = line.chars().rev().collect();
    clip(&reversed, columns).chars().rev().collect()
}

/// How many columns a line takes, at most.
pub(crate) fn width(line: &str) -> usize {
    line.chars().map(columns_of).sum()
}

/// Two for scripts and signs that may be drawn wide, so that a clipped line never runs over.
fn columns_of(c: char) -> usize {
    if matches!(c, '\u{1100}'..='\u{1fff}' | '\u{2e80}'..) { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_people_say_them() {
        let told = [-5, 59, 60, 3_599, 7_200, 86_400, 172_800, 5_300_000, 100_000_000].map(since);
        let said = [
            "just now",
            "just now",
            "1 min ago",
            "59 min ago",
            "2 h ago",
            "1 day ago",
            "2 days ago",
            "2 months ago",
            "3 years ago",
        ];
        assert_eq!(told, said);
    }

    #[test]
    fn times_in_the_past_are_read_as_people_write_them() {
        let hour = since_ms("2h").unwrap_or_default() - since_ms("3h").unwrap_or_default();
        assert!((3_600_000 - hour).abs() < 1000);
        assert_eq!(since_ms("2026-01-31T00:00:00Z"), Ok(1_769_817_600_000));
        assert!(since_ms("2026-01-31").is_ok_and(|ms| (ms - 1_769_817_600_000).abs() < 86_400_000));
        assert!(since_ms("7x").is_err() && since_ms("soon").is_err());
    }

    #[test]
    fn sizes_have_a_unit_that_fits() {
        assert_eq!(
            [0, 999, 1_000, 1_550_000, 3_000_000_000].map(size),
            ["0 B", "999 B", "1.0 kB", "1.6 MB", "3.0 GB"]
        );
    }

    #[test]
    fn text_of_others_cannot_steer_the_terminal() {
        assert_eq!(safe("a\u{1b}[31mb\r\n\tc\u{202e}d"), "a\u{fffd}[31mb\n\tcd");
        assert_eq!(one_line("  a\n\n b\t c "), "a b c");
    }

    #[test]
    fn a_clipped_line_never_runs_over() {
        assert_eq!([clip("hello", 5), clip("hello!", 5), clip("天気予報", 5)], ["hello", "hell…", "天気…"]);
        assert_eq!(clip_start("It is sunny", 6), "…sunny");
    }
}
