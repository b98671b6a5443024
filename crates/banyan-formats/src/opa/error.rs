//! Why an archive is not read, or not written.

use std::io;

use super::manifest::safe_display;

/// Why an archive is not read, or not written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The archive is refused whole: nothing of it should be taken.
    #[error("{0}")]
    Refused(Refusal),
    /// The bytes could not be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// What was given to a writer, or the key to sign with, is not usable.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// The refusal, when it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    pub(crate) fn refused(why: Why, detail: impl Into<String>) -> Self {
        Self::Refused(Refusal { why, detail: detail.into() })
    }

    /// What went wrong while an entry was read: a damaged entry is the archive's fault, everything else the machine's.
    pub(crate) fn of_entry(name: &str, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput => {
                Self::refused(Why::Damaged, format!("the entry `{}` is damaged: {error}", safe_display(name)))
            }
            _ => Self::Io(error),
        }
    }

    pub(crate) fn of_zip(error: rawzip::Error) -> Self {
        match error.into_kind() {
            rawzip::ErrorKind::IO(error) if error.kind() != io::ErrorKind::UnexpectedEof => Self::Io(error),
            kind => Self::refused(Why::NotAnArchive, format!("the file is not a readable ZIP archive: {kind}")),
        }
    }

    pub(crate) fn writing(error: rawzip::Error) -> Self {
        match error.into_kind() {
            rawzip::ErrorKind::IO(error) => Self::Io(error),
            kind => Self::Invalid(format!("the archive cannot be written: {kind}")),
        }
    }
}

/// An archive that is refused, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Refusal {
    /// The kind of reason, for programs.
    pub why: Why,
    /// The reason, for people.
    pub detail: String,
}

/// Kinds of reasons to refuse an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// It is not a ZIP file, or its directory contradicts itself.
    NotAnArchive,
    /// A name points outside the archive, or is not a name at all.
    UnsafePath,
    /// A name, an attribute or a key is there twice.
    Duplicate,
    /// An entry is a link or something else that is not a file.
    NotAFile,
    /// Something is larger than is read, or grows out of proportion.
    TooLarge,
    /// A part that must be there is missing.
    MissingPart,
    /// A part is not what it must be.
    Malformed,
    /// An entry's bytes are not those that its directory promises.
    Damaged,
    /// It uses what this reader does not know: encryption, another compression.
    Unsupported,
    /// Its signature does not hold.
    Signature,
}

impl Why {
    /// The reason as one word, for programs that read text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotAnArchive => "not_an_archive",
            Self::UnsafePath => "unsafe_path",
            Self::Duplicate => "duplicate",
            Self::NotAFile => "not_a_file",
            Self::TooLarge => "too_large",
            Self::MissingPart => "missing_part",
            Self::Malformed => "malformed",
            Self::Damaged => "damaged",
            Self::Unsupported => "unsupported",
            Self::Signature => "signature",
        }
    }
}
