//! `POST /v1/sessions/{session_id}/messages?format=…`: whatever of a shape's messages is not there yet is appended.

use std::collections::{HashMap, HashSet};

use axum::response::Response;
use banyan::model::{
    AgentMessage, AppendRequest, EntryId, Error, ErrorCode, GetMessageRequest, Revision, SessionEntry, SessionId,
    SetActiveLeafRequest, UpdateMessageRequest,
};
use banyan::{PathState, Whereabouts};
use banyan_formats::shapes::{
    Body, Comparison, Follows, NewEntry, Posted, PostedMessage, Shape, compare, entries_by_message,
};
use hyper::StatusCode;
use serde::Serialize;
use serde_json::Value;

use super::only;
use super::read::Reader;
use crate::calls;
use crate::history::now_ms;
use crate::problem::Problem;
use crate::resources::Asked;

/// What was written.
#[derive(Serialize, Default)]
struct Written {
    /// The entries that are new.
    added: Vec<EntryId>,
    /// The entries that are longer than they were.
    extended: Vec<EntryId>,
}

pub(crate) async fn append(asked: Asked, shape: &dyn Shape) -> Result<Response, Problem> {
    only(&asked.query, [])?;
    let reader = Reader::new(asked.caller.store.clone(), SessionId::from(asked.in_path("session_id")));
    if reader.store.access().read_only {
        return Err(Error::forbidden("this access is read-only; use one that may write").into());
    }
    let form: Value = serde_json::from_slice(&asked.body)
        .map_err(|error| Problem::invalid(format!("the body is not valid JSON: {error}")))?;
    let posted = shape.read(&form, now_ms()).map_err(Problem::invalid)?;
    let plan = Plan::make(&reader, posted).await?;
    let written = plan.carry_out(&reader).await?;
    Ok(calls::json(serde_json::to_string(&written).unwrap_or_default()))
}

/// What has to be written, in this order.
struct Plan {
    steps: Vec<Step>,
    /// The entry that the conversation goes on from.
    head: Option<EntryId>,
}

enum Step {
    Append { entry: NewEntry, parent: Option<EntryId> },
    Extend { entry: EntryId, message: Box<AgentMessage>, revision: Revision },
}

impl Plan {
    async fn make(reader: &Reader, posted: Posted) -> Result<Self, Problem> {
        let ids: Vec<EntryId> =
            posted.messages.iter().flat_map(|message| &message.entries).map(|entry| entry.id.clone()).collect();
        let (state, places) = reader.store.whereabouts(&reader.session_id, &ids)?;
        let known = ids.into_iter().zip(places).filter(|(_, place)| *place != Whereabouts::Nowhere);
        let known = known.map(|(id, _)| id).collect();
        let mut parents = Parents { reader, state, known, ends: HashMap::new(), there: None, before: None };
        let mut steps = Vec::new();
        for message in posted.messages {
            parents.must_know_entries(&message)?;
            let mut parent = parents.parent_of(&message)?;
            for entry in message.entries {
                let id = entry.id.clone();
                if parents.known.contains(&id) {
                    steps.extend(longer(reader, &entry).await?);
                } else if entry.body == Body::Unreadable {
                    continue;
                } else {
                    parents.known.insert(id.clone());
                    steps.push(Step::Append { entry, parent: parent.clone() });
                }
                parent = Some(id);
            }
            parents.before.clone_from(&parent);
            parents.ends.extend(parent.map(|end| (message.id, end)));
        }
        let head = posted.head.and_then(|head| parents.ends.get(&head).cloned());
        Ok(Self { steps, head })
    }

    async fn carry_out(self, reader: &Reader) -> Result<Written, Problem> {
        let mut written = Written::default();
        for step in self.steps {
            match step {
                Step::Append { entry, parent } => {
                    let id = entry.id.clone();
                    reader.store.append(request(reader, entry, parent)).await?;
                    written.added.push(id);
                }
                Step::Extend { entry, message, revision } => {
                    let request = UpdateMessageRequest {
                        session_id: reader.session_id.clone(),
                        entry_id: entry.clone(),
                        content: message.content().to_vec(),
                        details: None,
                        usage: None,
                        expected_revision: Some(revision),
                        origin: None,
                    };
                    if !reader.store.update_message(request).await?.updated {
                        return Err(conflict(format!(
                            "entry `{entry}` was changed meanwhile; send the same again"
                        )));
                    }
                    written.extended.push(entry);
                }
            }
        }
        // An old copy of a conversation does not take anybody back to where it ended.
        if let Some(entry_id) = self.head.filter(|_| !written.added.is_empty()) {
            let session_id = reader.session_id.clone();
            reader.store.set_active_leaf(SetActiveLeafRequest { session_id, entry_id }).await?;
        }
        Ok(written)
    }
}

