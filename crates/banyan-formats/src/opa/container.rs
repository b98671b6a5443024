//! The ZIP file: its directory, checked before anything is unpacked, and its entries as streams that are checked as they are read.

use std::collections::HashMap;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::{Mutex, PoisonError};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use rawzip::{
    CompressionMethod, RECOMMENDED_BUFFER_SIZE, ReaderAt, ZipArchive, ZipArchiveEntryWayfinder, ZipLocator,
};

use super::error::{Error, Why};
use super::limits::{Limits, NAME, NAMES, RATIO_FROM};
use super::manifest::safe_display;
use super::path;

/// How much is read from the file at a time.
const BUFFER: usize = 64 << 10;

/// The entries of a ZIP file.
pub(crate) struct Container<R> {
    zip: ZipArchive<Positioned<R>>,
    pub entries: Vec<Stored>,
    by_name: HashMap<String, usize>,
}

/// What the directory says of an entry.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub name: String,
    pub size: u64,
    pub crc32: u32,
    deflated: bool,
    way: ZipArchiveEntryWayfinder,
}

impl Stored {
    pub(crate) fn is_directory(&self) -> bool {
        self.name.ends_with('/')
    }
}

impl<R: Read + Seek + Send> Container<R> {
    /// Reads the directory, and refuses the archive for what is wrong with it.
    pub(crate) fn open(mut reader: R, limits: &Limits) -> Result<Self, Error> {
        let end = reader.seek(SeekFrom::End(0))?;
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE.max(2 * BUFFER)];
        let zip = ZipLocator::new()
            .locate_in_reader(Positioned(Mutex::new(reader)), &mut buffer, end)
            .map_err(|(_, error)| Error::of_zip(error))?;
        if zip.end_offset() != end {
            return Err(Error::refused(Why::NotAnArchive, "there are bytes after the end of the ZIP archive"));
        }
        let entries = list(&zip, &mut buffer, limits)?;
        let mut by_name = HashMap::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            if by_name.insert(entry.name.clone(), at).is_some() {
                let name = safe_display(&entry.name);
                return Err(Error::refused(Why::Duplicate, format!("the entry `{name}` is there twice")));
            }
        }
        let container = Self { zip, entries, by_name };
        container.check_places(&mut buffer)?;
        Ok(container)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Stored> {
        self.by_name.get(name).and_then(|&at| self.entries.get(at))
    }

    /// The content of an entry, which ends in an error when it is not as long as promised or not the same.
    pub(crate) fn content(&self, entry: &Stored) -> Result<Content<'_>, Error> {
        self.open_entry(entry, Some(Crc::new()))
    }

    /// The same of an entry whose checksum was compared before.
    pub(crate) fn content_again(&self, entry: &Stored) -> Result<Content<'_>, Error> {
        self.open_entry(entry, None)
    }

    fn open_entry(&self, entry: &Stored, crc: Option<Crc>) -> Result<Content<'_>, Error> {
        let packed = self.zip.get_entry(entry.way).map_err(Error::of_zip)?.reader();
        let packed = BufReader::with_capacity(BUFFER, packed);
        let inner: Box<dyn Read + Send + '_> =
            if entry.deflated { Box::new(DeflateDecoder::new(packed)) } else { Box::new(packed) };
        Ok(Content { inner, left: entry.size, crc, expected: entry.crc32 })
    }

    /// Reads an entry that must be small.
    pub(crate) fn bytes(&self, entry: &Stored, limit: u64) -> Result<Vec<u8>, Error> {
        if entry.size > limit {
            let (name, size) = (safe_display(&entry.name), entry.size);
            let detail = format!("the entry `{name}` has {size} bytes; at most {limit} are read");
            return Err(Error::refused(Why::TooLarge, detail));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(entry.size).unwrap_or_default());
        self.content(entry)?.read_to_end(&mut bytes).map_err(|error| Error::of_entry(&entry.name, error))?;
        Ok(bytes)
    }

    /// No two entries share bytes, which is how small bombs unpack to a lot, and no entry has another name in its own header,
    /// which is what some readers go by.
    fn check_places(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let mut places = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let found = self.zip.get_entry(entry.way).map_err(Error::of_zip)?;
            let header = found.local_header(buffer).map_err(Error::of_zip)?;
            if header.file_path().as_bytes() != entry.name.as_bytes() {
                let name = safe_display(&entry.name);
                let detail = format!("the entry `{name}` has another name in its own header");
                return Err(Error::refused(Why::NotAnArchive, detail));
            }
            let (start, end) = found.compressed_data_range();
            // The header is at least 30 bytes and the name before the data.
            places.push((start.saturating_sub(30 + entry.name.len() as u64), end, entry));
        }
        places.sort_unstable_by_key(|&(start, ..)| start);
        let limit = self.zip.directory_offset();
        let mut before = 0;
        for (start, end, entry) in places {
            if start < before || end > limit {
                let name = safe_display(&entry.name);
                let detail = format!("the entry `{name}` shares its bytes with something else in the archive");
                return Err(Error::refused(Why::NotAnArchive, detail));
            }
            before = end;
        }
        Ok(())
    }
}

