//! What an entry holds, whatever it is made into.

use banyan_model::{AgentMessage, CustomPayload, Raw};

/// What an entry holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A message.
    Message(Box<AgentMessage>),
    /// An application's own data.
    Custom(CustomPayload),
    /// What is stored is not a message. It keeps its place, so that one entry never hides the others.
    Unreadable,
}

impl Body {
    /// What is stored as a message, or as an application's own data.
    pub(crate) fn stored(message: Option<&Raw<AgentMessage>>, custom: Option<&CustomPayload>) -> Self {
        match (message.map(Raw::parse), custom) {
            (Some(Ok(message)), _) => Self::Message(Box::new(message)),
            (None, Some(custom)) => Self::Custom(custom.clone()),
            _ => Self::Unreadable,
        }
    }
}
