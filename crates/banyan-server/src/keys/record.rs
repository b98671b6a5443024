//! How one key is stored. Every field is written and required, so that nothing is ever read as its default.

use std::collections::BTreeMap;

use banyan::model::Object;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{Key, checked_line};

/// The only version that there is. A record of another one is refused.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u32,
    id: String,
    name: String,
    sessions: Sessions,
    access: KeyAccess,
    #[serde(deserialize_with = "given")]
    requests_per_second: Option<u32>,
    created_at: i64,
    hash: String,
}

/// Which sessions a key reaches. "All" has to be spelled out.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Sessions {
    All,
    With(Object),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KeyAccess {
    Read,
    ReadWrite,
}

/// A missing field is an error, also where null is a value.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    Option::deserialize(deserializer)
}

/// The line of a key.
pub(super) fn encode(key: &Key) -> Result<Vec<u8>, serde_json::Error> {
    checked_line::encode(&Record {
        version: VERSION,
        id: key.id.clone(),
        name: key.name.clone(),
        sessions: if key.scope.is_empty() { Sessions::All } else { Sessions::With(key.scope.clone()) },
        access: if key.read_only { KeyAccess::Read } else { KeyAccess::ReadWrite },
        requests_per_second: key.requests_per_second,
        created_at: key.created_at,
        hash: key.hash.clone(),
    })
}

/// The key of a line, given with its line feed, or why the line is refused.
pub(super) fn decode(line: &[u8]) -> Result<Key, String> {
    let record: Record = checked_line::decode(line).map_err(|reason| newer(line).unwrap_or(reason))?;
    if record.version != VERSION {
        return Err(unknown_version(u64::from(record.version)));
    }
    let scope = match record.sessions {
        Sessions::All => Object::new(),
        Sessions::With(scope) if scope.is_empty() => return Err("its scope is empty".to_owned()),
        Sessions::With(scope) => scope,
    };
    checked(Key {
        id: record.id,
        name: record.name,
        scope,
        read_only: matches!(record.access, KeyAccess::Read),
        requests_per_second: record.requests_per_second,
        created_at: record.created_at,
        hash: record.hash,
    })
}

/// A sound record of another version has fields that this build does not know. Its version says more than they do.
fn newer(line: &[u8]) -> Option<String> {
    let fields: BTreeMap<String, Value> = serde_json::from_slice(line).ok()?;
    let version = fields.get("version")?.as_u64().filter(|version| *version != u64::from(VERSION))?;
    Some(unknown_version(version))
}

fn unknown_version(version: u64) -> String {
    format!("it has version {version}, which this build does not know")
}

/// A key of the first form of the file, which had no checksums: `{"keys":[…]}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    id: String,
    name: String,
    scope: Object,
    read_only: bool,
    /// Left out when there was none.
    requests_per_second: Option<u32>,
    created_at: i64,
    hash: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UncheckedFile {
    keys: Vec<Value>,
}

/// The keys of a file in its first form, each with the text that is kept when it is refused. `None` if the file has another form.
pub(super) fn decode_unchecked(text: &[u8]) -> Option<Vec<(Value, Result<Key, String>)>> {
    let file: UncheckedFile = serde_json::from_slice(text).ok()?;
    let decode = |value: Value| {
        let key = Unchecked::deserialize(&value).map_err(|error| checked_line::reason(&error)).and_then(|key| {
            checked(Key {
                id: key.id,
                name: key.name,
                scope: key.scope,
                read_only: key.read_only,
                requests_per_second: key.requests_per_second,
                created_at: key.created_at,
                hash: key.hash,
            })
        });
        (value, key)
    };
    Some(file.keys.into_iter().map(decode).collect())
}

fn checked(key: Key) -> Result<Key, String> {
    let hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if key.id.len() != 8 || !hex(&key.id) {
        return Err("its id is not 8 hex digits".to_owned());
    }
    if key.hash.len() != 64 || !hex(&key.hash) {
        return Err("its hash is not 64 hex digits".to_owned());
    }
    Ok(key)
}
