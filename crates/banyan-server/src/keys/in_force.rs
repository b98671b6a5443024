//! The record that keys are in force, in a file of its own beside the keys: which ones, by id and checksum. It is why a key
//! file that is gone, older or of another directory lets in no one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::checked_line;

const VERSION: u32 = 1;

/// Keys by id, each with the checksum of its line.
pub(super) type KeyList = BTreeMap<String, String>;

/// What the directory records about its keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum InForce {
    /// There is no record: keys were never in force, or only before there was this record.
    Unrecorded,
    /// No keys are in force: the directory was opened on purpose.
    Open,
    /// These keys are in force, and no others.
    Keys(KeyList),
    /// There is a record that cannot be read, and why.
    Unreadable(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u32,
    in_force: bool,
    keys: KeyList,
}

/// The text of a record. `None` for one that cannot be written.
pub(super) fn encode(in_force: &InForce) -> Option<Vec<u8>> {
    let (in_force, keys) = match in_force {
        InForce::Open => (false, KeyList::new()),
        InForce::Keys(keys) => (true, keys.clone()),
        InForce::Unrecorded | InForce::Unreadable(_) => return None,
    };
    checked_line::encode(&Record { version: VERSION, in_force, keys }).ok()
}

/// The record of a text.
pub(super) fn decode(text: &[u8]) -> InForce {
    match checked_line::decode::<Record>(text) {
        Ok(Record { version: VERSION, in_force: true, keys }) => InForce::Keys(keys),
        Ok(Record { version: VERSION, in_force: false, keys }) if keys.is_empty() => InForce::Open,
        Ok(_) => InForce::Unreadable("it is of a version that this build does not know".to_owned()),
        Err(reason) => InForce::Unreadable(reason),
    }
}
