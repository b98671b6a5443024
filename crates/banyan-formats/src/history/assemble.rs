//! One message of the entries that make it.

use banyan_model::{AgentMessage, AssistantMessage, EntryId, Object, SessionStatus, StopReason};
use serde::de::DeserializeOwned;

use super::display;
use super::entry::Entry;
use super::fields::Fields;
use super::message::{Disclosure, HistoryMessage, Speaker, Status, joined_text};
use super::part::Part;
use super::parts::{Options, PartMaker, Place, Texts};
use super::time::iso;
use crate::body::Body;

/// What is going on with the newest message. All others are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// Nobody works on it.
    #[default]
    Over,
    /// Somebody works on it: the session is `working`.
    Running,
    /// The work failed: the session is in `error`.
    Failed,
    /// Whoever worked on it went away without a word.
    Abandoned,
}

/// How long a session may be `working` without a change before whoever worked on it counts as gone.
pub const ABANDONED_AFTER_MS: i64 = 10 * 60 * 1000;

impl Standing {
    /// What is going on with the newest message of a session that is like this now.
    pub fn of(status: SessionStatus, updated_at: i64, now_ms: i64) -> Self {
        match status {
            SessionStatus::Working if now_ms.saturating_sub(updated_at) > ABANDONED_AFTER_MS => Self::Abandoned,
            SessionStatus::Working => Self::Running,
            SessionStatus::Error => Self::Failed,
            SessionStatus::Idle | SessionStatus::Done => Self::Over,
        }
    }
}

/// A message, and the entries that it was made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Projected {
    /// The message.
    pub message: HistoryMessage,
    /// Its entries, in the order of the path.
    pub entries: Vec<EntryId>,
    /// Where each part comes from.
    pub places: Vec<Place>,
    /// Whether it came in as a history message, so that its fields are what the writer said.
    pub posted: bool,
    /// Whether `response_text_main` is the text of the last text part.
    pub(crate) main_is_last_text: bool,
}

/// What is known of a message before its first entry.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub interaction_id: String,
    pub role: Speaker,
    /// When the question was asked that this answers.
    pub asked_at: Option<i64>,
    /// The time of the entry before.
    pub time: i64,
}

pub(crate) fn assemble(
    opening: &Opening,
    entries: &mut [Entry],
    options: &Options,
    standing: Standing,
    texts: Texts,
) -> Projected {
    let mut maker = PartMaker::new(options, opening.time, texts);
    entries.iter_mut().for_each(|entry| maker.take(entry));
    let (mut parts, mut places) = (maker.parts, maker.places);
    display::fill_in(&mut parts);

    let posted = entries.first().is_some_and(|entry| entry.mark.is_some());
    let (fields, kept) = stated_fields(entries, options.disclosure);
    let mut stated = Stated(fields);
    let status = stated.take("status").unwrap_or_else(|| status(opening.role, entries, standing));
    let stated_text: Option<String> = stated.take("text_content");
    let text_content = match opening.role {
        Speaker::User if stated_text.is_none() => {
            let text = match parts.as_mut_slice() {
                [Part::Text(only)] => Some(std::mem::take(&mut only.text)),
                _ => question_text(entries, &parts),
            };
            // A question that is only text is told by its text alone.
            if parts.iter().all(|part| matches!(part, Part::Text(_))) {
                parts.clear();
                places.clear();
            }
            text
        }
        _ => stated_text,
    };
    let stated_main: Option<String> = stated.take("response_text_main");
    let main_is_last_text = opening.role == Speaker::Assistant && !posted && stated_main.is_none();
    let derived = if posted { Derived::default() } else { Derived::of(opening, entries, status) };
    let message = HistoryMessage {
        role: opening.role,
        interaction_id: opening.interaction_id.clone(),
        text_content,
        response_text_main: if main_is_last_text { last_text(&parts) } else { stated_main },
        timestamp: stated.take("timestamp").unwrap_or_else(|| started_at(opening, entries)),
        processing_time_ms: stated.take("processing_time_ms").or(derived.took.map(Into::into)),
        processed_at: stated.take("processed_at").or(derived.finished_at),
        model_used: stated.take("model_used").or(derived.model),
        selection_mode: stated.take("selection_mode"),
        is_welcome_message: stated.take("is_welcome_message").unwrap_or_default(),
        message_type: stated.take("message_type").or_else(|| Some(opening.role.message_type().to_owned())),
        status: Some(status),
        more: match options.disclosure {
            Disclosure::Public => Fields::from(&stated.0).without_technical_details(),
            Disclosure::Operator => Fields::from(&stated.0),
        },
        kept: Fields::from(&kept),
        parts,
    };
    let entries = entries.iter().map(|entry| entry.id.clone()).collect();
    Projected { message, entries, places, posted, main_is_last_text }
}

