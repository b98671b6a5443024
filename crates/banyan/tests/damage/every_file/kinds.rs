//! The kinds of files in a data directory, and the regions of each.

#![allow(clippy::single_range_in_vec_init, reason = "a region is a range of bytes")]

use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Session,
    Base,
    Format,
    Lock,
    Segment,
    LiveSegments,
    Register,
    DamageLog,
    Journal,
    Blob,
    Catalogue,
    CatalogueLog,
    StateImage,
    Search,
    Reserve,
    History,
}

impl Kind {
    pub(super) const ALL: [Self; 16] = [
        Self::Session,
        Self::Base,
        Self::Format,
        Self::Lock,
        Self::Segment,
        Self::LiveSegments,
        Self::Register,
        Self::DamageLog,
        Self::Journal,
        Self::Blob,
        Self::Catalogue,
        Self::CatalogueLog,
        Self::StateImage,
        Self::Search,
        Self::Reserve,
        Self::History,
    ];

    /// The name in the table of `docs/on-disk.md`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Session => "<session>.jsonl",
            Self::Base => ".banyan/bases/",
            Self::Format => ".banyan/format",
            Self::Lock => ".banyan/lock",
            Self::Segment => ".banyan/wal/*.seg",
            Self::LiveSegments => ".banyan/wal/live",
            Self::Register => ".banyan/files",
            Self::DamageLog => ".banyan/damage.log",
            Self::Journal => ".banyan/journal/",
            Self::Blob => ".banyan/blobs/",
            Self::Catalogue => ".banyan/index/catalogue.sqlite",
            Self::CatalogueLog => ".banyan/index/catalogue.sqlite-wal, -shm, .sealed",
            Self::StateImage => ".banyan/index/trees/",
            Self::Search => ".banyan/index/search/",
            Self::Reserve => ".banyan/reserve",
            Self::History => ".banyan/history",
        }
    }

    /// The kind of a file, by its path.
    pub(super) fn of(path: &str) -> Option<Self> {
        Some(match path {
            ".banyan/format" | ".banyan/format.copy" => Self::Format,
            ".banyan/lock" => Self::Lock,
            ".banyan/reserve" => Self::Reserve,
            ".banyan/history" => Self::History,
            ".banyan/files" => Self::Register,
            ".banyan/damage.log" => Self::DamageLog,
            ".banyan/wal/live" => Self::LiveSegments,
            ".banyan/index/catalogue.sqlite" => Self::Catalogue,
            ".banyan/index/catalogue.sqlite-wal"
            | ".banyan/index/catalogue.sqlite-shm"
            | ".banyan/index/catalogue.sqlite.sealed" => Self::CatalogueLog,
            _ if path.starts_with(".banyan/wal/") && path.ends_with(".seg") => Self::Segment,
            _ if path.starts_with(".banyan/journal/") => Self::Journal,
            _ if path.starts_with(".banyan/blobs/") => Self::Blob,
            _ if path.starts_with(".banyan/bases/") => Self::Base,
            _ if path.starts_with(".banyan/index/trees/") => Self::StateImage,
            _ if path.starts_with(".banyan/index/search/") => Self::Search,
            _ if !path.contains('/') && path.ends_with(".jsonl") => Self::Session,
            _ => return None,
        })
    }

    /// The regions of a file: those of which every byte is damaged, and those of which some are.
    pub(super) fn regions(self, bytes: &[u8]) -> Regions {
        let whole = 0..bytes.len();
        match self {
            Self::Format | Self::LiveSegments | Self::DamageLog | Self::Lock | Self::History => {
                Regions { every_byte: vec![whole], some_bytes: Vec::new() }
            }
            Self::Session | Self::Base | Self::Register => lines(bytes),
            Self::Segment => segment(bytes),
            Self::Journal => journal(bytes),
            Self::Catalogue | Self::CatalogueLog => {
                Regions { every_byte: Vec::from([0..bytes.len().min(100)]), some_bytes: pages(whole) }
            }
            Self::StateImage => {
                Regions { every_byte: Vec::from([0..bytes.len().min(112)]), some_bytes: vec![whole] }
            }
            Self::Blob | Self::Search | Self::Reserve => {
                Regions { every_byte: Vec::new(), some_bytes: vec![whole] }
            }
        }
    }
}

/// Ranges of a file.
pub(super) struct Regions {
    pub(super) every_byte: Vec<Range<usize>>,
    pub(super) some_bytes: Vec<Range<usize>>,
}

/// Every byte of one line of each type, and some of the others.
fn lines(bytes: &[u8]) -> Regions {
    let mut regions = Regions { every_byte: Vec::new(), some_bytes: Vec::new() };
    let mut seen = std::collections::BTreeSet::new();
    let mut start = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let parsed: Option<serde_json::Value> = serde_json::from_slice(line).ok();
        let kind = parsed.map_or_else(String::new, |line| match line["type"].as_str() {
            Some(kind) => kind.to_owned(),
            // Lines of the register have no type, and differ in their first field.
            None => line.as_object().and_then(|fields| fields.keys().next().cloned()).unwrap_or_default(),
        });
        let range = start..start + line.len();
        start = range.end;
        // Long lines are damaged in some places.
        match line.len() < 2000 && seen.insert(kind) {
            true => regions.every_byte.push(range),
            false => regions.some_bytes.push(range),
        }
    }
    // Of very many lines a few are enough.
    let step = (regions.some_bytes.len() / 50).max(1);
    regions.some_bytes = regions.some_bytes.into_iter().step_by(step).collect();
    regions
}

/// The header, the frames (every byte of the first ones), and what was never written to.
fn segment(bytes: &[u8]) -> Regions {
    const HEADER: usize = 64;
    let mut regions = Regions { every_byte: Vec::from([0..28]), some_bytes: Vec::from([28..HEADER]) };
    let mut at = HEADER;
    while let Some(len) = bytes.get(at..at + 4).map(|len| u32::from_le_bytes(len.try_into().expect("four bytes")))
    {
        if len == 0 {
            break;
        }
        let frame = at..at + 8 + len as usize;
        at = frame.end;
        match regions.every_byte.len() < 4 && frame.len() < 2000 {
            true => regions.every_byte.push(frame),
            false => regions.some_bytes.push(frame),
        }
    }
    regions.some_bytes.push(at..bytes.len());
    regions
}

/// Every byte of the first entry of each kind, and some of the others.
fn journal(bytes: &[u8]) -> Regions {
    let mut regions = Regions { every_byte: Vec::new(), some_bytes: Vec::new() };
    let mut seen = std::collections::BTreeSet::new();
    let mut at = 0;
    while let Some(len) = bytes.get(at..at + 4).map(|len| u32::from_le_bytes(len.try_into().expect("four bytes")))
    {
        let entry = at..at + 8 + len as usize;
        at = entry.end;
        match seen.insert(bytes.get(entry.start + 16).copied()) {
            true => regions.every_byte.push(entry),
            false => regions.some_bytes.push(entry),
        }
    }
    regions
}

/// Pages of SQLite.
fn pages(whole: Range<usize>) -> Vec<Range<usize>> {
    const PAGE: usize = 4096;
    whole.clone().step_by(PAGE).map(|start| start..(start + PAGE).min(whole.end)).collect()
}
