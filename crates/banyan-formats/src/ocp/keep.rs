//! A context as a session keeps it: what it says in the session's metadata, what was done as custom entries.

use banyan_model::{CustomEntry, EntryId, Error, Json, Object, Revision, SessionId, SessionMeta};
use serde_json::Value;

use super::action::Action;
use super::date::Instant;
use super::read::{Fallback, Received, read_fields};

/// The key of a session's metadata that names its context. Sessions are found by it.
pub const CONTEXT_ID: &str = "ocp.context_id";
/// The key of a session's metadata with all else of its context.
pub const OCP: &str = "ocp";
/// The custom type of entries that hold an action.
pub const ACTION: &str = "ocp.action";

/// Keys within `ocp` that are not the context's own.
const GIVEN_ID: &str = "given_id";
const EXTRA: &str = "extra";
const LAST_ACTION: &str = "last_action";
const UNDATED: &str = "undated";

/// The key within an action's metadata that names the entry which it tells. Whoever sends it back sends nothing new.
const MARK: &str = "banyan_entry";

/// What a session's metadata says about its context.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// The context, without its history.
    pub received: Received,
    /// The entry of the newest action.
    pub last_action: Option<EntryId>,
}

impl Kept {
    /// What metadata says; none when the session has no context.
    pub fn of(metadata: Option<&Object>) -> Option<Self> {
        let metadata = metadata?;
        let context_id = metadata.get(CONTEXT_ID)?.as_str()?;
        let mut fields = metadata.get(OCP).and_then(Value::as_object).cloned().unwrap_or_default();
        let mut own = |key: &str| fields.shift_remove(key);
        let given_id = own(GIVEN_ID).and_then(|id| Some(id.as_str()?.to_owned()));
        let last_action = own(LAST_ACTION).and_then(|id| Some(EntryId::from(id.as_str()?)));
        let undated = own(UNDATED) == Some(Value::Bool(true));
        let extra = match own(EXTRA) {
            Some(Value::Object(extra)) => extra,
            _ => Object::new(),
        };
        let _ = (own("context_id"), own("history"));
        let fallback = Fallback { context_id: Some(context_id), agent_type: None };
        let mut received = read_fields(fields, fallback, 0);
        received.ignored.clear();
        Some(Self { received: Received { given_id, extra, undated, ..received }, last_action })
    }

    /// Puts it into metadata, in the place of what is there.
    pub fn put_into(&self, metadata: &mut Object) {
        let Received { context, given_id, extra, undated, .. } = &self.received;
        let mut fields = match serde_json::to_value(context) {
            Ok(Value::Object(fields)) => fields,
            _ => Object::new(),
        };
        fields.shift_remove("history");
        fields.retain(|_, value| !value.is_null());
        let mut own = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(key.to_owned(), value);
            }
        };
        own(GIVEN_ID, given_id.clone().map(Value::String));
        own(EXTRA, (!extra.is_empty()).then(|| Value::Object(extra.clone())));
        own(LAST_ACTION, self.last_action.as_ref().map(|id| Value::from(id.as_str())));
        own(UNDATED, undated.then_some(Value::Bool(true)));
        metadata.insert(CONTEXT_ID.to_owned(), Value::from(context.context_id.as_str()));
        metadata.insert(OCP.to_owned(), Value::Object(fields));
    }

    /// The session of a context that there is none for yet. Its entries come beside it.
    pub fn session(&self, session_id: SessionId, now_ms: i64) -> SessionMeta {
        let context = &self.received.context;
        let mut metadata = Object::new();
        self.put_into(&mut metadata);
        let ms = |text: &str| Instant::of(text).map_or(now_ms, Instant::ms).clamp(0, now_ms);
        let created_at = ms(&context.created_at);
        SessionMeta {
            session_id,
            title: context.current_goal.clone().unwrap_or_default(),
            description: context.context_summary.clone().unwrap_or_default(),
            status: banyan_model::SessionStatus::Idle,
            status_reason: None,
            metadata: Some(metadata),
            forked_from: None,
            message_count: 0,
            created_at,
            updated_at: ms(&context.last_updated).max(created_at),
        }
    }
}

/// The entry that an action is kept in. It is always the same for the same action, so that nothing is taken twice.
pub fn action_id(session_id: &SessionId, action: &Action) -> EntryId {
    let mut hasher = blake3::Hasher::new_derive_key("banyan 2026 the entry of an action of an OCP context");
    hasher.update(&action.key()).update(session_id.as_str().as_bytes());
    EntryId::from(format!("e_{}", &hasher.finalize().to_hex()[..32]))
}

/// The entry that an action says it tells, when it came from here.
pub fn mark_of(action: &Action) -> Option<EntryId> {
    action.metadata.get(MARK)?.as_str().map(EntryId::from)
}

/// Names the entry that an action tells.
pub(super) fn mark(action: &mut Action, entry: &EntryId) {
    action.metadata.insert(MARK.to_owned(), Value::from(entry.as_str()));
}

/// An action as an entry.
pub fn action_entry(
    id: EntryId,
    parent_id: Option<EntryId>,
    action: &Action,
    now_ms: i64,
) -> Result<CustomEntry, Error> {
    Ok(CustomEntry {
        id,
        parent_id,
        timestamp: Instant::of(&action.timestamp).map_or(now_ms, Instant::ms).clamp(0, now_ms),
        revision: Revision(0),
        origin: None,
        custom_type: ACTION.to_owned(),
        data: Json::of(action)?,
    })
}
