//! What another instance puts here as it is, by `session::store::*`: no news, and the last one about a thing decides.

use banyan_model::{
    AgentMessage, CustomEntry, EntryId, Error, Json, MessageEntry, Origin, Raw, Revision, Role, SessionEntry,
    SessionId, SessionMeta,
};
use serde::{Deserialize, Serialize};

use crate::blobs::BlobRef;
use crate::born::Born;

/// The file begins with things that another instance, or an import, puts. Its first line, so that the file tells whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// The true id, for files whose name does not tell it.
    pub session_id: SessionId,
    /// Which incarnation of the id this is.
    pub born: Born,
    /// Whether an import puts them, of which nobody sees anything before its last record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub import: bool,
}

/// What the session is known by, replacing all of it but the number of messages, which is counted here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetaPut {
    /// All of it.
    pub meta: SessionMeta,
}

/// An entry, new or in place of the one of the same id.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryPut {
    /// The entry.
    pub entry_id: EntryId,
    /// What it follows, which may be put later.
    pub parent_id: Option<EntryId>,
    /// When it was taken.
    pub timestamp: i64,
    /// How often it has changed.
    pub revision: Revision,
    /// Who caused it.
    pub origin: Option<Origin>,
    /// Long strings that are stored elsewhere.
    pub blobs: Vec<BlobRef>,
    /// What it says.
    pub body: PutBody,
}

/// What an entry that was put says.
#[derive(Clone, Debug, PartialEq)]
pub enum PutBody {
    /// A message.
    Message {
        /// Its role, so that a reader need not look inside.
        role: Role,
        /// The message.
        message: Raw<AgentMessage>,
    },
    /// Data beside the conversation.
    Custom {
        /// What kind of data it is.
        custom_type: String,
        /// The data.
        data: Json,
    },
}

/// The active leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafPut {
    /// The leaf, which may be put later; none takes it away.
    pub entry_id: Option<EntryId>,
}

const ROLES: [Role; 4] = [Role::User, Role::Assistant, Role::FunctionResult, Role::Custom];

/// What is looked at of a message that is known to be one.
#[derive(Deserialize)]
struct Spoken {
    role: Role,
}

impl EntryPut {
    /// The record that puts an entry. Refused when its message is none.
    pub fn of(entry: SessionEntry) -> Result<Self, Error> {
        Self::with_role(entry, |message| Ok(message.parse()?.role()))
    }

    /// The same for an entry whose message was written by this program, and need not be read to its end.
    pub fn vouched(entry: SessionEntry) -> Result<Self, Error> {
        let unread =
            |error: serde_json::Error| Error::invalid_request(format!("the message has no role: {error}"));
        Self::with_role(entry, |message| {
            // The role is written first.
            let first = ROLES.into_iter().find(|role| {
                let rest =
                    message.get().strip_prefix("{\"role\":\"").and_then(|rest| rest.strip_prefix(role.as_str()));
                rest.is_some_and(|rest| rest.starts_with('"'))
            });
            match first {
                Some(role) => Ok(role),
                None => Ok(serde_json::from_str::<Spoken>(message.get()).map_err(unread)?.role),
            }
        })
    }

    fn with_role(
        entry: SessionEntry,
        role: impl FnOnce(&Raw<AgentMessage>) -> Result<Role, Error>,
    ) -> Result<Self, Error> {
        Ok(match entry {
            SessionEntry::Message(MessageEntry { id, parent_id, timestamp, revision, origin, message }) => {
                let role = role(&message).map_err(|error| Error::invalid_request(error.message))?;
                let body = PutBody::Message { role, message };
                Self { entry_id: id, parent_id, timestamp, revision, origin, blobs: Vec::new(), body }
            }
            SessionEntry::Custom(CustomEntry {
                id,
                parent_id,
                timestamp,
                revision,
                origin,
                custom_type,
                data,
            }) => {
                let body = PutBody::Custom { custom_type, data };
                Self { entry_id: id, parent_id, timestamp, revision, origin, blobs: Vec::new(), body }
            }
        })
    }
}
