//! A disk over another one that is never changed: writes stay in memory. For looking at a directory as it would be after
//! recovery, without touching it.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Disk, DiskFile, Listed, LockOutcome, Space, Stat};

/// See the module.
pub struct Overlay {
    below: Arc<dyn Disk>,
    /// Paths that were created, opened, moved here or removed; `None` is a path without a file.
    files: Mutex<HashMap<String, Option<Arc<OverlayFile>>>>,
}

/// How many bytes are copied from below when one of them is written.
const PAGE: u64 = 64 << 10;

/// A file of the disk below, and what was written over it.
struct OverlayFile {
    below: Option<Arc<dyn DiskFile>>,
    state: Mutex<State>,
}

struct State {
    len: u64,
    /// How many bytes of the file below still count.
    from_below: u64,
    pages: HashMap<u64, Vec<u8>>,
}

impl Overlay {
    /// A disk that reads from `below`.
    pub fn new(below: Arc<dyn Disk>) -> Self {
        Self { below, files: Mutex::default() }
    }

    fn files(&self) -> MutexGuard<'_, HashMap<String, Option<Arc<OverlayFile>>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, path: &str) -> io::Result<Option<Arc<OverlayFile>>> {
        let mut files = self.files();
        if let Some(known) = files.get(path) {
            return Ok(known.clone());
        }
        let Some(below) = self.below.open(path)? else { return Ok(None) };
        let file = Arc::new(OverlayFile::over(below)?);
        files.insert(path.to_owned(), Some(Arc::clone(&file)));
        Ok(Some(file))
    }
}

impl Disk for Overlay {
    fn open(&self, path: &str) -> io::Result<Option<Arc<dyn DiskFile>>> {
        Ok(self.find(path)?.map(|file| file as Arc<dyn DiskFile>))
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.find(path)? {
            return Ok(file);
        }
        let file = Arc::new(OverlayFile::empty());
        self.files().insert(path.to_owned(), Some(Arc::clone(&file)));
        Ok(file)
    }

    fn create_dir(&self, _path: &str) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, dir: &str) -> io::Result<Vec<Listed>> {
        let mut listed = self.below.list(dir)?;
        let inside = |path: &str| match path.rsplit_once('/') {
            Some((parent, name)) => (parent == dir).then(|| name.to_owned()),
            None => dir.is_empty().then(|| path.to_owned()),
        };
        for (path, file) in self.files().iter() {
            let Some(name) = inside(path) else { continue };
            match file {
                None => listed.retain(|known| known.name != name),
                Some(_) if listed.iter().any(|known| known.name == name) => {}
                Some(_) => listed.push(Listed { name, is_dir: false }),
            }
        }
        Ok(listed)
    }

    fn stat(&self, path: &str) -> io::Result<Option<Stat>> {
        let known = self.files().get(path).cloned();
        match known {
            Some(None) => Ok(None),
            Some(Some(file)) => Ok(Some(Stat { len: file.len()?, modified: file.modified()?, is_dir: false })),
            None => self.below.stat(path),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        // What cannot be opened, such as a directory, is gone from its old name and cannot be looked at under the new one.
        let found = self.find(from).map(|file| file.ok_or(ErrorKind::NotFound));
        let mut files = self.files();
        if let Ok(file) = found {
            files.insert(to.to_owned(), Some(file?));
        }
        files.insert(from.to_owned(), None);
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.files().insert(path.to_owned(), None);
        Ok(())
    }

    fn sync_dir(&self, _dir: &str) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    fn space(&self) -> io::Result<Option<Space>> {
        self.below.space()
    }

    /// Holds the lock of the disk below, whose lock file stays as it is.
    fn lock(&self, path: &str, _owner: &str) -> io::Result<LockOutcome> {
        self.below.lock_unchanged(path)
    }

    fn lock_unchanged(&self, path: &str) -> io::Result<LockOutcome> {
        self.below.lock_unchanged(path)
    }
}

impl OverlayFile {
    fn empty() -> Self {
        Self { below: None, state: Mutex::new(State { len: 0, from_below: 0, pages: HashMap::new() }) }
    }

