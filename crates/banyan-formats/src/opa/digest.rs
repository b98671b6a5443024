//! Digests while bytes pass.

use std::fmt::Write as _;
use std::io::{self, Read, Write};

use flate2::Crc;
use sha2::{Digest, Sha256, Sha384, Sha512};

/// The digests that are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Algorithm {
    Sha256,
    Sha384,
    Sha512,
}

impl Algorithm {
    pub(crate) const ALL: [Self; 3] = [Self::Sha256, Self::Sha384, Self::Sha512];

    /// The algorithm by the name that it has before `-Digest`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "SHA-256" | "SHA256" => Self::Sha256,
            "SHA-384" | "SHA384" => Self::Sha384,
            "SHA-512" | "SHA512" => Self::Sha512,
            _ => return None,
        })
    }

    pub(crate) fn of(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
            Self::Sha384 => Sha384::digest(bytes).to_vec(),
            Self::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }
}

/// The digests of an entry, as far as somebody asked for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Digests(Vec<(Algorithm, Vec<u8>)>);

impl Digests {
    pub(crate) fn get(&self, algorithm: Algorithm) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| *known == algorithm).map(|(_, digest)| digest.as_slice())
    }
}

/// Passes on what is read, and digests it.
pub(crate) struct Digesting<R> {
    inner: R,
    sha256: Option<Sha256>,
    sha384: Option<Sha384>,
    sha512: Option<Sha512>,
}

impl<R: Read> Digesting<R> {
    pub(crate) fn new(inner: R, wanted: &[Algorithm]) -> Self {
        Self {
            inner,
            sha256: wanted.contains(&Algorithm::Sha256).then(Sha256::new),
            sha384: wanted.contains(&Algorithm::Sha384).then(Sha384::new),
            sha512: wanted.contains(&Algorithm::Sha512).then(Sha512::new),
        }
    }

    pub(crate) fn finish(self) -> Digests {
        let mut digests = Vec::new();
        digests.extend(self.sha256.map(|sha| (Algorithm::Sha256, sha.finalize().to_vec())));
        digests.extend(self.sha384.map(|sha| (Algorithm::Sha384, sha.finalize().to_vec())));
        digests.extend(self.sha512.map(|sha| (Algorithm::Sha512, sha.finalize().to_vec())));
        Digests(digests)
    }
}

impl<R: Read> Read for Digesting<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        let bytes = &into[..read];
        if let Some(sha) = &mut self.sha256 {
            sha.update(bytes);
        }
        if let Some(sha) = &mut self.sha384 {
            sha.update(bytes);
        }
        if let Some(sha) = &mut self.sha512 {
            sha.update(bytes);
        }
        Ok(read)
    }
}

/// Passes on what is written, counts it and digests it.
pub(crate) struct Counting<W> {
    inner: W,
    sha256: Sha256,
    crc: Crc,
    size: u64,
}

impl<W: Write> Counting<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, sha256: Sha256::new(), crc: Crc::new(), size: 0 }
    }

    /// Where it went, its checksum, its size and its digest.
    pub(crate) fn finish(self) -> (W, u32, u64, [u8; 32]) {
        (self.inner, self.crc.sum(), self.size, self.sha256.finalize().into())
    }
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.sha256.update(&bytes[..written]);
        self.crc.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Bytes in lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
