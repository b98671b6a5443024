//! Headers of an answer, never longer than they may be.

use banyan_model::Object;
use serde_json::Value;

use super::context::Context;
use super::headers::{fits, is_agent_type};
use super::value::{LARGEST_CONTEXT, LONGEST_HEADER, encode};
use super::{VERSION, header};

/// What is not in a context, besides what has to be left out to make it fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncounted {
    /// Actions that are older than those in the context.
    pub older_actions: u64,
    /// Entries of the conversation that were not looked at, because they are older than those that were.
    pub entries: u64,
}

/// How many actions there are, how many of them are left out, and how many entries were not looked at.
const TOTAL: &str = "history_total";
const DROPPED: &str = "history_dropped";
const NOT_READ: &str = "entries_not_read";
/// The keys within `session` that count what is left out.
pub(super) const COUNTS: [&str; 3] = [TOTAL, DROPPED, NOT_READ];
/// The key within `session` that names the fields which were cut or left out.
pub(super) const SHORTENED: &str = "shortened";

/// A long text is cut to so many characters when nothing else helps.
const CUT: usize = 128;

/// The headers of a context, by name. The oldest actions go first when there is no room for all; what was left out is counted in `session`. When
/// not even that helps, long texts are cut, then lists go, and at last `OCP-Session` itself.
pub fn to_headers(context: &Context, uncounted: Uncounted) -> Vec<(&'static str, String)> {
    let mut lines = vec![(header::CONTEXT_ID, context.context_id.clone())];
    if is_agent_type(&context.agent_type) {
        lines.push((header::AGENT_TYPE, context.agent_type.clone()));
    }
    lines.push((header::VERSION, VERSION.to_owned()));
    // What is not plain text would break somebody's client; it is in the context itself.
    let plain = |text: &&String, most| fits(text, most) && text.is_ascii() && text.trim() == text.as_str();
    for (name, text, most) in [
        (header::CURRENT_GOAL, &context.current_goal, 256),
        (header::USER, &context.user, 64),
        (header::WORKSPACE, &context.workspace, 128),
    ] {
        lines.extend(text.as_ref().filter(|text| plain(text, most)).map(|text| (name, text.clone())));
    }
    lines.extend(fitting(context, uncounted).map(|value| (header::SESSION, value)));
    lines
}

/// The context as a value that fits, with as much of its history as there is room for.
fn fitting(context: &Context, uncounted: Uncounted) -> Option<String> {
    let total = context.history.len();
    let mut bare = Context { history: Vec::new(), ..context.clone() };
    let with = |bare: &Context, newest: usize| {
        let mut part = Context { history: context.history[total - newest..].to_vec(), ..bare.clone() };
        count(&mut part.session, total, newest, uncounted);
        value_of(&part)
    };
    if let Some(whole) = with(&bare, total) {
        return Some(whole);
    }
    for step in [shorten_texts, drop_lists, drop_tracking] {
        if with(&bare, 0).is_some() {
            break;
        }
        step(&mut bare);
    }
    // Half the distance at a time: each try packs the whole context.
    let (mut fits, mut value, mut beyond) = (0, with(&bare, 0)?, total + 1);
    while fits + 1 < beyond {
        let middle = usize::midpoint(fits, beyond);
        match with(&bare, middle) {
            Some(larger) => (fits, value) = (middle, larger),
            None => beyond = middle,
        }
    }
    Some(value)
}

fn value_of(context: &Context) -> Option<String> {
    let json = context.to_json();
    // Whoever reads it must be able to.
    let value = (json.len() <= LARGEST_CONTEXT).then(|| encode(&json))?;
    (value.len() <= LONGEST_HEADER).then_some(value)
}

/// Counts what is not there.
fn count(session: &mut Object, given: usize, newest: usize, uncounted: Uncounted) {
    let total = given as u64 + uncounted.older_actions;
    let dropped = total - newest as u64;
    if dropped > 0 {
        session.insert(TOTAL.to_owned(), total.into());
        session.insert(DROPPED.to_owned(), dropped.into());
    }
    if uncounted.entries > 0 {
        session.insert(NOT_READ.to_owned(), uncounted.entries.into());
    }
}

fn shorten_texts(context: &mut Context) {
    let mut cut = Vec::new();
    for (name, text) in [
        ("user", &mut context.user),
        ("workspace", &mut context.workspace),
        ("current_file", &mut context.current_file),
        ("current_goal", &mut context.current_goal),
        ("context_summary", &mut context.context_summary),
        ("error_context", &mut context.error_context),
    ] {
        if let Some(long) = text.as_mut().filter(|text| text.chars().count() > CUT) {
            *long = long.chars().take(CUT).collect();
            cut.push(name);
        }
    }
    if context.agent_type.chars().count() > CUT {
        context.agent_type = context.agent_type.chars().take(CUT).collect();
        cut.push("agent_type");
    }
    note(context, &cut);
}

fn drop_lists(context: &mut Context) {
    let mut dropped = Vec::new();
    if !std::mem::take(&mut context.recent_changes).is_empty() {
        dropped.push("recent_changes");
    }
    if !std::mem::take(&mut context.api_specs).is_empty() {
        dropped.push("api_specs");
    }
    note(context, &dropped);
}

/// Leaves what the schema asks for, and what was noted.
fn drop_tracking(context: &mut Context) {
    let agent: String = context.agent_type.clone();
    context
        .session
        .retain(|key, _| matches!(key.as_str(), "start_time" | "interaction_count") || key == SHORTENED);
    context.session.insert("agent_type".to_owned(), agent.into());
    note(context, &["session"]);
}

fn note(context: &mut Context, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    let noted = context.session.entry(SHORTENED).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(noted) = noted {
        noted.extend(names.iter().map(|name| Value::from(*name)));
    }
}
