//! Which segments are merged: those that tantivy would merge, while there is room for the result beside them.

use std::path::{Path, PathBuf};

use tantivy::SegmentMeta;
use tantivy::indexer::{LogMergePolicy, MergeCandidate, MergePolicy};

use crate::room::Room;

/// See the module.
#[derive(Debug)]
pub(crate) struct Merging {
    pub(crate) usual: LogMergePolicy,
    pub(crate) room: Room,
    /// `None` for an index in memory.
    pub(crate) root: Option<PathBuf>,
}

impl MergePolicy for Merging {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let mut candidates = self.usual.compute_merge_candidates(segments);
        if let Some(root) = &self.root {
            candidates.retain(|candidate| {
                let merged = segments.iter().filter(|segment| candidate.0.contains(&segment.id()));
                self.room.has(merged.map(|segment| size_of(segment, root)).sum())
            });
        }
        candidates
    }
}

/// How many bytes the files of a segment have.
pub(crate) fn size_of(segment: &SegmentMeta, root: &Path) -> u64 {
    let id = segment.id().uuid_string();
    let files = std::fs::read_dir(root).into_iter().flatten().flatten();
    let own = files.filter(|file| file.file_name().to_str().is_some_and(|name| name.starts_with(&id)));
    own.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}
