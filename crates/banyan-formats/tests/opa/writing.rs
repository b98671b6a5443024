//! What a written archive holds.

use std::io::Read;

use banyan_formats::opa::*;
use banyan_model::*;
use serde_json::json;

use crate::given::*;

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn id(number: u8) -> EntryId {
    EntryId::from(format!("e_0199aaaabbbb7ccc8ddd0123456789{number:02x}"))
}

fn image() -> ContentBlock {
    ContentBlock::Image(ImageBlock { mime: "image/png".into(), data: PNG.into(), attachment_id: None })
}

fn user(content: Vec<ContentBlock>, timestamp: i64) -> AgentMessage {
    AgentMessage::User(UserMessage { content, timestamp })
}

fn assistant(content: Vec<ContentBlock>, timestamp: i64) -> AgentMessage {
    serde_json::from_value(json!({"role": "assistant", "content": content, "model": "m", "provider": "p",
        "stop_reason": "function_call", "usage": {"input": 3}, "timestamp": timestamp}))
    .unwrap()
}

/// A session with something of everything.
pub(crate) fn session() -> Session {
    let report = b"%PDF-1.4 a report".to_vec();
    let meta = attachment(AttachmentId::from("a_1"), "My report.pdf", "application/pdf", &report);
    let call = json!({"type": "function_call", "id": "c1", "function_id": "f", "arguments": {"big": 1}});
    let thinking = json!({"type": "thinking", "text": "let me see", "signature": "s"});
    let mut session = Session::new(vec![
        (
            id(1),
            user(vec![ContentBlock::text("Look"), image(), ContentBlock::File(meta.file_block())], 1000),
            None,
        ),
        (
            id(2),
            assistant(
                vec![
                    serde_json::from_value(thinking).unwrap(),
                    ContentBlock::text("I do"),
                    serde_json::from_value(call).unwrap(),
                ],
                2000,
            ),
            None,
        ),
        (
            id(3),
            serde_json::from_value(
                json!({"role": "function_result", "function_call_id": "c1", "function_id": "f",
                "content": [{"type": "text", "text": "r"}, {"type": "image", "mime": "image/png", "data": PNG}],
                "details": {"exit": 1}, "is_error": true, "timestamp": 3000}),
            )
            .unwrap(),
            None,
        ),
        (
            id(4),
            serde_json::from_value(
                json!({"role": "custom", "custom_type": "note", "content": [], "timestamp": 4000}),
            )
            .unwrap(),
            None,
        ),
        (id(5), user(vec![ContentBlock::text("And now?")], 5000), None),
    ]);
    session.attachments.push((meta, report));
    session
}

