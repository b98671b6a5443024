//! Opening after whatever happened: what the write-ahead log has is put back, byte for byte.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use banyan_model::CommitNo;

use super::checkpoint::Sealed;
use super::frame::Op;
use super::layout;
use super::segment::{self, Header};
use super::shared::Shared;
use crate::LogError;
use crate::disk::Disk;

/// What opening found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Commits that were in the write-ahead log: the last stop was not a clean one.
    pub commits: u64,
    /// File names of sessions that those commits touched.
    pub touched: Vec<String>,
    /// Blobs that may have lost their last user in them.
    pub blobs: Vec<String>,
    /// What was damaged, in plain words.
    pub warnings: Vec<String>,
}

/// The segments that were in use, oldest first.
pub(crate) struct Segments {
    pub(crate) used: Vec<(Header, Vec<u8>, String)>,
    /// Files that hold nothing any more.
    pub(crate) stale: Vec<String>,
    pub(crate) highest: u64,
}

/// Reads all segments.
pub(crate) fn segments(disk: &dyn Disk) -> Result<Segments, LogError> {
    let reading = || LogError::io("reading the write-ahead log");
    let mut found = Vec::new();
    let mut stale = Vec::new();
    let mut highest = 0;
    for listed in disk.list(layout::WAL).map_err(reading())? {
        let Some(id) = segment::id_of(&listed.name) else { continue };
        highest = highest.max(id);
        let path = layout::segment(id);
        let Some(file) = disk.open(&path).map_err(reading())? else { continue };
        let bytes = segment::read_all(file.as_ref()).map_err(reading())?;
        match segment::read_header(&bytes) {
            Some(header) if header.id == id => found.push((header, bytes, path)),
            _ => stale.push(path),
        }
    }
    found.sort_by_key(|(header, _, _)| header.id);
    Ok(Segments { used: found, stale, highest })
}

/// Puts back what the log has. Nothing is dropped here: the next checkpoint does that.
pub(crate) fn recover(shared: &Shared) -> Result<Recovered, LogError> {
    let mut recovered = Recovered::default();
    let segments = segments(shared.disk.as_ref())?;
    for path in &segments.stale {
        shared.disk.remove(path).map_err(LogError::io(format!("removing {path}")))?;
    }
    let mut plan = Plan::default();
    let mut head = CommitNo(0);
    let mut sealed = Vec::new();
    for (header, bytes, path) in &segments.used {
        if head.0 != 0 && header.first_commit.0 != head.0.saturating_add(1) {
            let gap = format!(
                "{path}: starts at commit {} but the log before it ends at {}",
                header.first_commit.0, head.0
            );
            recovered.warnings.push(gap);
        }
        let used = segment::frames(bytes, *header, &mut |frame| {
            head = frame.commit;
            recovered.commits += 1;
            plan.add(&frame.ops);
        });
        if let Some(later) = segment::frame_after(bytes, used, *header) {
            recovered.warnings.push(format!(
                "{path}: commit {} cannot be read though commit {later} can; unless the power went while both were \
                 being written, something is lost",
                head.0.saturating_add(1)
            ));
        }
        head = head.max(CommitNo(header.first_commit.0.saturating_sub(1)));
        sealed.push(Sealed { segment: header.id, through: head, size: bytes.len() as u64 });
    }
    plan.carry_out(shared, &mut recovered)?;
    let journal_head = last_in_journal(shared)?;
    shared.head.store(head.0.max(journal_head.0), Ordering::Release);
    let mut upkeep = shared.upkeep();
    upkeep.next_id = segments.highest + 1;
    upkeep.sealed = sealed;
    Ok(recovered)
}

/// Bytes for a file, each with its offset, in order.
type Writes = Vec<(u64, Vec<u8>)>;

/// The operations of all frames, sorted by the file that they end up in.
#[derive(Default)]
struct Plan {
    /// Bytes for each path since it was last removed or moved away.
    writes: HashMap<String, Writes>,
    order: Vec<String>,
    removed: BTreeSet<String>,
    /// Where a path's file was moved to, with the bytes that it had coming.
    moves: Vec<(String, String, Writes)>,
    blobs: Vec<String>,
}

