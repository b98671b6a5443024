//! Entries, times and titles, made of what agents write.

use banyan_model::{
    AgentMessage, CustomEntry, EntryId, Error, Json, MessageEntry, Origin, Raw, Revision, SessionEntry,
};
use jiff::Timestamp;

/// A title is at most so many characters of what the user said.
const TITLE: usize = 80;

/// What every entry has.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) id: EntryId,
    pub(crate) parent: Option<EntryId>,
    /// Milliseconds since 1970.
    pub(crate) at: i64,
    /// Grows when more of the same message was read.
    pub(crate) revision: u64,
    pub(crate) origin: Option<Origin>,
}

impl Place {
    /// An entry that holds a message.
    pub(crate) fn message(self, message: &AgentMessage) -> Result<SessionEntry, Error> {
        let Self { id, parent, at, revision, origin } = self;
        let message = Raw::of(message)?;
        let revision = Revision::from(revision);
        Ok(SessionEntry::Message(MessageEntry { id, parent_id: parent, timestamp: at, revision, origin, message }))
    }

    /// An entry that holds an agent's own record as it is.
    pub(crate) fn custom(self, custom_type: impl Into<String>, data: Json) -> SessionEntry {
        let Self { id, parent, at, origin, .. } = self;
        let custom_type = custom_type.into();
        let revision = Revision::default();
        SessionEntry::Custom(CustomEntry {
            id,
            parent_id: parent,
            timestamp: at,
            revision,
            origin,
            custom_type,
            data,
        })
    }
}

/// A time as agents write it in text, in milliseconds since 1970.
pub(crate) fn millis(text: &str) -> Option<i64> {
    plain_millis(text).or_else(|| text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond))
}

/// The same for the one form that nearly all of them are in, such as `2026-11-15T17:52:27.032Z`.
fn plain_millis(text: &str) -> Option<i64> {
    let text: &[u8; 24] = text.as_bytes().try_into().ok()?;
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
    if marks.iter().any(|(at, mark)| text[*at] != *mark) {
        return None;
    }
    let number = |from: usize, to: usize| {
        let mut digits = text[from..to].iter().map(|digit| digit.checked_sub(b'0').filter(|digit| *digit < 10));
        digits.try_fold(0_i64, |number, digit| Some(number * 10 + i64::from(digit?)))
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second, ms) = (number(11, 13)?, number(14, 16)?, number(17, 19)?, number(20, 23)?);
    // Whatever is rare, such as the last days of a month and leap seconds, is left to those who know all about it.
    if !(1970..=2200).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=28).contains(&day)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    // Days since 1970, of a year that begins in March, so that a leap day comes last.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 719_469;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms)
}

/// A time as most agents write it: UTC with milliseconds.
pub(crate) fn iso(at: i64) -> String {
    let at = Timestamp::from_millisecond(at).unwrap_or_default();
    format!("{at:.3}")
}

/// A title out of what the user said first.
pub(crate) fn title_of(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(TITLE) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Timestamp, millis, plain_millis};

    #[test]
    fn a_plain_time_is_what_anybody_reads_it_as() {
        for year in [1970, 1999, 2000, 2024, 2026, 2100, 2199] {
            for month in 1..=12 {
                for day in [1, 17, 28, 29] {
                    let text = format!("{year}-{month:02}-{day:02}T23:05:59.{:03}Z", year - 1900);
                    let known = text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond);
                    assert_eq!(millis(&text), known, "{text}");
                    assert_eq!(plain_millis(&text).is_some(), day < 29, "{text}");
                }
            }
        }
        for odd in ["2026-13-01T00:00:00.000Z", "2026-01-01T24:00:00.000Z", "2026-01-01T00:00:00.0x0Z", ""] {
            assert_eq!(millis(odd), None, "{odd}");
        }
    }
}