/// Fields of a message that its writer stated.
struct Stated(Object);

impl Stated {
    fn take<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        serde_json::from_value(self.0.shift_remove(key)?).ok()
    }
}

/// The fields that the entries' origins state, and those that only operators see. Later entries know better.
fn stated_fields(entries: &[Entry], disclosure: Disclosure) -> (Object, Object) {
    let (mut fields, mut kept) = (Object::new(), Object::new());
    for mark in entries.iter().filter_map(|entry| entry.mark.as_ref()) {
        fields.extend(mark.message.clone());
        if disclosure == Disclosure::Operator {
            kept.extend(mark.hidden.message.clone());
        }
    }
    for key in kept.keys() {
        fields.shift_remove(key);
    }
    (fields, kept)
}

/// What entries of Banyan's own say about a message.
#[derive(Default)]
struct Derived {
    took: Option<i64>,
    finished_at: Option<String>,
    model: Option<String>,
}

impl Derived {
    fn of(opening: &Opening, entries: &[Entry], status: Status) -> Self {
        if opening.role == Speaker::User {
            return Self::default();
        }
        let model = assistants(entries).map(|message| &message.model).rfind(|model| !model.is_empty());
        let ended = entries.iter().rev().find_map(Entry::time).filter(|_| status != Status::Streaming);
        let took = ended.zip(opening.asked_at).map(|(end, start)| end.saturating_sub(start));
        Self { took: took.filter(|ms| *ms >= 0), finished_at: ended.map(iso), model: model.cloned() }
    }
}

fn status(role: Speaker, entries: &[Entry], standing: Standing) -> Status {
    match (role, standing) {
        (Speaker::User, _) => return Status::Complete,
        (_, Standing::Running) => return Status::Streaming,
        (_, Standing::Failed) => return Status::Error,
        (_, Standing::Abandoned) => return Status::Interrupted,
        (_, Standing::Over) => {}
    }
    let last = entries.iter().rev().find_map(|entry| Some((entry, assistant(entry)?)));
    ended_as(last.map(|(entry, message)| (message.stop_reason, entry.mark.is_some())))
}

/// How an answer ended that nobody works on any more: by why the model stopped last, and whether that came in as a whole message.
pub(crate) fn ended_as(last: Option<(StopReason, bool)>) -> Status {
    match last {
        Some((StopReason::Aborted, _)) => Status::Cancelled,
        Some((StopReason::Error, _)) => Status::Error,
        // The model waited for a function and was not heard of again. A writer of whole messages would have said so.
        Some((StopReason::FunctionCall, false)) => Status::Interrupted,
        Some((StopReason::FunctionCall | StopReason::End | StopReason::Length, _)) | None => Status::Complete,
    }
}

fn assistants(entries: &[Entry]) -> impl DoubleEndedIterator<Item = &AssistantMessage> {
    entries.iter().filter_map(assistant)
}

fn assistant(entry: &Entry) -> Option<&AssistantMessage> {
    match &entry.body {
        Body::Message(message) => match &**message {
            AgentMessage::Assistant(message) => Some(message),
            _ => None,
        },
        _ => None,
    }
}

fn started_at(opening: &Opening, entries: &[Entry]) -> String {
    iso(entries.iter().find_map(Entry::time).unwrap_or(opening.time))
}

/// The text of a question; an empty one when it has an empty text, none when it has no text at all.
fn question_text(entries: &[Entry], parts: &[Part]) -> Option<String> {
    let is_text = |block: &banyan_model::ContentBlock| matches!(block, banyan_model::ContentBlock::Text(_));
    let has_text = entries.iter().any(|entry| match &entry.body {
        Body::Message(message) => message.content().iter().any(is_text),
        _ => false,
    });
    joined_text(parts).or(if has_text { Some(String::new()) } else { None })
}

fn last_text(parts: &[Part]) -> Option<String> {
    last_text_at(parts).and_then(|at| match &parts[at] {
        Part::Text(part) => Some(part.text.clone()),
        _ => None,
    })
}

/// Which part is the last text.
pub(crate) fn last_text_at(parts: &[Part]) -> Option<usize> {
    parts.iter().rposition(|part| matches!(part, Part::Text(_)))
}
