//! What an entry is, as far as can be told without its body.

use banyan_model::{EntryKind, Role};

/// What an entry is, as far as can be told without its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum NodeKind {
    /// A user's message.
    User,
    /// An assistant's message.
    Assistant,
    /// A function's result.
    FunctionResult,
    /// A message of an application's own type.
    CustomMessage,
    /// Data beside the conversation.
    CustomEntry,
    /// Nothing of it but its id could be read.
    Lost,
}

impl NodeKind {
    /// The kind of a message with this role.
    pub const fn of_role(role: Role) -> Self {
        match role {
            Role::User => Self::User,
            Role::Assistant => Self::Assistant,
            Role::FunctionResult => Self::FunctionResult,
            Role::Custom => Self::CustomMessage,
        }
    }

    /// The role, for messages.
    pub const fn role(self) -> Option<Role> {
        match self {
            Self::User => Some(Role::User),
            Self::Assistant => Some(Role::Assistant),
            Self::FunctionResult => Some(Role::FunctionResult),
            Self::CustomMessage => Some(Role::Custom),
            Self::CustomEntry | Self::Lost => None,
        }
    }

    /// True for messages, whose number is counted.
    pub const fn is_message(self) -> bool {
        self.role().is_some()
    }

    /// The contract's word for it.
    pub const fn entry_kind(self) -> EntryKind {
        match self {
            Self::CustomEntry => EntryKind::Custom,
            _ => EntryKind::Message,
        }
    }
}
