//! OPA archives: one made around arbitrary bytes, and everything that can be asked of one.

use std::io::{Cursor, Read, Write};

use banyan_formats::opa::{
    Archive, Entry, Error, Head, HistoryWriter, Imported, Limits, Options, Policy, Prompt, Writer,
};
use banyan_model::{Object, SessionMeta, SessionStatus};
use rawzip::ZipArchiveWriter;

/// Little is read, so that much is tried.
pub fn policy() -> Policy {
    let size = 1 << 20;
    let limits = Limits {
        entries: 64,
        entry_size: size,
        total_size: 4 * size,
        part_size: size,
        prompt_size: size,
        message_size: 1 << 20,
        image_size: size,
        kept_history: 1 << 10,
        ..Limits::default()
    };
    Policy { limits, bare_signatures: true }
}

/// A ZIP file with these entries, not packed.
pub fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipArchiveWriter::new(Vec::new());
    for (name, bytes) in entries {
        let (mut entry, config) = zip.new_file(*name).start().unwrap();
        let mut data = config.wrap(&mut entry);
        data.write_all(bytes).unwrap();
        let (_, descriptor) = data.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    zip.finish().unwrap()
}

/// Reads everything of an archive. What was opened is read without a refusal.
pub fn taken(archive: &Archive<Cursor<&[u8]>>) -> Vec<Imported> {
    for file in archive.files() {
        let mut bytes = Vec::new();
        archive.read(&file.path).unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, file.size);
    }
    let mut messages = archive.messages(|file| Some(file.attachment_id())).unwrap();
    let entries: Vec<Imported> = messages.by_ref().map(Result::unwrap).collect();
    entries.into_iter().chain(messages.prompt()).collect()
}

/// What was read, written again.
pub fn written(archive: &Archive<Cursor<&[u8]>>, entries: &[Imported]) -> Result<Vec<u8>, Error> {
    let mut metadata = Object::new();
    metadata.insert("opa".into(), archive.session_metadata().into());
    let meta = SessionMeta {
        session_id: archive.session_id(),
        title: String::new(),
        description: String::new(),
        status: SessionStatus::Idle,
        status_reason: None,
        metadata: Some(metadata),
        forked_from: None,
        message_count: 0,
        created_at: 0,
        updated_at: 0,
    };
    let entry = |entry: &'_ Imported| (entry.entry_id.clone(), entry.message.clone(), entry.origin.clone());
    let entries: Vec<_> = entries.iter().map(entry).collect();
    let entry = |at: usize| {
        let (entry_id, message, origin) = &entries[at];
        Entry { entry_id, message, origin: Some(origin) }
    };
    let last = entries.len().checked_sub(1).and_then(|last| Prompt::of_last(entry(last)));
    let shown = entries.len() - usize::from(last.is_some());
    let prompt = last.unwrap_or(Prompt::GoOn);
    let mut writer = Writer::new(Vec::new(), Head::of(&meta), &prompt, Options { plain: true, sign: None })?;
    (0..shown).try_for_each(|at| writer.prepare(entry(at)))?;
    writer.history(|history: &mut HistoryWriter<'_>| (0..shown).try_for_each(|at| history.write(entry(at))))?;
    Ok(writer.finish()?.0)
}
