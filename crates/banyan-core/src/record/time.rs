//! Record times: milliseconds since the epoch, written as RFC 3339 in UTC with exactly three decimals.
//!
//! Every line has one, so they are written and read here without a general parser of dates.

/// What the text of a time looks like; digits stand where it has `0`.
const FORM: &[u8; 24] = b"0000-00-00T00:00:00.000Z";

/// The last time that has four digits for its year.
const LAST: i64 = 253_402_300_799_999;

const DAY: i64 = 86_400_000;

/// The text of a time. Times before 1970 or after 9999 are moved to the nearest in between.
pub(crate) fn to_text(ms: i64) -> [u8; 24] {
    let ms = ms.clamp(0, LAST);
    let (year, month, day) = date_of(ms / DAY);
    let of_day = ms % DAY;
    let mut text = *FORM;
    put(&mut text[0..4], year);
    put(&mut text[5..7], month);
    put(&mut text[8..10], day);
    put(&mut text[11..13], of_day / 3_600_000);
    put(&mut text[14..16], of_day / 60_000 % 60);
    put(&mut text[17..19], of_day / 1_000 % 60);
    put(&mut text[20..23], of_day % 1_000);
    text
}

/// The time that a text of this form says.
pub(crate) fn from_text(text: &[u8]) -> Option<i64> {
    let text: &[u8; 24] = text.try_into().ok()?;
    let is_formed = |byte: u8, form: u8| if form == b'0' { byte.is_ascii_digit() } else { byte == form };
    if !text.iter().zip(FORM).fold(true, |so_far, (byte, form)| so_far & is_formed(*byte, *form)) {
        return None;
    }
    let (year, month, day) = (get(&text[0..4]), get(&text[5..7]), get(&text[8..10]));
    let (hour, minute, second) = (get(&text[11..13]), get(&text[14..16]), get(&text[17..19]));
    let is_date = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = (hour * 60 + minute) * 60 + second;
    Some(days_before(year, month, day) * DAY + seconds * 1_000 + get(&text[20..23]))
}

fn put(digits: &mut [u8], number: i64) {
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

fn get(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

// Both ways count years from March, so that a leap day is the last day of its year, and months by their share of the
// 153 days that five of them have.

/// Days from 1970-01-01 to a date from the year 0 on.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let month_from_march = (month + 9) % 12;
    let of_year = (153 * month_from_march + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468
}

/// Year, month and day of the day that is so many after 1970-01-01.
fn date_of(days: i64) -> (i64, i64, i64) {
    let from_year_0 = days + 719_468;
    let era = from_year_0 / 146_097;
    let of_era = from_year_0 % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn said(ms: i64) -> String {
        String::from_utf8(to_text(ms).to_vec()).unwrap()
    }

    #[test]
    fn times_are_written_with_a_fixed_width() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_794_774_600_123, "2026-11-15T20:30:00.123Z"),
            (1_794_774_600_000, "2026-11-15T20:30:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (LAST, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(said(ms), text);
            assert_eq!(from_text(text.as_bytes()), Some(ms));
        }
        assert_eq!(to_text(i64::MAX), to_text(LAST));
        assert_eq!(to_text(-1), to_text(0));
    }

    #[test]
    fn days_follow_each_other_for_eight_thousand_years() {
        let mut date = (1970, 1, 1);
        for days in 0..=LAST / DAY {
            assert_eq!((date_of(days), days_before(date.0, date.1, date.2)), (date, days));
            date = match date {
                (year, 12, 31) => (year + 1, 1, 1),
                (year, month, day) if day == days_in(year, month) => (year, month + 1, 1),
                (year, month, day) => (year, month, day + 1),
            };
        }
        assert_eq!(date, (10_000, 1, 1));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2026-11-15T20:30:00Z",
            "2026-11-15T20:30:00.123+",
            "2026-11-15 20:30:00.123Z",
            "2026-13-15T20:30:00.123Z",
            "2026-00-15T20:30:00.123Z",
            "2026-02-29T20:30:00.123Z",
            "2026-11-31T20:30:00.123Z",
            "2026-11-00T20:30:00.123Z",
            "2026-11-15T24:30:00.123Z",
            "2026-11-15T20:60:00.123Z",
            "2026-11-15T20:30:60.123Z",
            "2026-11-15T20:30:00.12xZ",
        ] {
            assert_eq!(from_text(text.as_bytes()), None, "{text}");
        }
        assert_eq!(from_text(b"1969-12-31T23:59:59.999Z"), Some(-1));
        assert_eq!(from_text(b"0000-01-01T00:00:00.000Z"), Some(-62_167_219_200_000));
    }

    proptest! {
        #[test]
        fn every_time_comes_back(ms in 0..=LAST) {
            prop_assert_eq!(from_text(&to_text(ms)), Some(ms));
        }
    }
}
