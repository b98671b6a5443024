//! What a store should hold, in the plainest form: maps and lists.
//!
//! Ids that the store gives out are not known before it answers. Until then they are placeholders: `?s` for a
//! session, `?e0`, `?e1`, … for entries, `?a` for an attachment.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

/// A whole store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// By id.
    pub sessions: BTreeMap<String, Session>,
}

/// A session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// Its title, which begins with the name of the worker that made it.
    pub title: String,
    /// Its description.
    pub description: String,
    /// Its status.
    pub status: String,
    /// Why it has this status.
    pub reason: Option<String>,
    /// The caller's labels.
    pub metadata: Option<Value>,
    /// The session that it is a fork of.
    pub forked_from: Option<String>,
    /// The active leaf.
    pub leaf: Option<String>,
    /// All entries, in the order in which they were appended.
    pub entries: Vec<Entry>,
    /// By id.
    pub attachments: BTreeMap<String, Attachment>,
}

/// An entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its id.
    pub id: String,
    /// The entry that it follows.
    pub parent: Option<String>,
    /// How often it changed.
    pub revision: u64,
    /// The message or the custom data.
    pub body: Body,
    /// Where it came from.
    pub origin: Option<Value>,
}

/// What an entry holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A message.
    Message(Value),
    /// `custom_type` and `data`.
    Custom(Value),
}

/// A file.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachment {
    /// Its name.
    pub name: String,
    /// Its media type.
    pub mime: String,
    /// Its bytes, in base64.
    pub data: String,
}

/// The placeholder of a new session.
pub const NEW_SESSION: &str = "?s";
/// The placeholder of a new attachment.
pub const NEW_ATTACHMENT: &str = "?a";

/// The placeholder of a new entry.
pub fn new_entry(at: usize) -> String {
    format!("?e{at}")
}

impl Session {
    /// An entry by its id.
    pub fn entry(&self, id: &str) -> &Entry {
        self.entries.iter().find(|entry| entry.id == id).unwrap_or_else(|| panic!("no entry {id} in {self:?}"))
    }

    /// The entries from the root to one of them.
    pub fn path(&self, to: &str) -> Vec<&Entry> {
        let mut path = Vec::new();
        let mut next = Some(to);
        while let Some(id) = next {
            let entry = self.entry(id);
            path.push(entry);
            next = entry.parent.as_deref();
        }
        path.reverse();
        path
    }

    /// Gives entries other ids.
    pub fn rename_entries(&mut self, names: &HashMap<String, String>) {
        let rename = |id: &mut String| {
            if let Some(name) = names.get(id) {
                id.clone_from(name);
            }
        };
        self.leaf.iter_mut().for_each(rename);
        for entry in &mut self.entries {
            rename(&mut entry.id);
            entry.parent.iter_mut().for_each(rename);
        }
    }

    /// Attachments that messages refer to, on any branch.
    pub fn attachments_in_use(&self) -> BTreeSet<String> {
        self.entries.iter().flat_map(|entry| entry.body.attachments()).collect()
    }
}

impl Body {
    /// Attachments that a message refers to.
    pub fn attachments(&self) -> Vec<String> {
        let Self::Message(message) = self else { return Vec::new() };
        let blocks = message["content"].as_array().into_iter().flatten();
        blocks.filter_map(|block| block["attachment_id"].as_str().map(str::to_owned)).collect()
    }
}

impl Model {
    /// A session that is there.
    pub fn session(&mut self, id: &str) -> &mut Session {
        self.sessions.get_mut(id).unwrap_or_else(|| panic!("no session {id}"))
    }

    /// The sessions whose title says that they belong to one worker.
    pub fn of_worker(&self, worker: &str) -> Self {
        let own = |session: &Session| session.title.split(' ').next() == Some(worker);
        let sessions = self.sessions.iter().filter(|(_, session)| own(session));
        Self { sessions: sessions.map(|(id, session)| (id.clone(), session.clone())).collect() }
    }

    /// The same store with placeholders for every id that the other one does not know.
    #[must_use]
    pub fn in_words_of(&self, other: &Self) -> Self {
        let mut known = BTreeSet::new();
        for session in other.sessions.values() {
            known.extend(session.entries.iter().map(|entry| entry.id.clone()));
            known.extend(session.attachments.keys().cloned());
        }
        let mut sessions = BTreeMap::new();
        for (id, session) in &self.sessions {
            let mut session = session.clone();
            let unknown = session.entries.iter().filter(|entry| !known.contains(&entry.id));
            let names = unknown.enumerate().map(|(at, entry)| (entry.id.clone(), new_entry(at))).collect();
            session.rename_entries(&names);
            let attachments = std::mem::take(&mut session.attachments).into_iter();
            session.attachments = attachments
                .map(|(id, it)| if known.contains(&id) { (id, it) } else { (NEW_ATTACHMENT.to_owned(), it) })
                .collect();
            let id = if other.sessions.contains_key(id) { id.clone() } else { NEW_SESSION.to_owned() };
            assert!(sessions.insert(id, session).is_none(), "more than one session that nobody made");
        }
        Self { sessions }
    }

    /// What differs, session by session, for a person to read.
    pub fn differences(&self, found: &Self) -> String {
        let mut lines = Vec::new();
        let ids: BTreeSet<&String> = self.sessions.keys().chain(found.sessions.keys()).collect();
        for id in ids {
            match (self.sessions.get(id), found.sessions.get(id)) {
                (Some(a), Some(b)) if a == b => {}
                (expected, found) => {
                    let none = Session::default();
                    lines.push(format!("{id} (expected: {}, found: {})", expected.is_some(), found.is_some()));
                    lines.extend(differences(expected.unwrap_or(&none), found.unwrap_or(&none)));
                }
            }
        }
        lines.join("\n")
    }
}

/// What differs in a session: everything but the entries, then the entries that do.
fn differences(expected: &Session, found: &Session) -> Vec<String> {
    let bare = |session: &Session| Session { entries: Vec::new(), ..session.clone() };
    let mut lines = Vec::new();
    if bare(expected) != bare(found) {
        lines.push(format!("  expected {}\n  found    {}", short(&bare(expected)), short(&bare(found))));
    }
    for at in 0..expected.entries.len().max(found.entries.len()) {
        let (expected, found) = (expected.entries.get(at), found.entries.get(at));
        if expected != found {
            lines.push(format!(
                "  entry {at}: expected {}\n  entry {at}: found    {}",
                short(&expected),
                short(&found)
            ));
        }
    }
    lines
}

/// A thing as text, without the middle of a long one.
fn short(thing: &impl std::fmt::Debug) -> String {
    let text: Vec<char> = format!("{thing:?}").chars().collect();
    if text.len() < 800 {
        return text.into_iter().collect();
    }
    let part = |chars: &[char]| chars.iter().collect::<String>();
    format!("{} … {}", part(&text[..400]), part(&text[text.len() - 400..]))
}