fn list<R: Read + Seek + Send>(
    zip: &ZipArchive<Positioned<R>>,
    buffer: &mut [u8],
    limits: &Limits,
) -> Result<Vec<Stored>, Error> {
    let too_many = || Error::refused(Why::TooLarge, format!("there are more than {} entries", limits.entries));
    if zip.entries_hint() > limits.entries as u64 {
        return Err(too_many());
    }
    let (mut entries, mut total, mut names) = (Vec::new(), 0_u64, 0);
    let mut found = zip.entries(buffer);
    while let Some(entry) = found.next_entry().map_err(Error::of_zip)? {
        if entries.len() == limits.entries {
            return Err(too_many());
        }
        let name = entry.file_path().as_bytes().to_vec();
        let name = match String::from_utf8(name) {
            Ok(name) if name.len() <= NAME => name,
            Ok(name) => {
                return Err(Error::refused(
                    Why::UnsafePath,
                    format!("the entry `{}` has too long a name", safe_display(&name)),
                ));
            }
            Err(_) => return Err(Error::refused(Why::UnsafePath, "the name of an entry is not UTF-8")),
        };
        path::check("entry", &name)?;
        names += name.len();
        if names > NAMES {
            return Err(Error::refused(
                Why::TooLarge,
                format!("the names of entries have more than {NAMES} bytes"),
            ));
        }
        let refused = |why, what: &str| Error::refused(why, format!("the entry `{}` {what}", safe_display(&name)));
        let (size, packed) = (entry.uncompressed_size_hint(), entry.compressed_size_hint());
        let kind = entry.mode().value() & 0o170_000;
        if entry.mode().is_symlink() {
            return Err(refused(Why::NotAFile, "is a symbolic link"));
        }
        if !matches!(kind, 0 | 0o100_000 | 0o040_000) {
            return Err(refused(Why::NotAFile, "is neither a file nor a directory"));
        }
        if name.ends_with('/') && size > 0 {
            return Err(refused(Why::NotAFile, "is a directory and has content"));
        }
        if entry.flags().is_encrypted() {
            return Err(refused(Why::Unsupported, "is encrypted"));
        }
        let deflated = match entry.compression_method() {
            CompressionMethod::STORE => false,
            CompressionMethod::DEFLATE => true,
            other => {
                return Err(refused(Why::Unsupported, &format!("is packed in a way that is not read ({other})")));
            }
        };
        if !deflated && size != packed {
            return Err(refused(Why::NotAnArchive, "is not packed and has two sizes"));
        }
        if size > limits.entry_size {
            return Err(refused(
                Why::TooLarge,
                &format!("has {size} bytes; at most {} are read", limits.entry_size),
            ));
        }
        if size > RATIO_FROM && size / packed.max(1) > limits.ratio {
            let detail = format!("grows from {packed} to {size} bytes, more than {} times", limits.ratio);
            return Err(refused(Why::TooLarge, &detail));
        }
        total = total.saturating_add(size);
        if total > limits.total_size {
            let detail = format!("the entries have more than {} bytes together", limits.total_size);
            return Err(Error::refused(Why::TooLarge, detail));
        }
        entries.push(Stored { size, crc32: entry.crc32(), deflated, way: entry.wayfinder(), name });
    }
    if entries.len() as u64 != zip.entries_hint() {
        return Err(Error::refused(
            Why::NotAnArchive,
            "the ZIP directory does not have as many entries as it says",
        ));
    }
    Ok(entries)
}

/// An entry's content, checked while it is read.
pub struct Content<'a> {
    inner: Box<dyn Read + Send + 'a>,
    left: u64,
    crc: Option<Crc>,
    expected: u32,
}

impl Read for Content<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        if self.left == 0 {
            return match self.inner.read(&mut [0])? {
                0 if self.crc.as_ref().is_some_and(|crc| crc.sum() != self.expected) => {
                    Err(damaged("its checksum is wrong"))
                }
                0 => Ok(0),
                _ => Err(damaged("it is longer than the directory says")),
            };
        }
        let most = into.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.inner.read(&mut into[..most])?;
        if read == 0 {
            return Err(damaged("it is shorter than the directory says"));
        }
        self.left -= read as u64;
        if let Some(crc) = &mut self.crc {
            crc.update(&into[..read]);
        }
        Ok(read)
    }
}

impl std::fmt::Debug for Content<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Content").field("left", &self.left).finish_non_exhaustive()
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Reads at a place, of anything that can seek, so that entries can be read side by side.
struct Positioned<R>(Mutex<R>);

impl<R: Read + Seek + Send> ReaderAt for Positioned<R> {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let mut reader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reader.seek(SeekFrom::Start(at))?;
        loop {
            match reader.read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}
