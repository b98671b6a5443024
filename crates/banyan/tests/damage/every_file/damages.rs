//! One damage each.

use std::fs;
use std::path::Path;

use super::kinds::Kind;
use super::samples::Sample;

/// One damage to one file.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) file: String,
    pub(super) kind: Kind,
    pub(super) damage: Damage,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    Flip {
        at: usize,
        bit: u8,
    },
    Zero {
        at: usize,
        len: usize,
    },
    Cut {
        len: usize,
    },
    /// Two ranges of equal length change places.
    Swap {
        a: usize,
        b: usize,
        len: usize,
    },
    /// A range stands a second time behind itself.
    Double {
        at: usize,
        len: usize,
    },
    Older,
    Foreign,
    Gone,
    /// There is a directory of this name.
    Unreadable,
}

impl Damage {
    /// The column in the table of `docs/on-disk.md`.
    pub(super) fn column(&self) -> &'static str {
        match self {
            Self::Flip { .. } | Self::Zero { .. } => "flipped, zeroed",
            Self::Cut { .. } => "cut",
            Self::Swap { .. } | Self::Double { .. } => "swapped, doubled",
            Self::Older => "older copy",
            Self::Foreign => "foreign",
            Self::Gone => "gone",
            Self::Unreadable => "unreadable",
        }
    }
}

/// How many places of a region are damaged, of which not every byte is.
const PLACES: usize = 16;

/// All damages of all files of a sample, always in the same order.
pub(super) fn cases(sample: &Sample) -> Vec<Case> {
    let mut cases = Vec::new();
    for (file, bytes) in &sample.files {
        let kind = Kind::of(file).expect("a known kind");
        let mut add = |damage| cases.push(Case { file: file.clone(), kind, damage });
        let regions = kind.regions(bytes);
        for region in &regions.every_byte {
            for at in region.clone() {
                add(Damage::Flip { at, bit: (at % 8) as u8 });
            }
        }
        for region in &regions.some_bytes {
            let step = (region.len() / PLACES).max(1);
            for (n, at) in region.clone().step_by(step).enumerate() {
                match n % 2 {
                    0 => add(Damage::Flip { at, bit: (n % 8) as u8 }),
                    _ => add(Damage::Zero { at, len: (region.end - at).min(64) }),
                }
            }
        }
        let all: Vec<_> = regions.every_byte.iter().chain(&regions.some_bytes).collect();
        for region in &all {
            add(Damage::Cut { len: region.start });
            add(Damage::Cut { len: region.start + region.len() / 2 });
            add(Damage::Zero { at: region.start, len: region.len() });
            add(Damage::Double { at: region.start, len: region.len() });
        }
        for pair in all.windows(2) {
            let len = pair[0].len().min(pair[1].len());
            // Ranges that overlap cannot change places.
            if len > 0 && pair[0].start + len <= pair[1].start {
                add(Damage::Swap { a: pair[0].start, b: pair[1].start, len });
            }
        }
        if sample.older.contains_key(file) {
            add(Damage::Older);
        }
        if sample.foreign_file(file).is_some() {
            add(Damage::Foreign);
        }
        add(Damage::Gone);
        add(Damage::Unreadable);
    }
    // A last frame that ends with zeros is a write that never ended, as far as anything on the disk says.
    cases.retain(|case| case.kind != Kind::Segment || !clears_the_end(&sample.files[&case.file], &case.damage));
    // What changes nothing is no damage.
    cases.retain(|case| case.bytes(sample).is_none_or(|bytes| bytes != sample.files[&case.file]));
    cases
}

/// Whether the end of what was written to a segment becomes zeros.
fn clears_the_end(segment: &[u8], damage: &Damage) -> bool {
    let Damage::Zero { at, len } = damage else { return false };
    let written = segment.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    at + len >= written
}

impl Case {
    /// The damaged file; `None` if there is none any more.
    fn bytes(&self, sample: &Sample) -> Option<Vec<u8>> {
        let mut bytes = sample.files[&self.file].clone();
        match &self.damage {
            Damage::Flip { at, bit } => bytes[*at] ^= 1 << bit,
            Damage::Zero { at, len } => bytes[*at..at + len].fill(0),
            Damage::Cut { len } => bytes.truncate(*len),
            Damage::Swap { a, b, len } => {
                let (before, after) = bytes.split_at_mut(*b);
                before[*a..a + len].swap_with_slice(&mut after[..*len]);
            }
            Damage::Double { at, len } => {
                let doubled = bytes[*at..at + len].to_vec();
                bytes.splice(at + len..at + len, doubled);
            }
            Damage::Older => return sample.older.get(&self.file).cloned(),
            Damage::Foreign => return sample.foreign_file(&self.file).cloned(),
            Damage::Gone | Damage::Unreadable => return None,
        }
        Some(bytes)
    }

    /// Writes the sample with this damage into a directory.
    pub(super) fn apply(&self, sample: &Sample, dir: &Path) {
        sample.write(dir);
        let path = dir.join(&self.file);
        match self.bytes(sample) {
            Some(bytes) => fs::write(path, bytes).expect("a damaged file"),
            None => {
                fs::remove_file(&path).expect("a file");
                if self.damage == Damage::Unreadable {
                    fs::create_dir(path).expect("a directory in its place");
                }
            }
        }
    }

    /// Whether a session may lose something by this: it is the file's, or reads from it, or all that the file has is shared.
    pub(super) fn concerns(&self, sample: &Sample, session: &str) -> bool {
        match self.kind {
            Kind::Session => {
                let owner = self.file.trim_end_matches(".jsonl");
                session == owner || sample.reads_from(session, owner)
            }
            Kind::Base => sample.reads_from(session, "ended"),
            Kind::Blob => sample.uses_content(session),
            _ => false,
        }
    }
}
