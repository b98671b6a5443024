//! What is asked of a history, in the query. Whatever is not understood is refused.

use banyan::model::{EntryId, SessionId};
use banyan_formats::history::{Disclosure, milliseconds};

use super::cursor::{Cursor, Mark};
use crate::caller::Caller;
use crate::problem::Problem;
use crate::resources::pairs;

/// What is asked of a history.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) session_id: SessionId,
    /// How many messages at most, the newest ones; all when there is none.
    pub(crate) limit: Option<usize>,
    /// Only messages before the one that begins with this entry.
    pub(crate) before: Option<EntryId>,
    /// Only messages after something.
    pub(crate) since: Option<Since>,
    /// Only messages after the one that begins with this entry, the oldest of those first.
    pub(crate) following: Option<EntryId>,
    pub(crate) disclosure: Disclosure,
    /// Whether and how the history is followed.
    pub(crate) stream: Option<Streaming>,
}

/// After what messages are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// After the last message that is not newer than this, in milliseconds since 1970.
    Time(i64),
    /// After the message that has this entry.
    Message(EntryId),
}

/// How a history is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Streaming {
    /// Whether text that was added is sent alone.
    pub(crate) deltas: bool,
    /// Where a stream was left that goes on here.
    pub(crate) left_at: Option<Mark>,
}

/// How many messages a page has at most.
pub(crate) const MOST: usize = 500;

const KEYS: &str = "limit, before, since, cursor, technical_details, stream, deltas, after";

impl Asked {
    pub(crate) fn read(
        caller: &Caller,
        session_id: &str,
        query: Option<&str>,
        last_event_id: Option<&str>,
    ) -> Result<Self, Problem> {
        let pairs = pairs(query)?;
        let known = |name: &str| KEYS.split(", ").any(|known| known == name);
        for (at, (name, _)) in pairs.iter().enumerate() {
            if !known(name) {
                return Err(Problem::invalid(format!("`{name}` is not known in the query; there is {KEYS}")));
            }
            if pairs[..at].iter().any(|(earlier, _)| earlier == name) {
                return Err(Problem::invalid(format!("`{name}` is given twice in the query")));
            }
        }
        let given = |name: &str| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let flag = |name: &str| given(name).map_or(Ok(false), |value| yes_or_no(name, value));
        let stream = flag("stream")?;
        for name in ["before", "cursor"] {
            if stream && given(name).is_some() {
                return Err(Problem::invalid(format!("a stream goes on to what is new; `{name}` is for pages")));
            }
        }
        for name in ["deltas", "after"] {
            if !stream && given(name).is_some() {
                return Err(Problem::invalid(format!("`{name}` is for streams; give `stream=1`, too")));
            }
        }
        let cursor = given("cursor").map(Cursor::decode).transpose()?;
        if cursor.is_some() && (given("before").is_some() || given("since").is_some()) {
            return Err(Problem::invalid("a cursor says by itself where a page begins; leave out the others"));
        }
        let mut before = given("before").map(Cursor::decode).transpose()?.map(Cursor::entry);
        let mut following = None;
        match cursor {
            Some(Cursor::Before(entry)) => before = Some(entry),
            Some(Cursor::After(entry)) => following = Some(entry),
            None => {}
        }
        let left_at = last_event_id.or(given("after")).filter(|_| stream).map(str::parse::<Mark>).transpose()?;
        let disclosure = match flag("technical_details")? {
            false => Disclosure::Public,
            true if caller.is_operator() => Disclosure::Operator,
            true => {
                return Err(Problem::forbidden(
                    "technical details are for keys that may see and change everything",
                ));
            }
        };
        Ok(Self {
            session_id: SessionId::from(session_id),
            limit: given("limit").map(limit).transpose()?,
            before,
            since: given("since").map(since).transpose()?,
            following,
            disclosure,
            stream: if stream { Some(Streaming { deltas: flag("deltas")?, left_at }) } else { None },
        })
    }
}

fn limit(value: &str) -> Result<usize, Problem> {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    // More digits than a number holds are more than the most, too.
    let number = value.parse().unwrap_or(usize::MAX);
    if digits && number > 0 {
        return Ok(number.min(MOST));
    }
    Err(Problem::invalid(format!("`limit` is a whole number from 1, not `{value}`")))
}

fn since(value: &str) -> Result<Since, Problem> {
    // A plus sign that was not escaped arrives as a blank.
    let time = match value.get(11..) {
        Some(rest) => format!("{}{}", &value[..11], rest.replace(' ', "+")),
        None => value.to_owned(),
    };
    if let Some(time) = milliseconds(&time) {
        return Ok(Since::Time(time));
    }
    Ok(Since::Message(Cursor::decode(value)?.entry()))
}

pub(crate) fn yes_or_no(name: &str, value: &str) -> Result<bool, Problem> {
    match value {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(Problem::invalid(format!("`{name}` is 1 or 0, not `{value}`"))),
    }
}
