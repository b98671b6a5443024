//! Writing an archive, from beginning to end, into anything that takes bytes.
//!
//! The order is fixed, so that equal sessions make equal bytes: the manifest, the prompt, pictures and attachments, the history,
//! data, the session's own records. In a signed archive the manifest is last, because it holds the digests of all the others.

mod head;
mod history;
mod places;

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Read, Write};

use banyan_model::{AgentMessage, AttachmentMeta, ContentBlock, EntryId, Object};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::time::UtcDateTime;
use rawzip::{CompressionMethod, DataDescriptorOutput, ZipArchiveWriter};
use sha2::{Digest, Sha256};

pub use self::head::Head;
pub use self::history::HistoryWriter;
use self::places::{Placed, is_own};
use super::digest::{Counting, hex};
use super::error::Error;
use super::extension::{FOLDER, INFO, Info, Sum};
use super::manifest::{Manifest, safe_display};
use super::mark::Mark;
use super::mime;
use super::path;
use super::signature::{MANIFEST, SIGNATURE, SigningKey};
use super::{HISTORY, PROMPT, PROMPT_FILLER};

/// 1980-01-01, the first day that a ZIP file can name: archives of equal sessions are equal.
const THE_DAY: i64 = 315_532_800;
/// Text is packed quickly; the last few percent would cost several times as long.
const TEXT: u32 = 1;
const BUFFER: usize = 128 << 10;

/// An entry of the session's active path.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its id.
    pub entry_id: &'a EntryId,
    /// The message.
    pub message: &'a AgentMessage,
    /// Where it came from.
    pub origin: Option<&'a Object>,
}

/// What an agent is asked when it runs the archive. Every archive has a prompt, and it is never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// A text of the caller's, which is not a message of the session.
    Text(String),
    /// The session's last message, which nobody has answered yet. It does not go into the history as well.
    Message {
        /// What it says.
        text: String,
        /// Its entry, and its time in milliseconds since 1970; none when it was an archive's prompt before.
        entry: Option<(EntryId, i64)>,
    },
    /// Nothing is asked: a sentence says to go on.
    GoOn,
}

impl Prompt {
    /// The prompt that the last entry of a session is: a question in words that nobody has answered. None when it is
    /// something else, and stays in the history.
    pub fn of_last(entry: Entry<'_>) -> Option<Self> {
        let AgentMessage::User(message) = entry.message else { return None };
        let [ContentBlock::Text(text)] = message.content.as_slice() else { return None };
        if text.text.trim().is_empty()
            || text.text.trim_end() == PROMPT_FILLER.trim_end()
            || text.text.contains('\0')
            // A file that begins with this mark is read without it.
            || text.text.starts_with('\u{feff}')
        {
            return None;
        }
        let mark = Mark::of(entry.origin);
        // A message of somebody's history goes back to where it was.
        if mark.as_ref().is_some_and(|mark| !mark.prompt) {
            return None;
        }
        let was_prompt = mark.is_some_and(|mark| mark.is_made_up("timestamp"));
        let own = (!was_prompt).then(|| (entry.entry_id.clone(), message.timestamp));
        Some(Self::Message { text: text.text.clone(), entry: own })
    }

    fn text(&self) -> &str {
        let text = match self {
            Self::Text(text) | Self::Message { text, .. } => text.as_str(),
            Self::GoOn => PROMPT_FILLER,
        };
        if text.trim().is_empty() { PROMPT_FILLER } else { text }
    }
}

/// How an archive is written.
#[derive(Debug, Default)]
pub struct Options<'a> {
    /// Leave out the session's own records: only what everybody can read.
    pub plain: bool,
    /// Sign it.
    pub sign: Option<&'a SigningKey>,
}

/// What was written, for the one who asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Every file, in order: path, size, and SHA-256 in hex.
    pub files: Vec<(String, u64, String)>,
    /// How many messages the history has.
    pub messages: u64,
    /// How many pictures and files are with it.
    pub attachments: u64,
    /// How many custom messages have no place in a history. The session's own records have them.
    pub left_out: u64,
    /// How many entries of the session are damaged. The session's own records say where; the history has nothing in their place.
    pub damaged: u64,
    /// How many pictures and files could not be found, and are named in words.
    pub missing: u64,
    /// The names of the session's own records; none in a plain archive.
    pub extension: Option<Vec<String>>,
    /// Whose certificate it is signed with.
    pub signed_by: Option<String>,
}

