//! Content that is cheap to copy.

use std::sync::Arc;

pub(super) const CHUNK: usize = 16 * 1024;

/// Bytes in chunks that copies share until one is changed, so that a copy costs next to nothing
/// and a change to it only the chunks it touches. All chunks but the last are full, none is empty.
#[derive(Clone, Default)]
pub(super) struct Bytes(pub(super) Arc<Vec<Arc<Vec<u8>>>>);

impl Bytes {
    pub(super) fn len(&self) -> usize {
        match self.0.split_last() {
            Some((last, full)) => full.len() * CHUNK + last.len(),
            None => 0,
        }
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        self.read(0, &mut bytes);
        bytes
    }

    pub(super) fn read(&self, offset: usize, buf: &mut [u8]) -> usize {
        let mut filled = 0;
        let mut within = offset % CHUNK;
        for chunk in self.0.iter().skip(offset / CHUNK) {
            let found = chunk.get(within..).unwrap_or_default();
            let found = &found[..found.len().min(buf.len() - filled)];
            if found.is_empty() {
                break;
            }
            buf[filled..filled + found.len()].copy_from_slice(found);
            filled += found.len();
            within = 0;
        }
        filled
    }

    pub(super) fn write(&mut self, offset: usize, data: &[u8]) {
        if offset > self.len() {
            self.resize(offset);
        }
        let chunks = Arc::make_mut(&mut self.0);
        let (mut at, mut rest) = (offset, data);
        while !rest.is_empty() {
            let within = at % CHUNK;
            let (part, later) = rest.split_at(rest.len().min(CHUNK - within));
            if chunks.len() == at / CHUNK {
                chunks.push(Arc::default());
            }
            let chunk = Arc::make_mut(&mut chunks[at / CHUNK]);
            let (inside, beyond) = part.split_at(part.len().min(chunk.len() - within));
            chunk[within..within + inside.len()].copy_from_slice(inside);
            chunk.extend_from_slice(beyond);
            at += part.len();
            rest = later;
        }
    }

    pub(super) fn resize(&mut self, len: usize) {
        let chunks = Arc::make_mut(&mut self.0);
        let count = len.div_ceil(CHUNK);
        chunks.truncate(count);
        for index in chunks.len().saturating_sub(1)..count {
            let size = CHUNK.min(len - index * CHUNK);
            match chunks.get_mut(index) {
                Some(chunk) if chunk.len() == size => {}
                Some(chunk) => Arc::make_mut(chunk).resize(size, 0),
                None => chunks.push(Arc::new(vec![0; size])),
            }
        }
    }
}
