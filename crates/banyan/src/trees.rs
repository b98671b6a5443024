//! Images of large sessions' trees, so that bringing one into memory does not mean reading all its records.
//!
//! ```text
//! image = "BANYANT2" · hash of what follows (32 bytes) · id of the directory (32 bytes)
//!         · bytes of the session's file that it covers u64 · hash of the first and the last of them (32 bytes) · state
//! ```
//! An image is derived: one that is damaged, or does not fit the directory, its file or the catalogue, is ignored, and written
//! again.

use banyan_core::state::SessionState;
use banyan_log::{At, SessionLog};
use banyan_model::{Error, SessionId};

use crate::load::Read;
use crate::sessions::Loaded;
use crate::space::SpaceLevel;
use crate::store::Store;

const MAGIC: &[u8; 8] = b"BANYANT2";
const HEADER: usize = 8 + 32 + 32 + 8 + 32;

/// Sessions with fewer bytes of records are read as fast without an image.
const LARGE: u64 = 1 << 20;

/// How much of a file's beginning and end is compared.
const COMPARED: u64 = 4096;

impl Store {
    /// Reads a session from its image and the records since. `None` when there is no image to rely on.
    pub(crate) fn read_image(&self, id: &SessionId) -> Result<Option<Read>, Error> {
        let at = At::Live(id);
        let Some((len, _)) = self.log.stamp(at)?.filter(|(len, _)| *len >= LARGE) else { return Ok(None) };
        // Whoever else wrote to the file, the catalogue has not seen it.
        let known = self.catalogue.get(id).ok().flatten().is_some_and(|row| row.length == len);
        let Some(image) = self.log.tree(id).filter(|_| known) else { return Ok(None) };
        let Some((covered, hash, state)) = self.parts(&image) else {
            self.warn(&format!(
                "session {id}: the image of its tree is damaged or another directory's, and is made again"
            ));
            return Ok(None);
        };
        if covered > len || self.ends_hash(id, covered)?.as_bytes() != hash {
            return Ok(None);
        }
        match SessionState::from_snapshot(state) {
            Some(state) if state.session_id() == id => self.read_from(at, id, covered, Some(state)),
            _ => Ok(None),
        }
    }

    /// Writes the image of a session that was read up to `covered`.
    pub(crate) fn save_image(&self, id: &SessionId, state: &SessionState, covered: u64) {
        // A newer Banyan may understand more than the image would say.
        if covered < LARGE || state.newer().is_some() || self.space.level() != SpaceLevel::Enough {
            return;
        }
        let Ok(hash) = self.ends_hash(id, covered) else { return };
        let mut image = Vec::with_capacity(HEADER + state.nodes().len() * 64);
        image.extend_from_slice(MAGIC);
        image.extend_from_slice(&[0; 32]);
        image.extend_from_slice(self.log.directory_id().to_string().as_bytes());
        image.extend_from_slice(&covered.to_le_bytes());
        image.extend_from_slice(hash.as_bytes());
        state.to_snapshot(&mut image);
        let sum = blake3::hash(&image[40..]);
        image[8..40].copy_from_slice(sum.as_bytes());
        // Without it the next load takes longer, and is right all the same.
        let _ = self.log.save_tree(id, &image);
    }

    /// Writes the images of all large sessions in memory, when nothing is written any more.
    pub(crate) fn save_images(&self) {
        for session in self.sessions.all() {
            if let Loaded::Present(state) = &*session.read()
                && let Ok(Some((len, _))) = self.log.stamp(At::Live(&session.id))
                && len != session.image_covers()
            {
                self.save_image(&session.id, state, len);
            }
        }
    }

    fn ends_hash(&self, id: &SessionId, covered: u64) -> Result<blake3::Hash, Error> {
        let from = covered.saturating_sub(COMPARED);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.log.read(At::Live(id), 0, COMPARED.min(covered) as usize)?);
        hasher.update(&self.log.read(At::Live(id), from, (covered - from) as usize)?);
        Ok(hasher.finalize())
    }

    /// The parts of an image that is whole and of this directory: how much it covers, the hash of that, and the state.
    fn parts<'a>(&self, image: &'a [u8]) -> Option<(u64, &'a [u8; 32], &'a [u8])> {
        let (header, state) = image.split_at_checked(HEADER)?;
        let sum: &[u8; 32] = header.get(8..40)?.try_into().ok()?;
        let is_whole = header.starts_with(MAGIC) && blake3::hash(image.get(40..)?).as_bytes() == sum;
        let is_ours = header.get(40..72)? == self.log.directory_id().to_string().as_bytes();
        let covered = u64::from_le_bytes(header.get(72..80)?.try_into().ok()?);
        let hash = header.get(80..112)?.try_into().ok()?;
        (is_whole && is_ours).then_some((covered, hash, state))
    }
}