/// Writes an archive.
pub struct Writer<'a, W: Write> {
    zip: ZipArchiveWriter<W>,
    manifest: Manifest,
    head: Head,
    options: Options<'a>,
    placed: Placed,
    names: HashSet<String>,
    /// What everybody sees of it, for the session's own records.
    visible: BTreeMap<String, Sum>,
    written: Written,
}

impl<'a, W: Write> Writer<'a, W> {
    /// Starts an archive with its prompt.
    pub fn new(out: W, mut head: Head, prompt: &Prompt, options: Options<'a>) -> Result<Self, Error> {
        let manifest = head.manifest(options.plain);
        if let Prompt::Message { entry: Some((entry, timestamp)), .. } = prompt {
            head.note_prompt(entry, *timestamp);
        }
        let zip = ZipArchiveWriter::new(out);
        let (placed, mut written) = (Placed::default(), Written::default());
        written.extension = (!options.plain).then(Vec::new);
        let (names, visible) = (HashSet::new(), BTreeMap::new());
        let mut writer = Self { zip, manifest, head, options, placed, names, visible, written };
        if writer.options.sign.is_none() {
            let manifest = writer.manifest.write();
            writer.add(MANIFEST, TEXT, |out| Ok(out.write_all(&manifest)?))?;
        }
        writer.add(PROMPT, TEXT, |out| Ok(out.write_all(prompt.text().as_bytes())?))?;
        Ok(writer)
    }

    /// Looks at an entry before it is written, and writes the pictures that are in it. Every entry of the history is to be
    /// shown before the first attachment and before the history.
    pub fn prepare(&mut self, entry: Entry<'_>) -> Result<(), Error> {
        let mark = Mark::of(entry.origin);
        let wishes = mark.map(|mark| mark.paths).unwrap_or_default();
        self.pictures(entry.message.content(), &mut wishes.iter())
    }