    fn over(below: Arc<dyn DiskFile>) -> io::Result<Self> {
        let len = below.len()?;
        let state = State { len, from_below: len, pages: HashMap::new() };
        Ok(Self { below: Some(below), state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills `buf`, all of which lies within the file, from below.
    fn read_below(&self, from_below: u64, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        buf.fill(0);
        let len = from_below.saturating_sub(offset).min(buf.len() as u64) as usize;
        match &self.below {
            Some(below) if len > 0 => below.read_at(offset, &mut buf[..len]).map(drop),
            _ => Ok(()),
        }
    }
}

/// The parts of `offset..offset + len` that lie within one page each: page, start within it, start within the whole, length.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % PAGE) as usize;
        let part = (len - done).min(PAGE as usize - within);
        let start = done;
        done += part;
        (part > 0).then_some((at / PAGE, within, start, part))
    })
}

impl DiskFile for OverlayFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().len)
    }

    fn modified(&self) -> io::Result<u64> {
        self.below.as_ref().map_or(Ok(0), |below| below.modified())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let state = self.state();
        let len = state.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        let buf = &mut buf[..len];
        if state.pages.is_empty() {
            self.read_below(state.from_below, offset, buf)?;
            return Ok(len);
        }
        for (page, within, start, part) in parts(offset, len) {
            let into = &mut buf[start..start + part];
            match state.pages.get(&page) {
                Some(bytes) => into.copy_from_slice(&bytes[within..within + part]),
                None => self.read_below(state.from_below, offset + start as u64, into)?,
            }
        }
        Ok(len)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let state = &mut *state;
        for (page, within, start, part) in parts(offset, data.len()) {
            if !state.pages.contains_key(&page) {
                let mut bytes = vec![0; PAGE as usize];
                self.read_below(state.from_below, page * PAGE, &mut bytes)?;
                state.pages.insert(page, bytes);
            }
            if let Some(bytes) = state.pages.get_mut(&page) {
                bytes[within..within + part].copy_from_slice(&data[start..start + part]);
            }
        }
        state.len = state.len.max(offset + data.len() as u64);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        if len < state.len {
            state.from_below = state.from_below.min(len);
            state.pages.retain(|page, _| page * PAGE < len);
            let last = (len % PAGE) as usize;
            if let Some(bytes) = state.pages.get_mut(&(len / PAGE)) {
                bytes[last..].fill(0);
            }
        }
        state.len = len;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::disk::MemDisk;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        Cut(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let at = 0..3 * PAGE;
        let write = (at.clone(), 0..100_000_usize, any::<u8>())
            .prop_map(|(at, len, byte)| Step::Write(at, vec![byte; len]));
        proptest::collection::vec(prop_oneof![write, at.prop_map(Step::Cut)], 0..8)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_file_reads_as_a_plain_one_would_and_the_one_below_stays(len in 0..150_000_usize, steps in steps()) {
            let below = MemDisk::new();
            let before: Vec<u8> = (0..len).map(|at| at as u8).collect();
            below.write_file("a", &before);
            below.write_file("b", &before);
            let over = Overlay::new(Arc::new(below.clone()));
            let (file, plain) = (over.open("a").unwrap().unwrap(), below.open("b").unwrap().unwrap());
            for step in steps {
                for file in [&file, &plain] {
                    match &step {
                        Step::Write(at, bytes) => file.write_at(*at, bytes).unwrap(),
                        Step::Cut(len) => file.set_len(*len).unwrap(),
                    }
                }
                let read = |file: &Arc<dyn DiskFile>| {
                    let mut bytes = vec![0; file.len().unwrap() as usize + 10];
                    let read = file.read_at(0, &mut bytes).unwrap();
                    bytes.truncate(read);
                    bytes
                };
                prop_assert!(read(&file) == read(&plain));
            }
            prop_assert_eq!(below.read_file("a").unwrap(), before);
        }
    }

    #[test]
    fn names_are_changed_in_memory_only() {
        let below = MemDisk::new();
        below.write_file("dir/a", b"a");
        below.write_file("dir/b", b"b");
        let over = Overlay::new(Arc::new(below.clone()));
        over.remove("dir/a").unwrap();
        over.rename("dir/b", "dir/c").unwrap();
        over.create("d").unwrap().write_at(0, b"new").unwrap();
        let names = |dir: &str| {
            let mut names: Vec<String> = over.list(dir).unwrap().into_iter().map(|listed| listed.name).collect();
            names.sort();
            names
        };
        assert_eq!((names("dir"), names("")), (vec!["c".to_owned()], vec!["d".to_owned(), "dir".to_owned()]));
        assert_eq!(over.stat("dir/c").unwrap().unwrap().len, 1);
        assert!(over.open("dir/a").unwrap().is_none() && over.stat("dir/b").unwrap().is_none());
        assert_eq!(below.paths(), ["dir/a", "dir/b"]);
    }
}
