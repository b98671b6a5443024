//! What is put into the index.

use banyan_model::{CommitNo, EntryId, Object, Role, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its session.
    pub session_id: SessionId,
    /// The session's number.
    pub session: SessionNo,
    /// Its id.
    pub entry_id: EntryId,
    /// Who speaks; nobody in an application's own entry.
    pub role: Option<Role>,
    /// When, in milliseconds since 1970.
    pub timestamp: i64,
    /// Whether it is on the active path.
    pub standing: Standing,
    /// How many entries come before it on its path.
    pub place: u64,
    /// What it says.
    pub text: String,
    /// The functions that it calls or has the result of.
    pub tools: Vec<String>,
}

/// Whether an entry is on the active path of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is.
    Active,
    /// It is on another branch.
    Aside,
}

/// The number by which the index knows one incarnation of a session. Numbers are small, so that a set of them is too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionNo(pub u64);

/// What the index remembers of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Its number.
    pub number: SessionNo,
    /// Which incarnation of the session it is.
    pub born: String,
    /// Where the active path ended when the standings of its entries were noted.
    pub leaf: Option<EntryId>,
    /// How many entries the active path had then.
    pub path: u64,
    /// What its metadata is found by, as [`labels_of`] tells it.
    pub labels: Labels,
    /// Everything that was committed up to here is in the index.
    pub commit: CommitNo,
    /// The last commit of the session when it was looked at. What was committed in between may be in the index already.
    pub seen: CommitNo,
    /// Where its inherited entries are found, when they are not in the index once more.
    pub base: Option<Base>,
}

/// The session in which what a fork inherits is found: its active path, up to the fork point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// That session.
    pub session_id: SessionId,
    /// Which incarnation of it.
    pub born: String,
    /// The place of the fork point.
    pub upto: u64,
    /// How many sessions were asked one after another when the fork was indexed: 1 when the base has all by itself.
    pub links: u64,
}

/// All that a session's metadata is found by, as a number to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels(u64);

/// Two sessions of which this is the same are found by the same metadata.
pub fn labels_of(metadata: Option<&Object>) -> Labels {
    let mut labels = labels(metadata);
    labels.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    for label in labels {
        hasher.update(&(label.len() as u64).to_le_bytes());
        hasher.update(label.as_bytes());
    }
    let mut number = [0; 8];
    hasher.finalize_xof().fill(&mut number);
    Labels(u64::from_le_bytes(number))
}

const ACTIVE: u64 = 1;

/// Who speaks, as a bit. An application's own entry has one too.
pub(crate) fn role_bit(role: Option<Role>) -> u64 {
    match role {
        Some(Role::User) => 1 << 1,
        Some(Role::Assistant) => 1 << 2,
        Some(Role::FunctionResult) => 1 << 3,
        Some(Role::Custom) => 1 << 4,
        None => 1 << 5,
    }
}

pub(crate) fn role_of(flags: u64) -> Option<Role> {
    [Role::User, Role::Assistant, Role::FunctionResult, Role::Custom]
        .into_iter()
        .find(|role| flags & role_bit(Some(*role)) != 0)
}

pub(crate) fn is_active(flags: u64) -> bool {
    flags & ACTIVE != 0
}

impl Document {
    pub(crate) fn flags(&self) -> u64 {
        let active = match self.standing {
            Standing::Active => ACTIVE,
            Standing::Aside => 0,
        };
        role_bit(self.role) | active
    }
}

/// Names an entry of a session among all.
pub(crate) fn key(session: SessionNo, entry: &EntryId) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&session.0.to_le_bytes());
    hasher.update(entry.as_str().as_bytes());
    let mut key = [0; 16];
    hasher.finalize_xof().fill(&mut key);
    key
}

/// A function's name as it is compared.
pub(crate) fn tool_term(tool: &str) -> String {
    short(tool.to_lowercase())
}

/// What a session's metadata is found by: each pair, and each directory above the one it works in.
pub(crate) fn labels(metadata: Option<&Object>) -> Vec<String> {
    let pairs = metadata.into_iter().flatten();
    let mut labels: Vec<String> = pairs.map(|(key, value)| pair_label(key, value)).collect();
    if let Some(Value::String(cwd)) = metadata.and_then(|metadata| metadata.get("cwd")) {
        let cwd = path_of(cwd);
        let above = cwd.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| at);
        labels.extend(above.chain([cwd.len()]).take(MOST_DIRECTORIES).map(|end| inside_label(&cwd[..end])));
    }
    labels
}

/// So many directories are noted, from the root on.
const MOST_DIRECTORIES: usize = 64;

pub(crate) fn pair_label(key: &str, value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    short(format!("={key}\u{0}{value}"))
}

pub(crate) fn workspace_label(directory: &str) -> String {
    inside_label(&path_of(directory))
}

fn inside_label(path: &str) -> String {
    short(format!("/{path}"))
}

/// A path as it is compared: with `/`, and without one at its end.
fn path_of(path: &str) -> String {
    let path = path.replace('\\', "/");
    path.trim_end_matches('/').to_owned()
}

/// A long text is known by its hash.
fn short(text: String) -> String {
    if text.len() <= 256 { text } else { format!("#{}", blake3::hash(text.as_bytes()).to_hex()) }
}
