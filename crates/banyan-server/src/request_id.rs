//! The name of one request, in logs and on its answer.

use std::sync::Arc;

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use uuid::Uuid;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
const LONGEST: usize = 128;

/// The name of one request.
#[derive(Clone)]
pub(crate) struct RequestId(Arc<str>);

impl RequestId {
    /// The one that the caller gave, if it can be put in a log, or a new one.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let given = headers.get(HEADER).and_then(|id| id.to_str().ok()).filter(|id| is_sane(id));
        match given {
            Some(given) => Self(given.into()),
            None => {
                let mut buffer = Uuid::encode_buffer();
                Self((&*Uuid::now_v7().simple().encode_lower(&mut buffer)).into())
            }
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn put_on(&self, headers: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::from_str(&self.0) {
            headers.insert(HEADER, value);
        }
    }
}

/// Short, of letters that need no quoting, and not a key that was put into the wrong header.
fn is_sane(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(&byte);
    (1..=LONGEST).contains(&id.len()) && id.bytes().all(plain) && !id.contains("banyan_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &str) -> RequestId {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_bytes(given.as_bytes()).unwrap_or(HeaderValue::from_static("")));
        RequestId::of(&headers)
    }

    #[test]
    fn a_sane_id_is_kept_and_any_other_replaced() {
        assert_eq!(of("abc-1.2:3").as_str(), "abc-1.2:3");
        for other in ["", "two words", "a\"b", "é", &"x".repeat(129), "banyan_12345678_abcdef"] {
            assert_eq!(of(other).as_str().len(), 32, "{other:?}");
        }
        assert_ne!(of("").as_str(), of("").as_str());
    }
}
