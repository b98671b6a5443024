//! Random calls. A step names sessions and entries by number; what it asks for depends on what there is.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::model::{Model, Session};
use super::words::*;

/// One random thing to do.
#[derive(Clone, Debug)]
pub enum Step {
    Create { title: Option<u8>, owner: Option<u8> },
    Ensure { name: u8, owner: Option<u8> },
    Append { session: u8, body: Body, parent: Pick, id: Option<u8>, expected_leaf: Pick, origin: Option<u8> },
    AppendMany { session: u8, count: u8, parent: Pick },
    Replace { session: u8, entry: Pick, text: u8, blocks: u8, expected: Option<u8>, origin: Option<u8> },
    Grow { session: u8, entry: Pick, text: u8 },
    Extend { session: u8, entry: Pick, text: u8, block: Option<u8>, expected: Option<u8>, origin: Option<u8> },
    SetLeaf { session: u8, entry: Pick },
    Fork { session: u8, entry: Pick, title: Option<u8> },
    Delete { session: u8 },
    SetMeta { session: u8, title: Option<u8>, owner: Option<u8> },
    SetStatus { session: u8, status: u8, reason: Option<u8> },
    Attach { session: u8, bytes: u8 },
    Detach { session: u8, attachment: u8 },
    Check { session: u8, limit: u8 },
    Reopen,
    Kill,
}

/// What an append carries.
#[derive(Clone, Debug)]
pub enum Body {
    User(u8),
    Assistant(u8),
    Result(u8),
    Custom(u8),
    Showing(u8),
}

/// Which entry.
#[derive(Clone, Debug)]
pub enum Pick {
    /// None named, or the newest where one must be.
    Newest,
    Number(u8),
    Unknown,
}

pub fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..most)
}

fn step() -> impl Strategy<Value = Step> {
    use prop::option::weighted;
    let few = || 0..4_u8;
    let some = || weighted(0.3, 0..4_u8);
    prop_oneof![
        2 => (some(), some()).prop_map(|(title, owner)| Step::Create { title, owner }),
        1 => (few(), some()).prop_map(|(name, owner)| Step::Ensure { name, owner }),
        10 => (few(), body(), pick(6, 3, 1), weighted(0.3, 0..6_u8), pick(8, 1, 0), some())
            .prop_map(|(session, body, parent, id, expected_leaf, origin)| Step::Append { session, body, parent, id, expected_leaf, origin }),
        2 => (few(), 0..4_u8, pick(6, 3, 1)).prop_map(|(session, count, parent)| Step::AppendMany { session, count, parent }),
        3 => (few(), pick(6, 4, 1), 0..7_u8, 0..3_u8, some(), some())
            .prop_map(|(session, entry, text, blocks, expected, origin)| Step::Replace { session, entry, text, blocks, expected, origin }),
        3 => (few(), pick(8, 3, 0), 0..7_u8).prop_map(|(session, entry, text)| Step::Grow { session, entry, text }),
        8 => (few(), pick(8, 3, 1), 0..7_u8, weighted(0.2, 0..3_u8), some(), some())
            .prop_map(|(session, entry, text, block, expected, origin)| Step::Extend { session, entry, text, block, expected, origin }),
        2 => (few(), pick(1, 6, 1)).prop_map(|(session, entry)| Step::SetLeaf { session, entry }),
        4 => (few(), pick(4, 4, 1), some()).prop_map(|(session, entry, title)| Step::Fork { session, entry, title }),
        1 => few().prop_map(|session| Step::Delete { session }),
        2 => (few(), some(), some()).prop_map(|(session, title, owner)| Step::SetMeta { session, title, owner }),
        2 => (few(), few(), some()).prop_map(|(session, status, reason)| Step::SetStatus { session, status, reason }),
        2 => (few(), few()).prop_map(|(session, bytes)| Step::Attach { session, bytes }),
        1 => (few(), few()).prop_map(|(session, attachment)| Step::Detach { session, attachment }),
        2 => (few(), 1..4_u8).prop_map(|(session, limit)| Step::Check { session, limit }),
        1 => Just(Step::Reopen),
        1 => Just(Step::Kill),
    ]
}

