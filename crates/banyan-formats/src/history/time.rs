//! Times as history messages have them: ISO 8601 with a `T`.

const MS_PER_DAY: i64 = 86_400_000;

/// A time in milliseconds since 1970 as `2026-01-22T21:47:29.763000+00:00`.
pub(crate) fn iso(ms: i64) -> String {
    let (days, in_day) = (ms.div_euclid(MS_PER_DAY), ms.rem_euclid(MS_PER_DAY));
    let (year, month, day) = date_of(days);
    let (hour, minute, second) = (in_day / 3_600_000, in_day / 60_000 % 60, in_day / 1000 % 60);
    let mut text = if (0..=9999).contains(&year) { String::with_capacity(32) } else { format!("{year:04}") };
    if text.is_empty() {
        text.extend(digits::<4>(year));
    }
    for (before, two) in [('-', month), ('-', day), ('T', hour), (':', minute), (':', second)] {
        text.push(before);
        text.extend(digits::<2>(two));
    }
    text.push('.');
    text.extend(digits::<3>(in_day % 1000));
    text.push_str("000+00:00");
    text
}

/// A time in milliseconds since 1970 as `2026-01-22T21:47:29.763Z`.
pub(crate) fn rfc3339(ms: i64) -> String {
    let mut text = iso(ms);
    text.truncate(text.len() - "000+00:00".len());
    text.push('Z');
    text
}

/// The last so many digits of a number that is not negative.
fn digits<const MANY: usize>(mut number: i64) -> [char; MANY] {
    let mut digits = ['0'; MANY];
    for digit in digits.iter_mut().rev() {
        *digit = char::from(b'0' + (number % 10) as u8);
        number /= 10;
    }
    digits
}

/// A time as it was given, with a `T` where a blank stood between date and time.
pub(crate) fn with_t(text: String) -> String {
    let bytes = text.as_bytes();
    let blank = bytes.len() > 11
        && bytes.get(10) == Some(&b' ')
        && bytes.get(4) == Some(&b'-')
        && bytes.get(7) == Some(&b'-')
        && bytes.get(11).is_some_and(u8::is_ascii_digit);
    if blank { format!("{}T{}", &text[..10], &text[11..]) } else { text }
}

/// The milliseconds since 1970 that an ISO 8601 time stands for; a time without a zone is UTC.
pub fn milliseconds(text: &str) -> Option<i64> {
    if let Some(usual) = usual(text.as_bytes()) {
        return Some(usual);
    }
    let (date, time) = text.split_once(['T', ' '])?;
    let mut date = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    if !(0..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (clock, offset) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => (&time[..at], offset_ms(&time[at..])?),
        None => (time, 0),
    };
    let mut clock = clock.splitn(3, ':');
    let (hour, minute) = (clock.next()?.parse::<i64>().ok()?, clock.next()?.parse::<i64>().ok()?);
    let seconds = clock.next().unwrap_or("0");
    let (second, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let second: i64 = second.parse().ok()?;
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..61).contains(&second) {
        return None;
    }
    let in_day = hour * 3_600_000 + minute * 60_000 + second * 1000 + thousandths(fraction)?;
    Some(days_to(year, month, day) * MS_PER_DAY + in_day - offset)
}

/// The same for the form that nearly all have, `2026-01-22T21:47:29.763Z`, in a fraction of the time. `None` for any other.
fn usual(text: &[u8]) -> Option<i64> {
    const FORM: &[u8; 24] = b"0000-00-00T00:00:00.000Z";
    let alike = |(byte, form): (&u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form };
    if text.len() != FORM.len() || !text.iter().zip(FORM).all(alike) {
        return None;
    }
    let number =
        |from: usize, to: usize| text[from..to].iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    let (month, day) = (number(5, 7), number(8, 10));
    let (hour, minute, second) = (number(11, 13), number(14, 16), number(17, 19));
    let is_time = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
    let in_day = hour * 3_600_000 + minute * 60_000 + second * 1000 + number(20, 23);
    is_time.then(|| days_to(number(0, 4), month, day) * MS_PER_DAY + in_day)
}

/// The first three digits after the point; what is finer is left off.
fn thousandths(fraction: &str) -> Option<i64> {
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let padded = fraction.bytes().chain([b'0'; 3]).take(3);
    Some(padded.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

fn offset_ms(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return Some(0),
    };
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    let (hours, minutes) = (digits.get(..2)?.parse::<i64>().ok()?, digits.get(2..4).unwrap_or("0"));
    Some(sign * (hours * 3_600_000 + minutes.parse::<i64>().ok()? * 60_000))
}

/// The civil date of a day counted from 1970. Years are counted from March, so that leap days come last.
fn date_of(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The day, counted from 1970, of a civil date.
fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_times_when_they_are_written_and_read_then_they_are_the_same() {
        assert_eq!(iso(1_769_118_449_763), "2026-01-22T21:47:29.763000+00:00");
        assert_eq!(iso(-1), "1969-12-31T23:59:59.999000+00:00");
        for ms in [0, -1, 951_782_400_000, 951_868_799_999, 1_769_118_449_763, 4_102_444_800_000] {
            assert_eq!(milliseconds(&iso(ms)), Some(ms));
            assert_eq!(milliseconds(&rfc3339(ms)), Some(ms));
        }
        assert_eq!(rfc3339(1_769_118_449_763), "2026-01-22T21:47:29.763Z");
    }

    #[test]
    fn given_other_spellings_when_they_are_read_then_they_are_understood_or_refused() {
        assert_eq!(milliseconds("2026-01-22T21:47:29.763430"), Some(1_769_118_449_763));
        assert_eq!(milliseconds("2026-01-22T22:47:29.763+01:00"), Some(1_769_118_449_763));
        assert_eq!(milliseconds("2026-01-22 21:47:29Z"), Some(1_769_118_449_000));
        assert_eq!(milliseconds("2026-01-22T21:47:29.7Z"), Some(1_769_118_449_700));
        let wrong = [
            "",
            "yesterday",
            "2026-13-01T00:00:00",
            "2026-01-01T25:00:00",
            "2026-01-01",
            "2026-13-01T00:00:00.000Z",
        ];
        for wrong in wrong {
            assert_eq!(milliseconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn given_a_blank_between_date_and_time_when_it_is_repaired_then_nothing_else_changes() {
        assert_eq!(with_t("2026-01-22 21:44:10".into()), "2026-01-22T21:44:10");
        assert_eq!(with_t("2026-01-22T21:44:10 and so on".into()), "2026-01-22T21:44:10 and so on");
        assert_eq!(with_t("some time ago".into()), "some time ago");
    }
}
