//! Sessions to tell: any, and those that a test spells out.

use banyan_formats::audit::Facts;
use banyan_formats::redact::Finding;
use banyan_formats::session_log::{Head, Log, Writer, read};
use banyan_formats::turns::Outlook;
use banyan_model::*;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A session in the hands of a test.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Session {
    pub(crate) meta: SessionMeta,
    pub(crate) leaf: Option<EntryId>,
    pub(crate) entries: Vec<SessionEntry>,
}

impl Session {
    /// The ids of the path that ends in the leaf.
    pub(crate) fn path(&self) -> Vec<EntryId> {
        let mut path = Vec::new();
        let mut at = self.leaf.clone();
        while let Some(id) = at {
            at = self.entries.iter().find(|entry| *entry.id() == id).and_then(|it| it.parent_id().cloned());
            path.insert(0, id);
        }
        path
    }

    /// The session as a log.
    pub(crate) fn log(&self) -> String {
        self.log_with(&[])
    }

    pub(crate) fn log_with(&self, redactions: &[Finding]) -> String {
        let head = Head {
            meta: self.meta.clone(),
            active_leaf: self.leaf.clone(),
            facts: Facts::of_metadata(self.meta.metadata.as_ref()),
            titles: Vec::new(),
            attachments: Vec::new(),
        };
        let path = self.path();
        let mut writer = Writer::new(Vec::new(), &head).unwrap();
        for entry in &self.entries {
            match path.contains(entry.id()) {
                true => writer.on_path(entry).unwrap(),
                false => writer.off_path(entry).unwrap(),
            }
        }
        let meta = &self.meta;
        let outlook = Outlook::of(meta.status, meta.status_reason.clone(), meta.updated_at, meta.updated_at);
        String::from_utf8(writer.finish(&outlook, redactions).unwrap()).unwrap()
    }

    pub(crate) fn of(log: Log) -> Self {
        Self { meta: log.meta, leaf: log.active_leaf, entries: log.entries }
    }
}

/// A log, read.
pub(crate) fn taken(log: &str) -> Log {
    read(log.as_bytes()).unwrap()
}

pub(crate) fn meta(id: &str, metadata: Value) -> SessionMeta {
    SessionMeta {
        session_id: id.into(),
        title: "A title".to_owned(),
        description: String::new(),
        status: SessionStatus::Idle,
        status_reason: None,
        metadata: metadata.as_object().cloned(),
        forked_from: None,
        message_count: 0,
        created_at: 1_717_800_000_000,
        updated_at: 1_717_800_009_000,
    }
}

/// A chain of entries, a second apart, each a message or `{"custom_type", "data"}`.
pub(crate) fn chain(contents: &[Value]) -> Vec<SessionEntry> {
    let mut entries: Vec<SessionEntry> = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let parent_id = entries.last().map(|entry| entry.id().clone());
        let (id, timestamp) = (EntryId::from(format!("e{at}")), 1_717_800_000_000 + at as i64 * 1000);
        let mut content = content.clone();
        entries.push(match content.get("role").is_some() {
            true => {
                if content.get("timestamp").is_none() {
                    content["timestamp"] = json!(timestamp);
                }
                let message: AgentMessage = serde_json::from_str(&content.to_string()).unwrap();
                let message = Raw::of(&message).unwrap();
                let (revision, origin) = (Revision(0), None);
                SessionEntry::Message(MessageEntry { id, parent_id, timestamp, revision, origin, message })
            }
            false => SessionEntry::Custom(CustomEntry {
                id,
                parent_id,
                timestamp,
                revision: Revision(0),
                origin: None,
                custom_type: content["custom_type"].as_str().unwrap().to_owned(),
                data: Json::of(&content["data"]).unwrap(),
            }),
        });
    }
    entries
}

pub(crate) fn session(contents: &[Value]) -> Session {
    let entries = chain(contents);
    let leaf = entries.last().map(|entry| entry.id().clone());
    Session { meta: meta("s_1", json!({"cwd": "/repo"})), leaf, entries }
}

pub(crate) fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}]})
}

pub(crate) fn assistant(content: Value, stop_reason: &str) -> Value {
    json!({"role": "assistant", "content": content, "model": "m-1", "provider": "p", "stop_reason": stop_reason})
}

pub(crate) fn call(id: &str) -> Value {
    json!({"type": "function_call", "id": id, "function_id": "read", "arguments": {"path": "a.rs"}})
}

pub(crate) fn result(id: &str, text: &str) -> Value {
    json!({"role": "function_result", "function_call_id": id, "function_id": "read", "is_error": false,
        "content": [{"type": "text", "text": text}]})
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z\"\\\\\n\u{7f}é💭]{0,12}".prop_map(String::from), any::<String>()]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("a number", |it| it.is_finite()).prop_map(Value::from),
        text().prop_map(Value::from)
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..3)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect()))
        ]
    })
}

fn object() -> impl Strategy<Value = Object> {
    prop::collection::vec((text(), value()), 0..3).prop_map(|pairs| pairs.into_iter().collect())
}

