//! `POST /sessions/{session_id}/history`: messages as others write them become entries, each once.

use axum::response::Response;
use banyan::Banyan;
use banyan::model::{EnsureRequest, Error, ErrorCode, ExtendMessageRequest, SessionId};
use banyan_formats::history::{Disclosure, HistoryMessage};
use hyper::{StatusCode, Uri};
use serde::Serialize;

use super::plan::{Conflict, Plan};
use super::query::yes_or_no;
use super::read::Reader;
use crate::body::Whole;
use crate::caller::Caller;
use crate::calls;
use crate::path::Captured;
use crate::problem::Problem;
use crate::resources::pairs;

/// What was added.
#[derive(Serialize)]
struct Posted {
    /// How many messages are new, or longer than they were.
    added: usize,
    /// Their interactions, each once.
    messages: Vec<String>,
}

/// How often a plan is made again because somebody else wrote to the session meanwhile.
const ATTEMPTS: usize = 8;

pub(crate) async fn history(
    caller: Caller,
    Captured(path): Captured,
    uri: Uri,
    Whole(body): Whole,
) -> Result<Response, Problem> {
    let session_id = SessionId::from(path.first().map_or("", |(_, id)| id.as_str()));
    let create = asks_to_create(&uri)?;
    let store = &caller.store;
    if store.access().read_only {
        return Err(Error::forbidden("this access is read-only; use one that may write").into());
    }
    let messages: Vec<HistoryMessage> = serde_json::from_slice(&body)
        .map_err(|error| Problem::invalid(format!("the body is not an array of history messages: {error}")))?;
    if create {
        let (title, description, metadata) = (None, None, None);
        store.ensure(EnsureRequest { session_id: session_id.clone(), title, description, metadata }).await?;
    }
    let reader = Reader::new(store.clone(), session_id, Disclosure::Public);
    for _ in 0..ATTEMPTS {
        let before = reader.state()?;
        let plan = Plan::make(&reader, &before, &messages)?;
        // A plan is made of several reads. It holds if nothing was written between them.
        if reader.state()?.version != before.version {
            continue;
        }
        let plan = plan.map_err(refused)?;
        if carry_out(store, &reader.session_id, &plan).await? {
            let answer = Posted { added: plan.changed.len(), messages: interactions(&plan) };
            return Ok(calls::json(serde_json::to_string(&answer).unwrap_or_default()));
        }
    }
    Err(conflict("others write to this session all the time; send the same again when they are done"))
}

fn asks_to_create(uri: &Uri) -> Result<bool, Problem> {
    let mut create = None;
    for (name, value) in pairs(uri.query())? {
        if name != "create" || create.is_some() {
            return Err(Problem::invalid(format!(
                "`{name}` is not known in the query, or given twice; there is create"
            )));
        }
        create = Some(yes_or_no(&name, &value)?);
    }
    Ok(create.unwrap_or_default())
}

/// Writes what is planned, in one commit. False when the session is not what it was any more.
async fn carry_out(store: &Banyan, id: &SessionId, plan: &Plan) -> Result<bool, Problem> {
    let growths = plan.growths.iter().map(|(growth, revision)| ExtendMessageRequest {
        session_id: id.clone(),
        entry_id: growth.entry_id.clone(),
        text: growth.text.clone(),
        block: Some(growth.block),
        expected_revision: Some(*revision),
        origin: None,
    });
    let mut growths: Vec<ExtendMessageRequest> = growths.collect();
    let (leaf, entries) = (plan.leaf.as_ref(), plan.entries.clone());
    let written = match (growths.len(), entries.len()) {
        (0, 0) => return Ok(true),
        // A message that is posted while it grows is stored, and told, as what was added.
        (1, 0) => return Ok(store.extend_message(growths.remove(0)).await?.updated),
        (0, _) => store.append_entries(id, leaf, entries).await,
        _ => store.extend_and_append(id, growths, leaf, entries).await,
    };
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.code == ErrorCode::Conflict => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn interactions(plan: &Plan) -> Vec<String> {
    let mut interactions: Vec<String> = Vec::new();
    for (interaction, _) in &plan.changed {
        if !interactions.contains(interaction) {
            interactions.push(interaction.clone());
        }
    }
    interactions
}

fn refused(Conflict { interaction_id, role, why }: Conflict) -> Problem {
    conflict(format!("the {} message of interaction `{interaction_id}` {why}", role.as_str()))
}

fn conflict(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::CONFLICT, ErrorCode::Conflict.as_str(), detail)
}