fn request(reader: &Reader, entry: NewEntry, parent_id: Option<EntryId>) -> AppendRequest {
    let (message, custom) = match entry.body {
        Body::Message(message) => (Some(*message), None),
        Body::Custom(custom) => (None, Some(custom)),
        Body::Unreadable => (None, None),
    };
    AppendRequest {
        session_id: reader.session_id.clone(),
        message,
        custom,
        parent_id,
        entry_id: Some(entry.id),
        origin: entry.origin,
        expected_leaf: None,
    }
}

/// What is new in an entry that is there.
async fn longer(reader: &Reader, entry: &NewEntry) -> Result<Option<Step>, Problem> {
    let Body::Message(new) = &entry.body else { return Ok(None) };
    let request = GetMessageRequest {
        session_id: reader.session_id.clone(),
        entry_id: entry.id.clone(),
        include_image_data: None,
    };
    let found = reader.store.get_message(request).await?.map(|found| found.entry);
    let Some(SessionEntry::Message(known)) = found else { return Ok(None) };
    let Ok(message) = known.message.parse() else { return Ok(None) };
    let said_by_people = matches!(message, AgentMessage::User(_));
    match compare(&message, new) {
        Comparison::Same => Ok(None),
        Comparison::Longer if !said_by_people => {
            Ok(Some(Step::Extend { entry: entry.id.clone(), message: new.clone(), revision: known.revision }))
        }
        Comparison::Longer | Comparison::Different => Err(conflict(format!(
            "entry `{}` is there already and says something else; send what was changed under another id",
            entry.id
        ))),
    }
}

/// Finds what messages follow.
struct Parents<'a> {
    reader: &'a Reader,
    state: PathState,
    known: HashSet<EntryId>,
    /// The last entry of each message that was posted.
    ends: HashMap<String, EntryId>,
    /// The entries of each message that is there, once somebody asked.
    there: Option<HashMap<EntryId, Vec<EntryId>>>,
    before: Option<EntryId>,
}

impl Parents<'_> {
    fn parent_of(&mut self, message: &PostedMessage) -> Result<Option<EntryId>, Problem> {
        let is_there = message.entries.first().is_some_and(|entry| self.known.contains(&entry.id));
        match &message.follows {
            // What is there stays where it is.
            _ if is_there => Ok(None),
            Follows::Before => Ok(self.before.clone()),
            Follows::Nothing if self.state.leaf.is_none() && self.ends.is_empty() => Ok(None),
            Follows::Nothing => Err(conflict(format!(
                "message `{}` follows none, and session `{}` has a first message already; post it to a session of its own",
                message.id, self.reader.session_id
            ))),
            Follows::Message(id) => match self.ends.get(id) {
                Some(end) => Ok(Some(end.clone())),
                None => self.end_of(id).map(Some),
            },
        }
    }

    /// The last entry of a message that is there.
    fn end_of(&mut self, id: &str) -> Result<EntryId, Problem> {
        let end = self.there()?.get(id).and_then(|entries| entries.last().cloned());
        end.ok_or_else(|| Error::parent_not_found(&self.reader.session_id, &EntryId::from(id)).into())
    }

    /// Refuses a message that is there and does not say what it was made of, when that would add the same a second time.
    fn must_know_entries(&mut self, message: &PostedMessage) -> Result<(), Problem> {
        let is_known = |known: &HashSet<EntryId>, entry: &NewEntry| known.contains(&entry.id);
        let begun = message.entries.first().is_some_and(|entry| is_known(&self.known, entry));
        let goes_on = message.entries.iter().any(|entry| !is_known(&self.known, entry));
        if message.knows_entries || !begun || !goes_on {
            return Ok(());
        }
        let made_of = self.there()?.get(message.id.as_str()).cloned().unwrap_or_default();
        let told = |id: &EntryId| message.entries.iter().any(|entry| entry.id == *id);
        match made_of.iter().all(told) {
            true => Ok(()),
            false => Err(conflict(format!(
                "message `{}` is there already, and its metadata was left out; send it with the metadata that this server gave it",
                message.id
            ))),
        }
    }

    fn there(&mut self) -> Result<&HashMap<EntryId, Vec<EntryId>>, Error> {
        let there = match self.there.take() {
            Some(there) => there,
            None => {
                let (items, leaf) = self.reader.tree()?;
                let mut scene = self.reader.scene(&self.state);
                scene.leaf = leaf;
                entries_by_message(&items, &scene)
            }
        };
        Ok(self.there.insert(there))
    }
}

fn conflict(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::CONFLICT, ErrorCode::Conflict.as_str(), detail)
}
