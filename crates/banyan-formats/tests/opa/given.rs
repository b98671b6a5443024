//! Archives made by hand, sessions to write, and what is read back.

use std::io::{Cursor, Read, Write};
use std::path::PathBuf;

use banyan_formats::opa::{Error, *};
use banyan_model::*;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::path::EntryPath;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use serde_json::{Value, json};

pub(crate) const MANIFEST: &str = "Manifest-Version: 1.0\r\nOPA-Version: 0.1\r\n\r\n";

pub(crate) fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/opa")
}

pub(crate) fn sample(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(name)).unwrap()
}

/// A ZIP file with these entries, whatever their names.
pub(crate) fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipArchiveWriter::new(Vec::new());
    for (name, bytes) in entries {
        let path = EntryPath::verbatim(name.as_bytes());
        let (mut entry, config) =
            zip.new_file(path).compression_method(CompressionMethod::DEFLATE).start().unwrap();
        let mut data = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
        data.write_all(bytes).unwrap();
        let (encoder, descriptor) = data.finish().unwrap();
        encoder.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    zip.finish().unwrap()
}

/// A sound archive with these entries besides manifest and prompt.
pub(crate) fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut all = vec![("META-INF/MANIFEST.MF", MANIFEST.as_bytes()), ("prompt.md", b"Hello")];
    all.extend(entries);
    zip(&all)
}

/// A sound archive with these messages.
pub(crate) fn with_messages(messages: &Value) -> Vec<u8> {
    with_history(&json!({"opa_version": "0.1", "session_id": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "created_at": "2026-03-01T10:00:00Z", "messages": messages}))
}

pub(crate) fn with_history(history: &Value) -> Vec<u8> {
    archive(&[("session/history.json", history.to_string().as_bytes())])
}

pub(crate) fn open(bytes: &[u8]) -> Result<Archive<Cursor<&[u8]>>, Error> {
    Archive::open(Cursor::new(bytes), &Policy::default())
}

pub(crate) fn refusal(bytes: &[u8]) -> Refusal {
    match open(bytes) {
        Ok(archive) => panic!("not refused: {archive:?}"),
        Err(error) => error.refusal().unwrap_or_else(|| panic!("{error:?}")).clone(),
    }
}

/// The entries that an archive makes, each attachment under its suggested id, the prompt last; and what became of it.
pub(crate) fn taken(archive: &Archive<Cursor<&[u8]>>) -> (Vec<Imported>, Report) {
    let mut messages = archive.messages(|file| Some(file.attachment_id())).unwrap();
    let mut entries: Vec<Imported> = messages.by_ref().map(Result::unwrap).collect();
    entries.extend(messages.prompt());
    (entries, messages.report().clone())
}

/// A session as a store would have it: entries, attachments with their bytes, and what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub meta: SessionMeta,
    pub entries: Vec<(EntryId, AgentMessage, Option<Object>)>,
    pub attachments: Vec<(AttachmentMeta, Vec<u8>)>,
}

pub(crate) fn meta(id: SessionId, metadata: Option<Object>) -> SessionMeta {
    SessionMeta {
        session_id: id,
        title: "A title".into(),
        description: String::new(),
        status: SessionStatus::Idle,
        status_reason: None,
        metadata,
        forked_from: None,
        message_count: 0,
        created_at: 1_772_359_200_000,
        updated_at: 1_772_359_300_000,
    }
}

impl Session {
    pub(crate) fn new(entries: Vec<(EntryId, AgentMessage, Option<Object>)>) -> Self {
        let id = SessionId::from("s_0199aaaabbbb7ccc8ddd0123456789ab");
        Self { meta: meta(id, None), entries, attachments: Vec::new() }
    }

    /// What an import makes of an archive.
    pub(crate) fn imported(bytes: &[u8]) -> Self {
        let archive = open(bytes).unwrap();
        let mut metadata = Object::new();
        metadata.insert("opa".into(), archive.session_metadata().into());
        let (entries, _) = taken(&archive);
        let attachments = archive.attachments().map(|file| {
            let mut bytes = Vec::new();
            archive.read(&file.path).unwrap().read_to_end(&mut bytes).unwrap();
            (attachment(file.attachment_id(), file.name(), file.mime(), &bytes), bytes)
        });
        Self {
            attachments: attachments.collect(),
            meta: meta(archive.session_id(), Some(metadata)),
            entries: entries
                .into_iter()
                .map(|entry| (entry.entry_id, entry.message, Some(entry.origin)))
                .collect(),
        }
    }

    /// The session as an archive, its last question as the prompt.
    pub(crate) fn written(&self, options: Options<'_>) -> (Vec<u8>, Written) {
        let entries: Vec<Entry<'_>> = self
            .entries
            .iter()
            .map(|(entry_id, message, origin)| Entry { entry_id, message, origin: origin.as_ref() })
            .collect();
        let last = entries.last().copied().and_then(Prompt::of_last);
        let shown = &entries[..entries.len() - usize::from(last.is_some())];
        let prompt = last.unwrap_or(Prompt::GoOn);
        let plain = options.plain;
        let mut writer = Writer::new(Vec::new(), Head::of(&self.meta), &prompt, options).unwrap();
        for entry in shown {
            writer.prepare(*entry).unwrap();
        }
        for (meta, bytes) in &self.attachments {
            writer.attachment(meta, &mut bytes.as_slice()).unwrap();
        }
        let history = |history: &mut HistoryWriter<'_>| shown.iter().try_for_each(|entry| history.write(*entry));
        writer.history(history).unwrap();
        if !plain {
            writer.extension("session.jsonl", &mut self.records().as_bytes()).unwrap();
        }
        writer.finish().unwrap()
    }

    /// The session's own records, as the caller of a writer would give them.
    pub(crate) fn records(&self) -> String {
        let lines = self.entries.iter().map(|(id, message, origin)| {
            json!({"id": id, "message": message, "origin": origin}).to_string() + "\n"
        });
        lines.collect()
    }
}

pub(crate) fn attachment(id: AttachmentId, name: &str, mime: &str, bytes: &[u8]) -> AttachmentMeta {
    use sha2::Digest;
    AttachmentMeta {
        attachment_id: id,
        session_id: SessionId::from("s"),
        name: name.into(),
        mime: mime.into(),
        size: bytes.len() as u64,
        sha256: sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
        created_at: 0,
    }
}

/// One file of an archive, whole.
pub(crate) fn file(bytes: &[u8], path: &str) -> Vec<u8> {
    let archive = Archive::examine(Cursor::new(bytes), &Limits::default()).unwrap();
    let mut content = Vec::new();
    archive.read(path).unwrap().read_to_end(&mut content).unwrap();
    content
}

pub(crate) fn history(bytes: &[u8]) -> Value {
    serde_json::from_slice(&file(bytes, "session/history.json")).unwrap()
}

/// A message without the ids of attachments, which every store gives out anew.
pub(crate) fn without_attachment_ids(message: &AgentMessage) -> Value {
    fn strip(blocks: &mut Value) {
        for block in blocks.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            block.remove("attachment_id");
            block.get_mut("content").into_iter().for_each(strip);
        }
    }
    let mut value = serde_json::to_value(message).unwrap();
    strip(&mut value["content"]);
    value
}
