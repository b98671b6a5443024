//! Why a budget gave nothing, as the answer that says so.

use hyper::StatusCode;

use super::Subject;
use crate::problem::Problem;

/// Why a budget gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// There is no room.
    Full,
    /// The holder has half of the limit, and the rest is for others.
    Share,
}

/// A refused use of a budget.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) subject: Subject,
    pub(crate) reason: Reason,
    pub(crate) limit: u64,
    pub(crate) by_key: bool,
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let Refusal { subject: Subject { what, setting, code, .. }, reason, limit, by_key } = refusal;
        let who = if by_key { "key" } else { "address" };
        match reason {
            Reason::Full => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                code,
                format!("this server holds as many {what} as it may: {limit} (`{setting}`)"),
            ),
            Reason::Share => Self::rate_limited(format!(
                "this {who} holds more than half of the {limit} {what} of this server (`{setting}`), and the rest is for others"
            )),
        }
        .retry_after(1)
    }
}