#[test]
fn a_session_becomes_an_archive() {
    let (bytes, written) = session().written(Options::default());
    let archive = open(&bytes).unwrap();
    assert!(archive.remarks().is_empty(), "{:?}", archive.remarks());
    assert_eq!(archive.prompt(), "And now?");
    let attribute = |name| archive.manifest().get(name).unwrap().to_owned();
    assert_eq!(attribute("Manifest-Version"), "1.0");
    assert_eq!(attribute("OPA-Version"), "0.1");
    assert_eq!(attribute("Prompt-File"), "prompt.md");
    assert_eq!(attribute("Schema-Extensions"), EXTENSION_URI);
    let (png, pdf) = (&written.files[2].0, &written.files[3].0);
    assert_eq!(*png, format!("session/attachments/{}.png", &written.files[2].2[..16]));
    assert_eq!(
        history(&bytes),
        json!({
            "opa_version": "0.1",
            "session_id": "0199aaaa-bbbb-7ccc-8ddd-0123456789ab",
            "created_at": "2026-03-01T10:00:00Z",
            "updated_at": "2026-03-01T10:01:40Z",
            "banyan": {"prompt": {"entry": id(5), "timestamp": 5000}},
            "messages": [
                {"id": "1", "role": "user", "timestamp": "1970-01-01T00:00:01Z", "metadata": {"banyan": {"entry": id(1)}}, "content": [
                    {"type": "text", "text": "Look"},
                    {"type": "image", "source": {"type": "attachment", "path": png}},
                    {"type": "file", "source": {"type": "attachment", "path": pdf}, "name": "My report.pdf"},
                ]},
                {"id": "2", "role": "assistant", "timestamp": "1970-01-01T00:00:02Z",
                 "metadata": {"banyan": {"entry": id(2),
                    "message": {"model": "m", "provider": "p", "stop_reason": "function_call", "usage": {"input": 3}},
                    "thinking": [{"at": 0, "text": "let me see", "signature": "s"}]}},
                 "content": [{"type": "text", "text": "I do"}, {"type": "tool_use", "id": "c1", "name": "f", "input": {"big": 1}}]},
                {"id": "3", "role": "tool", "timestamp": "1970-01-01T00:00:03Z",
                 "metadata": {"banyan": {"entry": id(3), "message": {"function_id": "f", "details": {"exit": 1}}}},
                 "content": [{"type": "tool_result", "tool_use_id": "c1", "is_error": true, "content": [
                    {"type": "text", "text": "r"},
                    {"type": "image", "source": {"type": "attachment", "path": png}},
                ]}]},
            ],
        })
    );
    assert_eq!((written.messages, written.attachments, written.left_out, written.missing), (3, 2, 1, 0));
    assert_eq!(written.extension, Some(vec!["session.jsonl".to_owned()]));
    let paths: Vec<&str> = written.files.iter().map(|(path, ..)| path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "META-INF/MANIFEST.MF",
            "prompt.md",
            png,
            pdf,
            "session/history.json",
            "META-INF/extensions/banyan-session/session.jsonl",
            "META-INF/extensions/banyan-session/info.json",
        ]
    );
}

#[test]
fn equal_sessions_make_equal_bytes() {
    assert_eq!(session().written(Options::default()).0, session().written(Options::default()).0);
}

#[test]
fn the_records_come_back_while_nothing_visible_was_changed() {
    let session = session();
    let (bytes, _) = session.written(Options::default());
    let archive = open(&bytes).unwrap();
    let extension = archive.extension().unwrap();
    assert_eq!((extension.files.as_slice(), extension.is_true()), (["session.jsonl".to_owned()].as_slice(), true));
    let mut records = String::new();
    archive.read_extension("session.jsonl").unwrap().read_to_string(&mut records).unwrap();
    assert_eq!(records, session.records());

    // Somebody changes a word of the history on the way.
    let files: Vec<(String, Vec<u8>)> =
        archive.files().iter().map(|entry| (entry.path.clone(), file(&bytes, &entry.path))).collect();
    let changed = |change: &dyn Fn(&str, &mut Vec<u8>)| {
        let mut files = files.clone();
        files.iter_mut().for_each(|(path, bytes)| change(path, bytes));
        let files: Vec<(&str, &[u8])> =
            files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
        let bytes = zip(&files);
        open(&bytes).unwrap().extension().unwrap().changed.clone()
    };
    assert_eq!(changed(&|_, _| {}), [""; 0]);
    assert_eq!(
        changed(&|path, bytes| if path == "session/history.json" {
            bytes.push(b' ')
        }),
        ["session/history.json"]
    );
    assert_eq!(
        changed(&|path, bytes| if path == "prompt.md" {
            bytes.push(b'!')
        }),
        ["prompt.md"]
    );
}

#[test]
fn a_plain_archive_has_no_records_and_still_says_nearly_everything() {
    let session = session();
    let (bytes, written) = session.written(Options { plain: true, sign: None });
    assert_eq!(written.extension, None);
    let archive = open(&bytes).unwrap();
    assert!(archive.extension().is_none());
    assert_eq!(archive.manifest().get("Schema-Extensions"), None);
    let back = Session::imported(&bytes);
    assert_eq!(back.meta.session_id, session.meta.session_id);
    // The note has no place in a history; everything else is as it was, the ids of attachments apart.
    let without_note: Vec<_> = session.entries.iter().filter(|(entry, ..)| *entry != id(4)).collect();
    assert_eq!(back.entries.len(), without_note.len());
    for ((entry, message, _), (old_entry, old_message, _)) in back.entries.iter().zip(without_note) {
        assert_eq!(entry, old_entry);
        assert_eq!(without_attachment_ids(message), without_attachment_ids(old_message));
    }
}

