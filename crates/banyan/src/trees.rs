//! Images of large sessions' trees, so that bringing one into memory does not mean reading all its records.
//!
//! ```text
//! image = "BANYANT1" · bytes of the session's file that it covers u64 · hash of the last of them (32 bytes) · state
//! ```
//! An image is derived: one that does not fit its file, or the catalogue, is ignored.

use banyan_core::state::SessionState;
use banyan_log::{At, SessionLog};
use banyan_model::{Error, SessionId};

use crate::load::Read;
use crate::sessions::Loaded;
use crate::space::SpaceLevel;
use crate::store::Store;

const MAGIC: &[u8; 8] = b"BANYANT1";
const HEADER: usize = 48;

/// Sessions with fewer bytes of records are read as fast without an image.
const LARGE: u64 = 1 << 20;

/// How much of a file's end is compared.
const COMPARED: u64 = 4096;

impl Store {
    /// Reads a session from its image and the records since. `None` when there is no image to rely on.
    pub(crate) fn read_image(&self, id: &SessionId) -> Result<Option<Read>, Error> {
        let at = At::Live(id);
        let Some((len, _)) = self.log.stamp(at)?.filter(|(len, _)| *len >= LARGE) else { return Ok(None) };
        // Whoever else wrote to the file, the catalogue has not seen it.
        let known = self.catalogue.get(id).ok().flatten().is_some_and(|row| row.length == len);
        let Some(image) = self.log.tree(id).filter(|_| known) else { return Ok(None) };
        let Some((covered, hash, state)) = parts(&image) else { return Ok(None) };
        if covered > len || self.end_hash(id, covered)?.as_bytes() != hash {
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
        let Ok(hash) = self.end_hash(id, covered) else { return };
        let mut image = Vec::with_capacity(HEADER + state.nodes().len() * 64);
        image.extend_from_slice(MAGIC);
        image.extend_from_slice(&covered.to_le_bytes());
        image.extend_from_slice(hash.as_bytes());
        state.to_snapshot(&mut image);
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

    fn end_hash(&self, id: &SessionId, covered: u64) -> Result<blake3::Hash, Error> {
        let from = covered.saturating_sub(COMPARED);
        Ok(blake3::hash(&self.log.read(At::Live(id), from, (covered - from) as usize)?))
    }
}

fn parts(image: &[u8]) -> Option<(u64, &[u8; 32], &[u8])> {
    let (header, state) = image.split_at_checked(HEADER)?;
    let covered = u64::from_le_bytes(header.get(8..16)?.try_into().ok()?);
    let hash = header.get(16..48)?.try_into().ok()?;
    header.starts_with(MAGIC).then_some((covered, hash, state))
}
