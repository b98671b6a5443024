//! An archive that was checked whole, and what is in it.

use std::collections::HashMap;
use std::io::{Read, Seek};

use banyan_model::{AttachmentId, Object, SessionId};
use serde_json::Value;
use uuid::Uuid;

use super::check;
use super::container::{Container, Content};
use super::error::{Error, Why};
use super::extension::{Extension, FOLDER};
use super::identity;
use super::limits::Limits;
use super::manifest::{Manifest, safe_display};
use super::read::Messages;
use super::signature::{Coverage, Form, Signature};

/// An OPA archive. Whoever has one knows that it was read to its end: every entry has the bytes that the directory promises,
/// no name leads outside, and the signature, if there is one, holds.
pub struct Archive<R> {
    pub(crate) zip: Container<R>,
    pub(crate) limits: Limits,
    pub(crate) manifest: Manifest,
    pub(crate) files: Vec<File>,
    pub(crate) by_path: HashMap<String, usize>,
    pub(crate) prompt: String,
    pub(crate) history: Option<History>,
    /// The history itself, when it is small.
    pub(crate) kept: Option<Vec<u8>>,
    pub(crate) signature: Signature,
    pub(crate) extension: Option<Extension>,
    pub(crate) remarks: Vec<String>,
}

/// What a file in an archive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The manifest, or a part of the signature.
    Papers,
    /// The prompt.
    Prompt,
    /// The session's history.
    History,
    /// A file that a message shows, or that lies with those.
    Attachment,
    /// The index of the data.
    Index,
    /// A file of the data, or of no known kind, which counts as data.
    Data,
    /// A file of Banyan's own extension.
    Own,
    /// A file of somebody else's extension.
    Extension,
}

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path in the archive.
    pub path: String,
    /// How many bytes it has.
    pub size: u64,
    /// The checksum that it was checked against.
    pub crc32: u32,
    /// What it is.
    pub kind: Kind,
    /// Its media type, as the index gives it.
    pub content_type: Option<String>,
    /// What the index says of it.
    pub description: Option<String>,
    /// Its SHA-256 in hex, when the check had a use for it.
    pub sha256: Option<String>,
}

impl File {
    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The media type, as far as it is known without reading the file.
    pub fn mime(&self) -> &str {
        self.content_type.as_deref().unwrap_or_else(|| super::mime::by_name(&self.path))
    }

    /// An id for the attachment that is made of it: the same each time, so that importing twice changes nothing.
    pub fn attachment_id(&self) -> AttachmentId {
        let numbers = [self.size.to_string(), self.crc32.to_string()];
        AttachmentId::from_uuid(identity::uuid("attachment", &[&self.path, &numbers[0], &numbers[1]]))
    }
}

/// What `history.json` says besides its messages.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// Where it is in the archive.
    pub path: String,
    /// The session's id, when there is one.
    pub session_id: Option<String>,
    /// When the session was created, as it was written.
    pub created_at: Option<String>,
    /// When it last changed, as it was written.
    pub updated_at: Option<String>,
    /// How many messages there are.
    pub messages: u64,
    /// Whether it is opa-archive's dialect, which has `version` instead of `opa_version`.
    pub is_python: bool,
    /// All fields but the messages, as JSON text, in their order.
    pub fields: Vec<(String, String)>,
}

/// What is accepted beyond the strict reading of the format.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// How much is read.
    pub limits: Limits,
    /// Take archives whose signature is a certificate and a bare signature, as opa-php writes them. The format demands PKCS#7.
    pub bare_signatures: bool,
}

impl<R: Read + Seek + Send> Archive<R> {
    /// Reads an archive to its end and refuses it for whatever is wrong with it. Nothing has to be undone afterwards.
    pub fn open(reader: R, policy: &Policy) -> Result<Self, Error> {
        let archive = Self::examine(reader, &policy.limits)?;
        if let Coverage::Broken { reason } = &archive.signature.coverage {
            return Err(Error::refused(Why::Signature, format!("the signature does not hold: {reason}")));
        }
        if archive.signature.form == Some(Form::Bare) && !policy.bare_signatures {
            let detail = "the signature is not PKCS#7, as the format demands, but a certificate and a bare signature, as opa-php \
                          writes them; it was verified, and is taken only when that is asked for";
            return Err(Error::refused(Why::Signature, detail));
        }
        Ok(archive)
    }

