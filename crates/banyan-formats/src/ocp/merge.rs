//! Two contexts joined by what they say.

use banyan_model::Object;
use serde_json::Value;

use super::action::union;
use super::context::{Context, DEFAULT_AGENT};
use super::date::Instant;
use super::read::{Received, updated};

/// Joins what is known of a context with what was received. Every action is kept, each once. Of the rest the one that changed last decides,
/// and the known one when they are equal. What was received without a time is taken to be said now, as far as it says something.
/// The same again changes nothing.
pub fn merge(known: &Received, received: &Received) -> Received {
    let mut merged = known.clone();
    let (ours, theirs) = (&mut merged.context, &received.context);
    let newer = !received.undated && updated(theirs) > updated(ours);
    ours.history = union(std::mem::take(&mut ours.history).into_iter().chain(theirs.history.iter().cloned()));
    if instant(&theirs.created_at) < instant(&ours.created_at) && !received.undated {
        ours.created_at.clone_from(&theirs.created_at);
    }
    if known.undated && !received.undated {
        // Until now there were single headers only; this is the context that they were taken from.
        take_said(ours, theirs);
        ours.last_updated.clone_from(&theirs.last_updated);
    } else if newer {
        take_all(ours, theirs);
        ours.last_updated.clone_from(&theirs.last_updated);
    } else if received.undated {
        let before = ours.clone();
        take_said(ours, theirs);
        if *ours != before && updated(theirs) > updated(ours) {
            ours.last_updated.clone_from(&theirs.last_updated);
        }
    }
    add(&mut ours.api_specs, &theirs.api_specs, newer);
    track(&mut ours.session, &theirs.session, newer);
    add(&mut merged.extra, &received.extra, newer);
    merged.given_id = merged.given_id.take().or_else(|| received.given_id.clone());
    merged.undated = known.undated && received.undated;
    merged.ignored.clear();
    merged
}

fn instant(text: &str) -> Instant {
    Instant::of(text).unwrap_or_default()
}

fn take_all(ours: &mut Context, theirs: &Context) {
    ours.agent_type.clone_from(&theirs.agent_type);
    ours.user.clone_from(&theirs.user);
    ours.workspace.clone_from(&theirs.workspace);
    ours.current_file.clone_from(&theirs.current_file);
    ours.current_goal.clone_from(&theirs.current_goal);
    ours.context_summary.clone_from(&theirs.context_summary);
    ours.error_context.clone_from(&theirs.error_context);
    ours.recent_changes.clone_from(&theirs.recent_changes);
}

/// What is said, where nothing is said about the rest.
fn take_said(ours: &mut Context, theirs: &Context) {
    if theirs.agent_type != DEFAULT_AGENT {
        ours.agent_type.clone_from(&theirs.agent_type);
    }
    for (ours, theirs) in [
        (&mut ours.user, &theirs.user),
        (&mut ours.workspace, &theirs.workspace),
        (&mut ours.current_file, &theirs.current_file),
        (&mut ours.current_goal, &theirs.current_goal),
        (&mut ours.context_summary, &theirs.context_summary),
        (&mut ours.error_context, &theirs.error_context),
    ] {
        if theirs.is_some() {
            ours.clone_from(theirs);
        }
    }
    if !theirs.recent_changes.is_empty() {
        ours.recent_changes.clone_from(&theirs.recent_changes);
    }
}

fn add(ours: &mut Object, theirs: &Object, newer: bool) {
    for (key, value) in theirs {
        if newer || !ours.contains_key(key) {
            ours.insert(key.clone(), value.clone());
        }
    }
}

/// The counts of the agent's session: the highest, from the earliest beginning.
fn track(ours: &mut Object, theirs: &Object, newer: bool) {
    let count = |session: &Object| session.get("interaction_count").and_then(Value::as_u64).unwrap_or(0);
    let begun = |session: &Object| session.get("start_time").and_then(Value::as_str).map(str::to_owned);
    let highest = count(ours).max(count(theirs));
    let earliest = match (begun(ours), begun(theirs)) {
        (Some(ours), Some(theirs)) if newer && instant(&theirs) < instant(&ours) => Some(theirs),
        (ours, theirs) => ours.or(theirs),
    };
    add(ours, theirs, newer);
    ours.insert("interaction_count".to_owned(), highest.into());
    if let Some(earliest) = earliest {
        ours.insert("start_time".to_owned(), earliest.into());
    }
}