fn block() -> impl Strategy<Value = ContentBlock> {
    let id = || prop::sample::select(vec!["c1", "c2", ""]).prop_map(str::to_owned);
    prop_oneof![
        4 => text().prop_map(|text| ContentBlock::Text(TextBlock { text })),
        2 => (text(), prop::option::of(text()))
            .prop_map(|(text, signature)| ContentBlock::Thinking(ThinkingBlock { text, signature })),
        3 => (id(), text(), value()).prop_map(|(id, function_id, arguments)| {
            ContentBlock::FunctionCall(FunctionCallBlock { id, function_id, arguments: Json::of(&arguments).unwrap() })
        }),
        1 => (id(), text(), prop::option::of(any::<bool>())).prop_map(|(function_call_id, text, is_error)| {
            let content = vec![ContentBlock::Text(TextBlock { text })];
            ContentBlock::FunctionResult(FunctionResultBlock { function_call_id, content, is_error })
        }),
        1 => text().prop_map(|mime| ContentBlock::Image(ImageBlock { mime, data: "AAAA".to_owned(), attachment_id: None })),
        1 => text().prop_map(|name| ContentBlock::File(FileBlock {
            attachment_id: "a_1".into(), name, mime: "text/plain".to_owned(), size: 3
        })),
    ]
}

fn stop_reason() -> impl Strategy<Value = StopReason> {
    prop::sample::select(vec![
        StopReason::End,
        StopReason::Length,
        StopReason::FunctionCall,
        StopReason::Aborted,
        StopReason::Error,
    ])
}

fn message() -> impl Strategy<Value = AgentMessage> {
    let content = || prop::collection::vec(block(), 0..4);
    let usage = (prop::option::of(any::<u64>()), prop::option::of(0.0..9.0_f64))
        .prop_map(|(input, cost_usd)| Usage { input, cost_usd, ..Usage::default() });
    let id = || prop::sample::select(vec!["c1", "c2", ""]).prop_map(str::to_owned);
    prop_oneof![
        3 => (content(), any::<i64>())
            .prop_map(|(content, timestamp)| AgentMessage::User(UserMessage { content, timestamp })),
        3 => (content(), text(), stop_reason(), prop::option::of(usage), prop::option::of(text()), prop::option::of(value()), any::<i64>())
            .prop_map(|(content, model, stop_reason, usage, words, agent, timestamp)| {
                AgentMessage::Assistant(AssistantMessage {
                    content,
                    provider: model.clone(),
                    model,
                    stop_reason,
                    native_stop_reason: words.clone(),
                    error_kind: None,
                    error_message: words.clone(),
                    usage,
                    warnings: words.map(|words| vec![words]),
                    // A null is read as none, whoever writes it.
                    agent: agent.filter(|agent| !agent.is_null()).map(|agent| Json::of(&agent).unwrap()),
                    timestamp,
                })
            }),
        3 => (id(), text(), content(), value(), any::<bool>(), any::<i64>()).prop_map(
            |(function_call_id, function_id, content, details, is_error, timestamp)| {
                let details = Json::of(&details).unwrap();
                AgentMessage::FunctionResult(FunctionResultMessage {
                    function_call_id, function_id, content, details, is_error, timestamp,
                })
            }
        ),
        1 => (text(), content(), prop::option::of(text()), any::<i64>()).prop_map(
            |(custom_type, content, display, timestamp)| {
                AgentMessage::Custom(CustomMessage { custom_type, content, display, details: None, timestamp })
            }
        ),
    ]
}

/// What an entry holds, before it has a place.
#[derive(Clone, Debug)]
enum Held {
    Message(AgentMessage),
    Custom(String, Value),
}

fn held() -> impl Strategy<Value = Held> {
    let context =
        prop::collection::vec(value(), 0..2).prop_map(|sources| json!({"cwd": "/w", "sources": sources}));
    prop_oneof![
        6 => message().prop_map(Held::Message),
        1 => (text(), value()).prop_map(|(custom_type, data)| Held::Custom(custom_type, data)),
        1 => prop_oneof![context, value()].prop_map(|data| Held::Custom("context".to_owned(), data)),
    ]
}

/// Any session: any tree, any leaf.
pub(crate) fn any_session() -> impl Strategy<Value = Session> {
    let entry = (
        held(),
        any::<prop::sample::Index>(),
        any::<i64>(),
        0..3_u64,
        prop::option::of(object().prop_map(Origin::from)),
    );
    let entries = prop::collection::vec(entry, 0..10);
    let words = (text(), text(), prop::option::of(object()));
    (entries, words, any::<prop::sample::Index>(), any::<i64>(), any::<bool>()).prop_map(
        |(drafts, (title, description, metadata), leaf, created_at, has_leaf)| {
            let mut entries: Vec<SessionEntry> = Vec::new();
            for (at, (held, parent, timestamp, revision, origin)) in drafts.into_iter().enumerate() {
                // Mostly the entry before, sometimes any other, sometimes none.
                let parent = match parent.index(4 + at) {
                    0..4 => at.checked_sub(1),
                    other => (other - 4).checked_sub(1),
                };
                let parent_id = parent.map(|at| entries[at].id().clone());
                let (id, revision) = (EntryId::from(format!("e {at}")), Revision(revision));
                entries.push(match held {
                    Held::Message(message) => {
                        let message = Raw::of(&message).unwrap();
                        SessionEntry::Message(MessageEntry { id, parent_id, timestamp, revision, origin, message })
                    }
                    Held::Custom(custom_type, data) => {
                        let (data, revision) = (Json::of(&data).unwrap(), Revision(0));
                        SessionEntry::Custom(CustomEntry {
                            id,
                            parent_id,
                            timestamp,
                            revision,
                            origin,
                            custom_type,
                            data,
                        })
                    }
                });
            }
            let leaf = (has_leaf && !entries.is_empty()).then(|| leaf.get(&entries).id().clone());
            let meta = SessionMeta { title, description, metadata, created_at, ..meta("s ü", Value::Null) };
            Session { meta, leaf, entries }
        },
    )
}