    /// The same, but a signature that does not hold is reported and does not refuse the archive: for those who only verify.
    pub fn examine(reader: R, limits: &Limits) -> Result<Self, Error> {
        check::check(reader, limits)
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The prompt.
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    /// What the history says besides its messages; none when the archive has no history.
    pub fn history(&self) -> Option<&History> {
        self.history.as_ref()
    }

    /// What the signature is worth.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The session's own records, when Banyan wrote the archive and put them in.
    pub fn extension(&self) -> Option<&Extension> {
        self.extension.as_ref()
    }

    /// What is unusual about the archive and no reason to refuse it.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Every file, in the archive's order.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// The files that messages show or may show. They go into the store before the messages.
    pub fn attachments(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.kind == Kind::Attachment)
    }

    /// The file at a path.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.by_path.get(path).and_then(|&at| self.files.get(at))
    }

    /// A file's content, as a stream. Several can be read side by side.
    pub fn read(&self, path: &str) -> Result<Content<'_>, Error> {
        match self.zip.find(path) {
            Some(entry) => self.zip.content_again(entry),
            None => Err(Error::Invalid(format!("the archive has no file `{}`", safe_display(path)))),
        }
    }

    /// A file of the session's own records, by the name that the writer was given.
    pub fn read_extension(&self, name: &str) -> Result<Content<'_>, Error> {
        self.read(&format!("{FOLDER}{name}"))
    }

    /// The messages as entries, in their order. The caller says which attachment was made of which file.
    pub fn messages<'a>(
        &'a self,
        attachment: impl FnMut(&File) -> Option<AttachmentId> + Send + 'a,
    ) -> Result<Messages<'a, R>, Error> {
        Messages::new(self, Box::new(attachment))
    }

    /// The id of the session that the archive is read into, always the same for the same archive.
    pub fn session_id(&self) -> SessionId {
        match self.history.as_ref().and_then(|history| history.session_id.as_deref()) {
            Some(id) => match Uuid::try_parse(id) {
                Ok(uuid) => SessionId::from_uuid(uuid),
                Err(_) => SessionId::from_uuid(identity::uuid("session", &[id])),
            },
            // Without an id the content names the session.
            None => {
                let mut parts: Vec<String> = vec![self.prompt.clone()];
                parts.extend(self.files.iter().map(|file| format!("{} {} {}", file.path, file.size, file.crc32)));
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                SessionId::from_uuid(identity::uuid("archive", &parts))
            }
        }
    }

    /// What no message holds, to be kept as `opa` in the session's metadata, from where a writer takes it again.
    pub fn session_metadata(&self) -> Object {
        let mut opa = Object::new();
        let attributes = self.manifest.attributes.iter();
        let manifest: Object =
            attributes.map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        opa.insert("manifest".into(), manifest.into());
        if let Some(history) = &self.history {
            let (mut extra, mut exact) = (Object::new(), Object::new());
            for (name, text) in &history.fields {
                let known = matches!(name.as_str(), "session_id" | "created_at" | "updated_at");
                match serde_json::from_str::<Value>(text) {
                    Ok(Value::String(value)) if known => drop(opa.insert(name.clone(), value.into())),
                    // A number that would lose digits is kept as text.
                    Ok(value) if super::numbers::are_exact(text) => drop(extra.insert(name.clone(), value)),
                    _ => drop(exact.insert(name.clone(), text.as_str().into())),
                }
            }
            for (key, fields) in [("extra", extra), ("exact", exact)] {
                if !fields.is_empty() {
                    opa.insert(key.into(), fields.into());
                }
            }
        }
        opa
    }
}

impl<R> std::fmt::Debug for Archive<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive")
            .field("manifest", &self.manifest)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}
