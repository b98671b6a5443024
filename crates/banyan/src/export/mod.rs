//! Sessions as files: one target a file here, and one line in [`Target`].
//!
//! An export is begun first, which finds the session, and then taken piece by piece, at the pace of whoever takes it. What is
//! written is the session as it was when the export began.

mod html;
mod markdown;
mod ocp_context;
mod opa;
mod session_log;

use std::io;
use std::str::FromStr;
use std::sync::Arc;

use banyan_formats::audit::Facts;
use banyan_formats::redact::{Finding, Redactor};
use banyan_model::{AgentMessage, Error, SessionEntry, SessionId};

pub use banyan_formats::opa::{SigningKey, Written};

use crate::walk::{Walk, Walked};
use crate::{Banyan, WalkOrder};

/// The file of an archive that the session comes back from, branches and all.
pub(crate) const SESSION_RECORDS: &str = "session.jsonl";

/// What a session can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// An OPA archive: one file with its attachments, read back as the same session, and readable for others.
    Opa,
    /// Lines of JSON that are read back as the same session.
    SessionLog,
    /// Markdown, to read and to paste.
    Markdown,
    /// One HTML file, to read.
    Html,
    /// The session as a context of the Open Context Protocol, always without secrets.
    OcpContext,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Opa, Self::SessionLog, Self::Markdown, Self::Html, Self::OcpContext];

    /// What it is called on a command line and in a query.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Opa => "opa",
            Self::SessionLog => "session-log",
            Self::Markdown => "markdown",
            Self::Html => "html",
            Self::OcpContext => "ocp-context",
        }
    }

    /// What it is called on the wire.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Opa => banyan_formats::opa::MEDIA_TYPE,
            Self::SessionLog => banyan_formats::session_log::MEDIA_TYPE,
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::OcpContext => "application/json",
        }
    }

    /// How names of such files end.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Opa => "opa",
            Self::SessionLog => "jsonl",
            Self::Markdown => "md",
            Self::Html => "html",
            Self::OcpContext => "json",
        }
    }

    const fn order(self) -> WalkOrder {
        match self {
            Self::Opa | Self::SessionLog | Self::OcpContext => WalkOrder::Taken,
            Self::Markdown => WalkOrder::PathFirst,
            Self::Html => WalkOrder::Nested,
        }
    }
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|target| target.as_str() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid_request(format!("a session cannot be written as `{name}`; there is {names}"))
        })
    }
}

/// Whether secrets are taken out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redaction {
    /// Everything is written as it is.
    #[default]
    Off,
    /// What looks like a secret is replaced, and listed at the end.
    Secrets,
}

/// Asks for an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportRequest {
    /// The session.
    pub session_id: SessionId,
    /// What it is written as.
    pub target: Target,
    /// Whether secrets are taken out.
    pub redaction: Redaction,
    /// Whether an archive has only what everybody can read, without the session's own records.
    pub plain: bool,
}

/// An export under way.
pub struct Export(Way);

enum Way {
    /// Told step by step.
    Told(Box<Told>),
    /// Written elsewhere, and taken from there.
    Archive(opa::Archive),
}

struct Told {
    source: Source,
    /// None once all of it is written.
    telling: Option<Box<dyn Telling>>,
}

/// How a target tells a session. What it writes is gathered until somebody takes it.
trait Telling: Send {
    /// Tells the next step of the walk.
    fn tell(&mut self, step: Walked) -> io::Result<()>;
    /// What was written since somebody took it.
    fn written(&mut self) -> &mut Vec<u8>;
    /// Ends what is told, and lists what was taken out of it. Gives what is left to take.
    fn end(self: Box<Self>, findings: &[Finding]) -> io::Result<Vec<u8>>;
}

/// What a target is written from.
struct Source {
    banyan: Banyan,
    walk: Walk,
    redactor: Option<Redactor>,
}

impl Banyan {
    /// Begins an export: finds the session, and settles what of it is written.
    pub fn export(&self, request: &ExportRequest) -> Result<Export, Error> {
        self.export_signed(request, None)
    }