fn body() -> impl Strategy<Value = Body> {
    let text = || 0..7_u8;
    prop_oneof![
        3 => text().prop_map(Body::User),
        4 => text().prop_map(Body::Assistant),
        1 => text().prop_map(Body::Result),
        1 => text().prop_map(Body::Custom),
        1 => (0..4_u8).prop_map(Body::Showing),
    ]
}

fn pick(newest: u32, number: u32, unknown: u32) -> impl Strategy<Value = Pick> {
    prop_oneof![newest => Just(Pick::Newest), number => (0..30_u8).prop_map(Pick::Number), unknown.max(1) => Just(match unknown {
        0 => Pick::Newest,
        _ => Pick::Unknown,
    })]
}

fn a_text(number: u8) -> String {
    match number {
        0 => String::new(),
        1 => "a".to_owned(),
        2 => "ab".to_owned(),
        3 => "\u{1f333}\"\\\n\u{1}".to_owned(),
        4 => "so long that it is stored elsewhere when asked to ".repeat(4),
        5 => "z".repeat(700),
        other => other.to_string(),
    }
}

impl Step {
    /// The call that this step makes; `None` for what is not a call.
    pub fn request(&self, model: &Model) -> Option<(&'static str, Value)> {
        Some(match self {
            Self::Create { title, owner } => {
                ("create", with([("title", title.map(a_title)), ("metadata", owner.map(owned))]))
            }
            Self::Ensure { name, owner } => {
                let request =
                    [("session_id", Some(json!(format!("mine/{name}")))), ("metadata", owner.map(owned))];
                ("ensure", with(request))
            }
            Self::Append { session, body, parent, id, expected_leaf, origin } => {
                let (session_id, session) = named(model, *session);
                let (field, body) = body.json(session);
                let request = [
                    ("session_id", Some(session_id)),
                    (field, Some(body)),
                    ("parent_id", parent.optional(session)),
                    ("entry_id", id.map(|id| json!(format!("e{id}")))),
                    ("expected_leaf", expected_leaf.optional(session)),
                    ("origin", origin.map(owned)),
                ];
                ("append", with(request))
            }
            Self::AppendMany { session, count, parent } => {
                let (session_id, session) = named(model, *session);
                let messages: Vec<Value> = (0..*count).map(|n| user(&a_text(n))).collect();
                let request = [
                    ("session_id", Some(session_id)),
                    ("messages", Some(json!(messages))),
                    ("parent_id", parent.optional(session)),
                ];
                ("append-many", with(request))
            }
            Self::Replace { session, entry, text: number, blocks, expected, origin } => {
                let (session_id, session) = named(model, *session);
                let content = match blocks {
                    0 => json!([]),
                    1 => text(&a_text(*number)),
                    _ => {
                        json!([{"type": "thinking", "text": a_text(*number)}, {"type": "text", "text": a_text(*number)}])
                    }
                };
                let request = [
                    ("session_id", Some(session_id)),
                    ("entry_id", Some(entry.required(session))),
                    ("content", Some(content)),
                    ("expected_revision", expected.map(|revision| json!(revision))),
                    ("origin", origin.map(owned)),
                ];
                ("update-message", with(request))
            }
            Self::Grow { session, entry, text } => {
                let (session_id, session) = named(model, *session);
                let entry_id = entry.required(session);
                let found = session.and_then(|session| Some(&session.entries[session.find(&entry_id)?]));
                let mut content = found.map_or(json!([]), |entry| entry["message"]["content"].clone());
                if let Some(block) = content
                    .as_array_mut()
                    .and_then(|blocks| blocks.iter_mut().find(|block| block.get("text").is_some()))
                {
                    block["text"] = json!(format!("{}{}", block["text"].as_str().expect("a text"), a_text(*text)));
                }
                if content.is_null() {
                    content = json!([]);
                }
                ("update-message", json!({"session_id": session_id, "entry_id": entry_id, "content": content}))
            }
            Self::Extend { session, entry, text, block, expected, origin } => {
                let (session_id, session) = named(model, *session);
                let request = [
                    ("session_id", Some(session_id)),
                    ("entry_id", Some(entry.required(session))),
                    ("text", Some(json!(a_text(*text)))),
                    ("block", block.map(|block| json!(block))),
                    ("expected_revision", expected.map(|revision| json!(revision))),
                    ("origin", origin.map(owned)),
                ];
                ("extend-message", with(request))
            }
            Self::SetLeaf { session, entry } => {
                let (session_id, session) = named(model, *session);
                ("set-active-leaf", json!({"session_id": session_id, "entry_id": entry.required(session)}))
            }
            Self::Fork { session, entry, title } => {
                let (session_id, session) = named(model, *session);
                let request = [
                    ("session_id", Some(session_id)),
                    ("entry_id", Some(entry.required(session))),
                    ("title", title.map(a_title)),
                ];
                ("fork", with(request))
            }
            Self::Delete { session } => ("delete", json!({"session_id": named(model, *session).0})),
            Self::SetMeta { session, title, owner } => {
                let request = [
                    ("session_id", Some(named(model, *session).0)),
                    ("title", title.map(a_title)),
                    ("metadata", owner.map(owned)),
                ];
                ("set-meta", with(request))
            }
            Self::SetStatus { session, status, reason } => {
                let status = ["idle", "working", "done", "error"][usize::from(*status)];
                let request = [
                    ("session_id", Some(named(model, *session).0)),
                    ("status", Some(json!(status))),
                    ("reason", reason.map(a_title)),
                ];
                ("set-status", with(request))
            }
            Self::Attach { session, bytes } => {
                let data = base64(&vec![*bytes; 50 * usize::from(*bytes)]);
                let request =
                    json!({"session_id": named(model, *session).0, "name": "n", "mime": "m", "data": data});
                ("put-attachment", request)
            }
            Self::Detach { session, attachment } => {
                let (session_id, session) = named(model, *session);
                let id = an_attachment(session, *attachment)
                    .map_or(json!("a_none"), |meta| meta["attachment_id"].clone());
                ("delete-attachment", json!({"session_id": session_id, "attachment_id": id}))
            }
            Self::Check { .. } | Self::Reopen | Self::Kill => return None,
        })
    }
}

