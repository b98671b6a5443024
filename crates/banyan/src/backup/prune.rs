//! Letting old generations go, and the content that only they had.

use std::collections::HashSet;
use std::io;

use super::manifest::Manifest;
use super::repository::{BackupError, Content, Generations, Repository};

/// What pruning removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pruned {
    pub(crate) generations: u64,
    pub(crate) files: u64,
}

impl Repository {
    /// Removes all generations but the newest `keep`, and the content that no generation has. The newest sound generation stays
    /// in any case. Nothing is removed while a manifest cannot be read.
    pub(crate) fn prune(&self, keep: Option<u64>) -> Result<Pruned, BackupError> {
        let Generations { whole, damaged, .. } = self.generations()?;
        if !damaged.is_empty() {
            return Ok(Pruned::default());
        }
        let sound = whole.iter().rposition(|manifest| manifest.damage().next().is_none());
        let first = keep.map_or(0, |keep| whole.len().saturating_sub(usize::try_from(keep).unwrap_or(usize::MAX)));
        let stays = |at: usize| at >= first || (Some(at) == sound);
        let mut pruned = Pruned::default();
        let mut kept = Vec::new();
        let removing = || BackupError::io("remove an old generation");
        for (at, manifest) in whole.into_iter().enumerate() {
            if stays(at) {
                kept.push(manifest);
            } else {
                self.remove_manifest(manifest.generation).map_err(removing())?;
                pruned.generations += 1;
            }
        }
        if pruned.generations > 0 {
            self.disk.sync_dir("").map_err(removing())?;
        }
        pruned.files = self.sweep(&kept).map_err(BackupError::io("remove content of old generations"))?;
        Ok(pruned)
    }

    fn sweep(&self, kept: &[Manifest]) -> io::Result<u64> {
        let parts = || kept.iter().flat_map(Manifest::parts);
        let mut removed = 0;
        for content in Content::ALL {
            let used: HashSet<&str> = match content {
                Content::Records => parts().map(|part| part.hash.as_str()).collect(),
                Content::Blobs => parts().flat_map(|part| &part.blobs).map(String::as_str).collect(),
                Content::Keys => kept.iter().filter_map(|manifest| manifest.head.keys.as_deref()).collect(),
            };
            let folder = content.folder();
            let dirs = match content {
                Content::Keys => vec![folder.to_owned()],
                Content::Records | Content::Blobs => {
                    let listed = self.disk.list(folder)?.into_iter().filter(|listed| listed.is_dir);
                    listed.map(|listed| format!("{folder}/{}", listed.name)).collect()
                }
            };
            for dir in dirs {
                for listed in self.disk.list(&dir)? {
                    // What is no content of ours is somebody else's.
                    if content.hash_of(&listed.name).is_some_and(|hash| !used.contains(hash)) {
                        self.disk.remove(&format!("{dir}/{}", listed.name))?;
                        removed += 1;
                    }
                }
            }
        }
        Ok(removed)
    }
}