    fn pictures(
        &mut self,
        blocks: &[ContentBlock],
        wishes: &mut std::slice::Iter<'_, String>,
    ) -> Result<(), Error> {
        for block in blocks {
            match block {
                ContentBlock::FunctionResult(result) => self.pictures(&result.content, wishes)?,
                ContentBlock::File(file) => {
                    if let Some(wish) = wishes.next() {
                        self.placed.wish(&file.attachment_id, wish);
                    }
                }
                ContentBlock::Image(image) => {
                    let wish = wishes.next();
                    let Ok(bytes) = STANDARD.decode(&image.data) else { continue };
                    let digest = Sha256::digest(&bytes).into();
                    let wish = wish.map(String::as_str);
                    if let Some(path) = self.placed.place(digest, wish, mime::extension(&image.mime)) {
                        self.written.attachments += 1;
                        self.add(&path, packing(&image.mime), |out| Ok(out.write_all(&bytes)?))?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes an attachment of the session. The same bytes are written once, however many attachments have them.
    pub fn attachment(&mut self, meta: &AttachmentMeta, content: &mut dyn Read) -> Result<(), Error> {
        let digest = places::digest(&meta.sha256)
            .ok_or_else(|| Error::Invalid(format!("the attachment {} has no SHA-256", meta.attachment_id)))?;
        let extension = match mime::extension(&meta.mime) {
            "bin" => places::own_extension(&meta.name),
            known => known,
        };
        let (path, is_new) = self.placed.attachment(&meta.attachment_id, digest, extension);
        if !is_new {
            return Ok(());
        }
        self.written.attachments += 1;
        let found = self.add(&path, packing(&meta.mime), |out| copy(content, out))?;
        if found != digest {
            let (id, found) = (&meta.attachment_id, hex(&found));
            return Err(Error::Invalid(format!(
                "the attachment {id} has the SHA-256 {found} and should have {}",
                meta.sha256
            )));
        }
        Ok(())
    }

    /// Writes the history. Its entries are given one after another, those of the active path and in its order.
    pub fn history(
        &mut self,
        entries: impl FnOnce(&mut HistoryWriter<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let beginning = self.head.beginning();
        // Taken out, so that entries can be placed while the file is open.
        let placed = std::mem::take(&mut self.placed);
        let (mut messages, mut left_out, mut missing) = (0, 0, 0);
        let result = self.add(HISTORY, TEXT, |out| {
            out.write_all(beginning.as_bytes())?;
            let mut history = HistoryWriter::new(out, &placed);
            entries(&mut history)?;
            (messages, left_out, missing) = history.finish()?;
            Ok(out.write_all(b"]}\n")?)
        });
        self.placed = placed;
        (self.written.messages, self.written.left_out, self.written.missing) = (messages, left_out, missing);
        result.map(|_| ())
    }

    /// Writes a file that is no part of the conversation, for example under `data/`.
    pub fn data(&mut self, path: &str, content: &mut dyn Read) -> Result<(), Error> {
        if path::source_flaw(path).is_some() || path.ends_with('/') || is_own(path) {
            return Err(Error::Invalid(format!("`{}` is no path for data", safe_display(path))));
        }
        self.add(path, packing(mime::by_name(path)), |out| copy(content, out))?;
        Ok(())
    }

    /// Writes a file of the session's own records, under a name of the caller's choice.
    pub fn extension(&mut self, name: &str, content: &mut dyn Read) -> Result<(), Error> {
        let path = format!("{FOLDER}{name}");
        if path::flaw(&path).is_some() || path.ends_with('/') || path == INFO {
            return Err(Error::Invalid(format!("`{}` is no name for a record", safe_display(name))));
        }
        let Some(names) = &mut self.written.extension else {
            return Err(Error::Invalid("a plain archive has no records of the session".to_owned()));
        };
        names.push(name.to_owned());
        self.add(&path, TEXT, |out| copy(content, out))?;
        Ok(())
    }

    /// Writes what is left, and says what the archive holds.
    pub fn finish(mut self) -> Result<(W, Written), Error> {
        if self.written.extension.is_some() {
            let files = std::mem::take(&mut self.visible);
            let info = serde_json::to_vec(&Info { version: 1, files }).unwrap_or_default();
            self.add(INFO, TEXT, |out| Ok(out.write_all(&info)?))?;
        }
        if let Some(key) = self.options.sign {
            for (path, _, sha256) in &self.written.files {
                let digest = places::digest(sha256).unwrap_or_default();
                self.manifest.push_digest(path, STANDARD.encode(digest));
            }
            let manifest = self.manifest.write();
            let file = key.signature_file(&manifest);
            let block = key.sign(&file)?;
            for (path, bytes) in [(MANIFEST, manifest), (SIGNATURE, file), (key.entry(), block)] {
                self.add(path, TEXT, |out| Ok(out.write_all(&bytes)?))?;
            }
            self.written.signed_by = Some(key.signer().subject.clone());
        }
        let out = self.zip.finish().map_err(Error::writing)?;
        Ok((out, self.written))
    }

    /// Writes one file, and gives its digest.
    fn add(
        &mut self,
        path: &str,
        level: u32,
        write: impl FnOnce(&mut dyn Write) -> Result<(), Error>,
    ) -> Result<[u8; 32], Error> {
        if !self.names.insert(path.to_owned()) {
            return Err(Error::Invalid(format!("`{}` is written twice", safe_display(path))));
        }
        let file = self.zip.new_file(path).compression_method(CompressionMethod::DEFLATE);
        let (mut entry, _) =
            file.last_modified(UtcDateTime::from_unix(THE_DAY)).start().map_err(Error::writing)?;
        let encoder = DeflateEncoder::new(&mut entry, Compression::new(level));
        let mut out = Counting::new(encoder);
        write(&mut out)?;
        let (encoder, crc, size, digest) = out.finish();
        encoder.finish()?;
        entry.finish(DataDescriptorOutput::new(crc, size)).map_err(Error::writing)?;
        let sha256 = hex(&digest);
        if !path.starts_with("META-INF/") {
            let sum = Sum { size, crc32: crc, sha256: is_own(path).then(|| sha256.clone()) };
            self.visible.insert(path.to_owned(), sum);
        }
        self.written.files.push((path.to_owned(), size, sha256));
        Ok(digest)
    }
}

impl<W: Write> std::fmt::Debug for Writer<'_, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("written", &self.written).finish_non_exhaustive()
    }
}

/// Copies a stream in pieces that are worth a call.
fn copy(content: &mut dyn Read, out: &mut dyn Write) -> Result<(), Error> {
    let mut buffer = vec![0; BUFFER];
    loop {
        match content.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => out.write_all(&buffer[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn packing(mime: &str) -> u32 {
    if mime::is_packable(mime) { TEXT } else { 0 }
}