impl Body {
    fn json(&self, session: Option<&Session>) -> (&'static str, Value) {
        match self {
            Self::User(text) => ("message", user(&a_text(*text))),
            Self::Assistant(text) => ("message", assistant(&a_text(*text))),
            Self::Result(text) => ("message", result("c", &a_text(*text))),
            Self::Custom(text) => ("custom", json!({"custom_type": "t", "data": {"text": a_text(*text)}})),
            Self::Showing(number) => {
                let id =
                    an_attachment(session, *number).map_or(json!("a_none"), |meta| meta["attachment_id"].clone());
                let block = json!({"type": "file", "attachment_id": id, "name": "n", "mime": "m", "size": 1});
                ("message", json!({"role": "user", "content": [block], "timestamp": 1}))
            }
        }
    }
}

impl Pick {
    fn optional(&self, session: Option<&Session>) -> Option<Value> {
        match self {
            Self::Newest => None,
            _ => Some(self.required(session)),
        }
    }

    fn required(&self, session: Option<&Session>) -> Value {
        let entries = session.map_or(&[][..], |session| &session.entries);
        let found = match self {
            Self::Newest => entries.last(),
            Self::Number(number) => entries.get(usize::from(*number) % entries.len().max(1)),
            Self::Unknown => None,
        };
        found.map_or(json!("nothing"), |entry| entry["id"].clone())
    }
}

/// The session of a number, newest first, or one that does not exist.
pub fn named(model: &Model, number: u8) -> (Value, Option<&Session>) {
    let mut sessions: Vec<&Session> = model.sessions.values().collect();
    sessions.sort_by_key(|session| std::cmp::Reverse(session.life()));
    match sessions.get(usize::from(number) % sessions.len().clamp(1, 4)) {
        Some(session) => (session.meta["session_id"].clone(), Some(session)),
        None => (json!("nobody"), None),
    }
}

fn an_attachment(session: Option<&Session>, number: u8) -> Option<&Value> {
    let attachments = &session?.attachments;
    attachments.get(usize::from(number) % attachments.len().max(1)).map(|(meta, _)| meta)
}

fn a_title(number: u8) -> Value {
    json!(format!("title {number}"))
}

fn owned(number: u8) -> Value {
    json!({"owner": number})
}

/// An object of the fields that are there.
fn with<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let there = fields.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?)));
    Value::Object(there.collect::<Map<_, _>>())
}
