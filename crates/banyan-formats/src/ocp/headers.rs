//! What the headers of a call say together.

use banyan_model::Object;
use serde_json::Value;

use super::id::is_header_id;
use super::read::{Fallback, Received, read_fields};
use super::value::{Unreadable, decode};
use super::{Ignored, header};

/// The headers of a call that are about contexts, as their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headers<'h> {
    /// `OCP-Context-ID`.
    pub context_id: Option<&'h [u8]>,
    /// `OCP-Agent-Type`.
    pub agent_type: Option<&'h [u8]>,
    /// `OCP-Current-Goal`.
    pub current_goal: Option<&'h [u8]>,
    /// `OCP-Agent-Goal`, the older name.
    pub agent_goal: Option<&'h [u8]>,
    /// `OCP-Session`.
    pub session: Option<&'h [u8]>,
    /// `OCP-User`.
    pub user: Option<&'h [u8]>,
    /// `OCP-Workspace`.
    pub workspace: Option<&'h [u8]>,
}

/// What headers say, and what of them was left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The context; none when nothing says which it is.
    pub received: Option<Received>,
    /// What was left out.
    pub ignored: Vec<Ignored>,
}

/// Reads headers. The encoded context comes first; single headers fill in what it does not say.
pub fn from_headers(headers: &Headers<'_>, now_ms: i64) -> Reading {
    let mut ignored = Vec::new();
    let mut line = |what, value: Option<&[u8]>, fits: fn(&str) -> bool| {
        let text = value.map(|value| std::str::from_utf8(value).map(str::trim))?;
        match text {
            Ok(text) if fits(text) => Some(text.to_owned()),
            _ => {
                ignored.push(Ignored { what, why: "malformed" });
                None
            }
        }
    };
    let context_id = line(header::CONTEXT_ID, headers.context_id, is_header_id);
    let agent_type = line(header::AGENT_TYPE, headers.agent_type, is_agent_type);
    let goal = line(header::CURRENT_GOAL, headers.current_goal, |text| fits(text, 256));
    let old_goal = line(header::AGENT_GOAL, headers.agent_goal, |text| fits(text, 256));
    let user = line(header::USER, headers.user, |text| fits(text, 64));
    let workspace = line(header::WORKSPACE, headers.workspace, |text| fits(text, 128));
    let goal = goal.or(old_goal);
    let fields = match headers.session.map(decode) {
        Some(Ok(Value::Object(fields))) => Some(fields),
        None => None,
        Some(wrong) => {
            let why = wrong.err().unwrap_or(Unreadable::NotAnObject);
            ignored.push(Ignored { what: header::SESSION, why: why.as_str() });
            None
        }
    };
    let named = fields.as_ref().and_then(|fields| fields.get("context_id")?.as_str()).filter(|id| !id.is_empty());
    if let (Some(body), Some(header)) = (named, &context_id)
        && body != header
    {
        ignored.push(Ignored { what: header::CONTEXT_ID, why: "another-in-session" });
    }
    if named.is_none() && context_id.is_none() {
        return Reading { received: None, ignored };
    }
    let fallback = Fallback { context_id: context_id.as_deref(), agent_type: agent_type.as_deref() };
    let mut received = read_fields(fields.unwrap_or_else(Object::new), fallback, now_ms);
    ignored.append(&mut received.ignored);
    let context = &mut received.context;
    for (what, own, given) in [
        (header::CURRENT_GOAL, &mut context.current_goal, goal),
        (header::USER, &mut context.user, user),
        (header::WORKSPACE, &mut context.workspace, workspace),
    ] {
        match (&own, given) {
            (None, given) => *own = given,
            (Some(own), Some(given)) if *own != given => {
                ignored.push(Ignored { what, why: "another-in-session" });
            }
            _ => {}
        }
    }
    Reading { received: Some(received), ignored }
}

/// Whether a header takes a text of so many characters at most.
pub(super) fn fits(text: &str, most: usize) -> bool {
    !text.is_empty() && text.chars().count() <= most && !text.chars().any(char::is_control)
}

pub(super) fn is_agent_type(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}
