//! The context object. One that exists is valid against the schema.

use banyan_model::Object;
use serde::Serialize;

use super::action::Action;

/// What an agent is taken for that does not say.
pub const DEFAULT_AGENT: &str = "generic_agent";

/// So many recent changes are kept, the newest.
pub const MOST_CHANGES: usize = 10;

/// A context, in the fields and the order of the schema's own libraries. All fields are written, the empty ones too.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Context {
    /// `ocp-` and at least 8 hex digits.
    pub context_id: String,
    /// What kind of agent made it.
    pub agent_type: String,
    /// Whose agent it is, by its own word.
    pub user: Option<String>,
    /// What it works on.
    pub workspace: Option<String>,
    /// The file that it works on.
    pub current_file: Option<String>,
    /// When the agent's session began, how many interactions it had, and what else the agent keeps there.
    pub session: Object,
    /// What was done, oldest first.
    pub history: Vec<Action>,
    /// What the agent is after.
    pub current_goal: Option<String>,
    /// What it is about, in short.
    pub context_summary: Option<String>,
    /// What went wrong.
    pub error_context: Option<String>,
    /// What changed lately, newest last.
    pub recent_changes: Vec<String>,
    /// Addresses of API descriptions by name.
    pub api_specs: Object,
    /// When it was made.
    pub created_at: String,
    /// When it last changed.
    pub last_updated: String,
}

impl Context {
    /// The context as JSON, on one line.
    pub fn to_json(&self) -> String {
        // Strings and JSON values always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Whether a text is one that `api_specs` takes: a name and a colon, and then what a URI may have.
pub(super) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        && !rest.is_empty()
        && rest.bytes().all(plain)
        && rest.matches('#').count() <= 1
        && whole_escapes(rest)
}

/// Whether every `%` begins an escape.
fn whole_escapes(text: &str) -> bool {
    let two_digits = |after: &str| after.len() >= 2 && after.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    text.split('%').skip(1).all(two_digits)
}

/// Whether a text is a name that `api_specs` takes.
pub(super) fn is_spec_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}
