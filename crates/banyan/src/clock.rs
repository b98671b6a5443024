//! Time and randomness, which the rules never look up themselves.

use std::time::{SystemTime, UNIX_EPOCH};

use banyan_core::born::Born;
use banyan_core::decide::Ids;
use banyan_model::{AttachmentId, EntryId, SessionId};
use uuid::Uuid;

/// Milliseconds since the epoch.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// New ids, from UUIDv7.
#[derive(Clone, Copy, Debug, Default)]
pub struct FreshIds;

impl Ids for FreshIds {
    fn session(&mut self) -> SessionId {
        SessionId::from_uuid(Uuid::now_v7())
    }

    fn entry(&mut self) -> EntryId {
        EntryId::from_uuid(Uuid::now_v7())
    }

    fn attachment(&mut self) -> AttachmentId {
        AttachmentId::from_uuid(Uuid::now_v7())
    }

    fn born(&mut self) -> Born {
        Born(*Uuid::now_v7().as_bytes())
    }
}