    /// The same; an archive is signed with a key, if there is one.
    pub fn export_signed(&self, request: &ExportRequest, key: Option<Arc<SigningKey>>) -> Result<Export, Error> {
        let is_archive = request.target == Target::Opa;
        if !is_archive && (request.plain || key.is_some()) {
            return Err(Error::invalid_request("only an OPA archive can be plain or signed"));
        }
        if is_archive && request.redaction == Redaction::Secrets {
            return Err(Error::invalid_request(
                "secrets cannot be taken out of an OPA archive; session-log, markdown and html can be redacted",
            ));
        }
        let walk = self.walk(&request.session_id, request.target.order())?;
        let redactor = (request.redaction == Redaction::Secrets).then(Redactor::new);
        let mut source = Source { banyan: self.clone(), walk, redactor };
        if let Some(redactor) = &mut source.redactor {
            source.walk.meta = redactor.meta(source.walk.meta);
        }
        let telling: io::Result<Box<dyn Telling>> = match request.target {
            Target::Opa => {
                let archive = opa::begin(self, source.walk, request.plain, key)?;
                return Ok(Export(Way::Archive(archive)));
            }
            Target::SessionLog => session_log::begin(&mut source)?,
            Target::Markdown => markdown::begin(&mut source)?,
            Target::Html => html::begin(&mut source)?,
            Target::OcpContext => Ok(ocp_context::begin(&source)),
        };
        Ok(Export(Way::Told(Box::new(Told { source, telling: Some(telling.map_err(unwritten)?) }))))
    }
}

/// How large a piece is, about.
const PIECE: usize = 64 << 10;

impl Export {
    /// The next piece; none after the last.
    pub fn next_piece(&mut self) -> Result<Option<Vec<u8>>, Error> {
        match &mut self.0 {
            Way::Told(told) => told.next_piece(),
            Way::Archive(archive) => archive.next_piece(),
        }
    }

    /// What an archive holds, once all of it was taken.
    pub fn written(&self) -> Option<&Written> {
        match &self.0 {
            Way::Told(_) => None,
            Way::Archive(archive) => archive.written(),
        }
    }
}

impl Told {
    fn next_piece(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let Some(mut telling) = self.telling.take() else { return Ok(None) };
        while telling.written().len() < PIECE {
            match self.source.next()? {
                Some(step) => telling.tell(step).map_err(unwritten)?,
                None => return telling.end(&self.source.findings()).map(Some).map_err(unwritten),
            }
        }
        let piece = std::mem::take(telling.written());
        self.telling = Some(telling);
        Ok(Some(piece))
    }
}

/// Memory takes what is written to it, so this does not happen.
fn unwritten(error: io::Error) -> Error {
    Error::storage(format!("the export could not be written: {error}"))
}

impl Source {
    /// The next step, without secrets if that was asked for.
    fn next(&mut self) -> Result<Option<Walked>, Error> {
        let step = self.walk.next().transpose()?;
        Ok(match (step, &mut self.redactor) {
            (Some(Walked::Entry { entry, on_path }), Some(redactor)) => {
                Some(Walked::Entry { entry: redactor.entry(entry)?, on_path })
            }
            (step, _) => step,
        })
    }

    /// What was taken out so far.
    fn findings(&self) -> Vec<Finding> {
        self.redactor.as_ref().map(|redactor| redactor.findings().to_vec()).unwrap_or_default()
    }

    /// What is known of the surroundings. A model that the metadata does not name is the first that answered.
    fn facts(&mut self) -> Result<Facts, Error> {
        let mut facts = Facts::of_metadata(self.walk.meta.metadata.as_ref());
        if facts.model.is_none() || facts.provider.is_none() {
            let answered = |entry: &SessionEntry| match entry {
                SessionEntry::Message(entry) => match entry.message.parse() {
                    Ok(AgentMessage::Assistant(message)) => Some((message.model, message.provider)),
                    _ => None,
                },
                SessionEntry::Custom(_) => None,
            };
            if let Some((model, provider)) = self.walk.peek()?.find_map(answered) {
                let named = |name: String| Some(name).filter(|name| !name.is_empty());
                facts.model = facts.model.or(named(model));
                facts.provider = facts.provider.or(named(provider));
            }
        }
        Ok(facts)
    }
}