impl Plan {
    fn add(&mut self, ops: &[Op<'_>]) {
        for op in ops {
            match op {
                Op::Write { path, offset, bytes } => {
                    if !self.writes.contains_key(*path) {
                        self.order.push((*path).to_owned());
                    }
                    self.writes.entry((*path).to_owned()).or_default().push((*offset, bytes.to_vec()));
                }
                Op::Remove { path } => {
                    self.writes.remove(*path);
                    self.order.retain(|kept| kept != path);
                    self.removed.insert((*path).to_owned());
                }
                Op::Retain { path, base } => {
                    let writes = self.writes.remove(*path).unwrap_or_default();
                    self.order.retain(|kept| kept != path);
                    self.moves.push(((*path).to_owned(), (*base).to_owned(), writes));
                }
                Op::Blob { hash } => self.blobs.push((*hash).to_owned()),
            }
        }
    }

    fn carry_out(self, shared: &Shared, recovered: &mut Recovered) -> Result<(), LogError> {
        for (path, base, writes) in self.moves {
            let opening = || LogError::io(format!("opening {base}"));
            let moved = shared.disk.open(&base).map_err(opening())?.is_some();
            let at = if moved { &base } else { &path };
            let whole = writes.first().is_some_and(|(offset, _)| *offset == 0);
            if !moved && !whole && shared.disk.open(&path).map_err(opening())?.is_none() {
                // It was moved, and then let go because no fork read it any more.
                continue;
            }
            restore(shared, at, &writes, recovered)?;
            let file = shared.files.ensure(at).map_err(LogError::io(format!("opening {at}")))?;
            let finish = || {
                file.write_out()?;
                file.sync()?;
                if !moved {
                    shared.disk.create_dir(layout::BASES)?;
                    file.rename(&base)?;
                    shared.files.forget(&path);
                }
                shared.disk.sync_dir(layout::BASES)?;
                shared.disk.sync_dir("")
            };
            finish().map_err(LogError::io(format!("moving {path} to {base}")))?;
            shared.upkeep().dirty.remove(at.as_str());
            recovered.touched.push(path);
        }
        for path in self.removed {
            // Bytes that the log has for a file of this name are of a later one: it starts empty.
            let file = shared.files.ensure(&path).map_err(LogError::io(format!("opening {path}")))?;
            file.remove().map_err(LogError::io(format!("removing {path}")))?;
            shared.files.forget(&path);
            recovered.touched.push(path);
        }
        for path in self.order {
            let Some(writes) = self.writes.get(&path) else { continue };
            restore(shared, &path, writes, recovered)?;
            if layout::stem(&path).is_some() {
                recovered.touched.push(path);
            }
        }
        recovered.touched.sort_unstable();
        recovered.touched.dedup();
        recovered.blobs = self.blobs;
        Ok(())
    }
}

fn restore(
    shared: &Shared,
    path: &str,
    writes: &[(u64, Vec<u8>)],
    recovered: &mut Recovered,
) -> Result<(), LogError> {
    if writes.is_empty() {
        return Ok(());
    }
    let file = shared.files.ensure(path).map_err(LogError::io(format!("opening {path}")))?;
    for (offset, bytes) in writes {
        let restoring = LogError::io(format!("recovering {path}"));
        let missing = file.restore(*offset, bytes).map_err(restoring)?;
        if missing > 0 {
            recovered.warnings.push(format!("{path}: {missing} bytes are missing before offset {offset}"));
        }
    }
    if layout::stem(path).is_some() {
        file.close_restored();
    }
    shared.mark_dirty(&Arc::clone(&file));
    Ok(())
}

/// The last commit that the journal knows.
fn last_in_journal(shared: &Shared) -> Result<CommitNo, LogError> {
    let mut last = CommitNo(0);
    let firsts = super::replay::journal_files(shared)?;
    if let Some(first) = firsts.last() {
        super::replay::entries(shared, *first, 0, &mut |entry, _| {
            last = entry.commit;
            true
        })?;
        last = last.max(CommitNo(first.saturating_sub(1)));
    }
    Ok(last)
}
