//! Why a command did not do what it was asked, how that is said, and how the process ends.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use banyan::model::{Error, ErrorCode};
use banyan::{CallError, LogError, OpenError};
use serde_json::json;

use crate::args::Globals;
use crate::notice::{self, ServedAt};

/// The code of what was typed and cannot be done.
pub(crate) const USAGE: &str = "cli/usage";

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The call was understood, and the answer is no.
    Refused(Refusal),
    /// What was typed cannot be done.
    Usage(Refusal),
    /// The data could not be opened, read or written, or the server that has it not be reached.
    Storage(Refusal),
    /// Damage was found and has been reported.
    Damage,
    /// Nobody reads the output any more.
    ReaderGone,
}

/// What is wrong, for programs and for people.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The contract's word for it.
    pub(crate) code: String,
    /// What was asked and what is wrong.
    pub(crate) message: String,
    /// What to type next; `banyan` stands for how the program was started.
    pub(crate) next: Option<String>,
}

impl Failure {
    /// What was typed cannot be done.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(Refusal { code: USAGE.to_owned(), message: message.into(), next: None })
    }

    /// The call was understood, and the answer is no.
    pub(crate) fn refused(code: &str, message: impl Into<String>) -> Self {
        Self::Refused(Refusal { code: code.to_owned(), message: message.into(), next: None })
    }

    /// The data could not be opened, read or written.
    pub(crate) fn storage(message: impl Into<String>) -> Self {
        Self::trouble(ErrorCode::Storage.as_str(), message)
    }

    /// Something that is needed does not work.
    pub(crate) fn trouble(code: &str, message: impl Into<String>) -> Self {
        Self::Storage(Refusal { code: code.to_owned(), message: message.into(), next: None })
    }

    /// Whether it goes by this code.
    pub(crate) fn is(&self, code: &str) -> bool {
        self.refusal().is_some_and(|refusal| refusal.code == code)
    }

    /// The same, said of something.
    pub(crate) fn about(self, what: &str) -> Self {
        let about = |refusal: Refusal| Refusal { message: format!("{what}: {}", refusal.message), ..refusal };
        match self {
            Self::Refused(refusal) => Self::Refused(about(refusal)),
            Self::Usage(refusal) => Self::Usage(about(refusal)),
            Self::Storage(refusal) => Self::Storage(about(refusal)),
            other @ (Self::Damage | Self::ReaderGone) => other,
        }
    }

    /// There is no such function.
    pub(crate) fn unknown_function(message: String) -> Self {
        let next = Some("banyan call --list".to_owned());
        Self::Usage(Refusal { code: "call/unknown_function".to_owned(), message, next })
    }

    /// A data directory could not be opened.
    pub(crate) fn opening(dir: &Path, error: OpenError) -> Self {
        let place = dir;
        let dir = dir.display();
        match error {
            OpenError::Log(LogError::Locked { owner }) => {
                let owner = owner.trim();
                let told = if owner.is_empty() { String::new() } else { format!(" ({owner})") };
                Self::storage(match notice::read(place, owner) {
                    Some(ServedAt { url, banyan }) => {
                        let version = banyan.map(|version| format!(", Banyan {version}")).unwrap_or_default();
                        format!("{dir} is in use by a server{told}{version}; ask that one with --url {url}")
                    }
                    None => format!("{dir} is in use by another process{told}; stop that one first"),
                })
            }
            OpenError::Session(error) => error.into(),
            error @ (OpenError::Log(_) | OpenError::Index(_)) => {
                Self::storage(format!("{dir} could not be opened: {error}"))
            }
        }
    }

    /// The same failure, with what to type next.
    pub(crate) fn next(mut self, command: impl Into<String>) -> Self {
        if let Self::Refused(refusal) | Self::Usage(refusal) | Self::Storage(refusal) = &mut self {
            refusal.next = Some(command.into());
        }
        self
    }

    /// What there is to say, if anything.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) | Self::Usage(refusal) | Self::Storage(refusal) => Some(refusal),
            Self::Damage | Self::ReaderGone => None,
        }
    }

    /// Says it on standard error.
    pub(crate) fn tell(&self, globals: &Globals) {
        let Some(refusal) = self.refusal() else { return };
        if globals.json {
            complain(&json!({"code": refusal.code, "message": refusal.message}).to_string());
            return;
        }
        match self {
            Self::Usage(_) => complain(&format!("banyan: {}", refusal.message)),
            _ => complain(&format!("banyan: {} ({})", refusal.message, refusal.code)),
        }
        if let Some(next) = &refusal.next {
            complain(&format!("  Try: {}", next.replacen("banyan", &globals.prompt(), 1)));
        }
    }

    /// How the process ends.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::ReaderGone => 0,
            Self::Refused(_) | Self::Damage => 1,
            Self::Usage(_) => 2,
            Self::Storage(_) => 3,
        })
    }
}

/// Writes a line to standard error. A closed one is no reason to stop.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let next = match error.code {
            ErrorCode::NotFound => Some("banyan ls"),
            ErrorCode::EntryNotFound | ErrorCode::ParentNotFound => Some("banyan show SESSION --tree"),
            ErrorCode::AttachmentInUse | ErrorCode::InvalidEntryKind => Some("banyan show SESSION"),
            ErrorCode::InvalidRequest | ErrorCode::DetailsNotSupported | ErrorCode::EmptyBatch => {
                Some("banyan call FUNCTION --schema")
            }
            ErrorCode::InvalidCursor
            | ErrorCode::Conflict
            | ErrorCode::TooLarge
            | ErrorCode::AttachmentTooLarge
            | ErrorCode::Forbidden
            | ErrorCode::Storage => None,
        };
        let refusal = Refusal {
            code: error.code.as_str().to_owned(),
            message: error.message,
            next: next.map(str::to_owned),
        };
        match error.code {
            ErrorCode::Storage => Self::Storage(refusal),
            _ => Self::Refused(refusal),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let message = error.to_string();
        match error {
            CallError::Refused(error) => error.into(),
            CallError::UnknownFunction { .. } => Self::unknown_function(message),
        }
    }
}

/// Output that could not be written.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::storage(format!("the output could not be written: {error}")),
        }
    }
}
