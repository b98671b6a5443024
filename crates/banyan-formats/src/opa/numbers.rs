//! Numbers that do not survive being read into 64 bits.

/// The numbers of a JSON text, as they are spelled.
fn spelled(text: &str) -> impl Iterator<Item = &str> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    at += 1;
                    // To the end of the string, over whatever is escaped.
                    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at.min(bytes.len())..]) {
                        at += found + 1;
                        if bytes[at - 1] == b'"' {
                            break;
                        }
                        at += 1;
                    }
                    if at >= bytes.len() {
                        return None;
                    }
                }
                b'-' | b'0'..=b'9' => {
                    let start = at;
                    while bytes
                        .get(at)
                        .is_some_and(|byte| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))
                    {
                        at += 1;
                    }
                    return text.get(start..at);
                }
                _ => at += 1,
            }
        }
        None
    })
}

/// Whether every number of a JSON text is spelled the same after it was read and written.
pub(crate) fn are_exact(text: &str) -> bool {
    spelled(text).all(|number| {
        // Nearly all are short whole numbers.
        let is_plain = number.len() < 16 && number.bytes().all(|byte| byte.is_ascii_digit());
        if is_plain {
            return number.len() == 1 || !number.starts_with('0');
        }
        let written = serde_json::from_str::<serde_json::Number>(number).map(|number| number.to_string());
        written.is_ok_and(|written| written == number)
    })
}

/// Whether two JSON texts spell the same numbers, in whatever order.
pub(crate) fn are_same(one: &str, other: &str) -> bool {
    let sorted = |text| {
        let mut numbers: Vec<&str> = spelled(text).collect();
        numbers.sort_unstable();
        numbers
    };
    sorted(one) == sorted(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_numbers_when_they_are_looked_at_then_those_that_would_change_are_seen() {
        for exact in ["", "[1,-2,0,10,1.5,1.0,18446744073709551615]", r#"{"a":"1e5 \" 00","b":{"1e9":7}}"#] {
            assert!(are_exact(exact), "{exact}");
        }
        for inexact in
            ["1e5", "[18446744073709551616]", r#"{"a":1.00}"#, "1E400", "123456789012345678901234567890"]
        {
            assert!(!are_exact(inexact), "{inexact}");
        }
        assert!(are_same("[1e5, 2]", "[2,1e5]"));
        assert!(!are_same("[1e5, 2]", "[2,100000.0]"));
    }
}