#[test]
fn the_prompt_is_never_empty() {
    for prompt in [Prompt::GoOn, Prompt::Text(String::new()), Prompt::Text(" \n".into())] {
        let head = Head::of(&session().meta);
        let mut writer = Writer::new(Vec::new(), head, &prompt, Options::default()).unwrap();
        writer.history(|_| Ok(())).unwrap();
        let (bytes, _) = writer.finish().unwrap();
        let archive = open(&bytes).unwrap();
        assert!(!archive.prompt().trim().is_empty());
        assert!(taken(&archive).0.is_empty(), "and does not come back as a message");
    }
}

#[test]
fn a_last_question_that_a_file_would_not_keep_stays_in_the_history() {
    for text in ["\u{feff}", "\u{feff}why?", "why\0"] {
        let question = AgentMessage::User(UserMessage { content: vec![ContentBlock::text(text)], timestamp: 7 });
        let session = Session::new(vec![(id(0), question.clone(), None)]);
        let back = Session::imported(&session.written(Options { plain: true, sign: None }).0);
        let found: Vec<_> = back.entries.iter().map(|(entry, message, _)| (entry, message)).collect();
        assert_eq!(found, [(&id(0), &question)], "{text:?}");
    }
}

#[test]
fn sessions_with_other_ids_get_a_uuid() {
    let mut session = session();
    session.meta.session_id = SessionId::from("my own id");
    let (bytes, _) = session.written(Options::default());
    let id = history(&bytes)["session_id"].as_str().unwrap().to_owned();
    assert_eq!(id.len(), 36);
    assert_eq!(&id[14..15], "4");
    session.meta.session_id = SessionId::from("F47AC10B-58cc-4372-a567-0e02b2c3d479");
    let (bytes, _) = session.written(Options::default());
    assert_eq!(history(&bytes)["session_id"], "f47ac10b-58cc-4372-a567-0e02b2c3d479");
}

#[test]
fn what_is_no_file_of_a_session_is_refused_by_the_writer() {
    let head = Head::of(&session().meta);
    let mut writer = Writer::new(Vec::new(), head.clone(), &Prompt::GoOn, Options::default()).unwrap();
    for path in ["../x", "META-INF/x", "prompt.md", "session/history.json", "/x", "a/"] {
        assert!(writer.data(path, &mut &b"x"[..]).is_err(), "{path}");
    }
    writer.data("data/x.csv", &mut &b"1,2"[..]).unwrap();
    assert!(writer.data("data/x.csv", &mut &b"1,2"[..]).is_err());
    for name in ["../x", "info.json", "", "a//b"] {
        assert!(writer.extension(name, &mut &b"x"[..]).is_err(), "{name}");
    }
    writer.extension("blobs/ab/cd", &mut &b"x"[..]).unwrap();
    let mut meta = attachment(AttachmentId::from("a_1"), "x", "text/plain", b"right");
    assert!(writer.attachment(&meta, &mut &b"wrong"[..]).is_err());
    meta.sha256.clear();
    assert!(writer.attachment(&meta, &mut &b"right"[..]).is_err());
    let mut writer = Writer::new(Vec::new(), head, &Prompt::GoOn, Options { plain: true, sign: None }).unwrap();
    assert!(writer.extension("session.jsonl", &mut &b"x"[..]).is_err());
}

#[test]
fn an_origin_that_somebody_made_up_does_not_reach_outside() {
    let mut session = session();
    let evil = json!({"opa": {"paths": ["../../evil.png", "META-INF/MANIFEST.MF"], "raw":
        "{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"path\":\"../evil\"}]}", "was": "x"}});
    session.entries[0].2 = evil.as_object().cloned();
    let (bytes, written) = session.written(Options::default());
    assert!(written.files.iter().all(|(path, ..)| !path.contains("evil")));
    open(&bytes).unwrap();
}
