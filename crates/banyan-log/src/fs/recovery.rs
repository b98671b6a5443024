//! Opening after whatever happened: what the write-ahead log has is put back, byte for byte, and what it has lost is named.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use banyan_model::CommitNo;

use super::checkpoint::Sealed;
use super::damage_log::{self, LostCommits};
use super::format::DirectoryId;
use super::frame::follow_ops;
use super::live_segments::{self, Live};
use super::plan::Plan;
use super::segment_scan::{self, Contents, Hole, Scanned};
use super::shared::Shared;
use super::{Durability, layout, register, segment};
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
    /// Commits that were found lost this time. They are in the directory's list of damage from now on.
    pub lost: Vec<LostCommits>,
    /// What was damaged, in plain words.
    pub warnings: Vec<String>,
    /// What is worth knowing, and no damage.
    pub notes: Vec<String>,
    /// A file could not be restored, so the segments that have its bytes are kept.
    pub(crate) kept_back: bool,
}

/// The segments of a write-ahead log, oldest first.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) used: Vec<Used>,
    /// Files that hold nothing any more.
    unused: Vec<String>,
    /// Files of which it cannot be told what they hold, and why.
    unreadable: Vec<(u64, String)>,
    /// Segments that were in use, by the witness.
    live: HashMap<u64, Live>,
    highest: u64,
    lost: Vec<LostCommits>,
    warnings: Vec<String>,
}

/// A segment with frames, or with room for them.
pub(crate) struct Used {
    pub(crate) id: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) scanned: Scanned,
}

impl Used {
    fn last(&self) -> Option<CommitNo> {
        self.scanned.frames.last().map(|span| span.commit)
    }
}

impl Log {
    /// Reads all segments, and finds out what is missing. Changes nothing.
    pub(crate) fn read(disk: &dyn Disk, directory: Option<DirectoryId>) -> Result<Self, LogError> {
        let live = live_segments::read(disk).into_iter().map(|live| (live.segment, live)).collect();
        let mut log = Self { live, ..Self::default() };
        let listed = disk.list(layout::WAL).map_err(LogError::io("listing the write-ahead log"))?;
        let mut ids: Vec<u64> = listed.iter().filter_map(|listed| segment::id_of(&listed.name)).collect();
        ids.sort_unstable();
        let set_aside = listed.iter().filter_map(|listed| segment::id_of(listed.name.strip_suffix(SET_ASIDE)?));
        log.highest = set_aside.chain(ids.iter().copied()).chain(log.live.keys().copied()).max().unwrap_or(0);
        for id in &ids {
            log.read_segment(disk, *id, directory)?;
        }
        log.settle();
        log.miss(&ids);
        Ok(log)
    }

    fn read_segment(&mut self, disk: &dyn Disk, id: u64, directory: Option<DirectoryId>) -> Result<(), LogError> {
        let path = layout::segment(id);
        let bytes = match disk
            .open(&path)
            .and_then(|file| file.map(|file| segment::read_all(file.as_ref())).transpose())
        {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.unreadable.push((id, format!("cannot be read: {error}")));
                return Ok(());
            }
        };
        if directory.is_some_and(|directory| segment::is_foreign(&bytes, directory)) {
            self.unreadable.push((id, "is of another data directory".to_owned()));
            return Ok(());
        }
        let next = self.used.last().and_then(Used::last).map(|last| CommitNo(last.0 + 1));
        let live = self.live.get(&id);
        match segment_scan::scan(id, &bytes, next.or(live.map(|live| live.first)))? {
            Contents::Used(scanned) => {
                if scanned.header_damaged {
                    self.warnings
                        .push(format!("{path}: the header is damaged; its commits were found without it"));
                }
                self.used.push(Used { id, bytes, scanned });
            }
            // Once a batch was flushed to it, its first write had ended.
            Contents::Unused | Contents::Unfinished if live.is_some_and(|live| live.begun) => {
                self.unreadable.push((id, "holds no commit any more".to_owned()));
            }
            Contents::Unused | Contents::Unfinished => self.unused.push(path),
            Contents::Unreadable => {
                self.unreadable.push((id, "is damaged, and holds no commit that can be read".to_owned()))
            }
        }
        Ok(())
    }

    /// Decides which holes are damage, drops what was never finished, and names what was lost.
    fn settle(&mut self) {
        let mut next_first = None;
        for used in self.used.iter_mut().rev() {
            let scanned = &mut used.scanned;
            // A segment is flushed before the next one is begun.
            if next_first.is_some() {
                scanned.holes.iter_mut().for_each(|hole| hole.was_whole = true);
            }
            if let Some(unfinished) = scanned.holes.iter().position(|hole| !hole.was_whole) {
                let end = scanned.holes[unfinished].at;
                scanned.holes.truncate(unfinished);
                scanned.frames.retain(|span| span.at < end);
            }
            if let Some(next) = next_first {
                close_gap(used, next);
            }
            next_first = used.scanned.frames.first().map(|span| span.commit).or(next_first);
        }
        for used in &self.used {
            let lost = used.scanned.holes.iter().map(|hole| lost_in(&layout::segment(used.id), hole));
            self.lost.extend(lost);
        }
    }

    /// Names the segments that the witness says were in use, and that are gone, cut or unreadable.
    fn miss(&mut self, present: &[u64]) {
        let mut live: Vec<Live> = self.live.values().copied().collect();
        live.sort_unstable_by_key(|live| live.segment);
        for (at, Live { segment, size, first, begun }) in live.iter().copied().enumerate() {
            let used = self.used.iter().find(|used| used.id == segment);
            let unreadable = self.unreadable.iter().find(|(id, _)| *id == segment);
            let after = self.used.iter().filter(|used| used.id > segment).flat_map(|used| &used.scanned.frames);
            let next = after.map(|span| span.commit).min().or_else(|| live.get(at + 1).map(|next| next.first));
            let (reason, first, offset) = match (used, unreadable) {
                (Some(used), _) if (used.bytes.len() as u64) < size => {
                    let first = used.last().map_or(first, |last| CommitNo(last.0 + 1));
                    (format!("is shorter than the {size} bytes that it had"), first, used.bytes.len() as u64)
                }
                (Some(_), _) => continue,
                (None, Some((_, reason))) => (reason.clone(), first, 0),
                (None, None) if present.contains(&segment) => continue,
                (None, None) if begun => ("is gone".to_owned(), first, 0),
                (None, None) => continue,
            };
            let last = next.map(|next| CommitNo(next.0.saturating_sub(1)));
            if last.is_some_and(|last| last < first) {
                continue;
            }
            let path = layout::segment(segment);
            self.warnings.push(format!("{path}: {reason}"));
            let length = size.saturating_sub(offset);
            self.lost.push(LostCommits { first, last, segment: path, offset, length, files: Vec::new() });
        }
        let unknown = self.unreadable.iter().filter(|(id, _)| !self.live.contains_key(id));
        for (id, reason) in unknown {
            let path = layout::segment(*id);
            let before = self.used.iter().rfind(|used| used.id < *id).and_then(Used::last);
            let first = CommitNo(before.map_or(0, |last| last.0) + 1);
            self.warnings.push(format!("{path}: {reason}"));
            self.lost.push(LostCommits {
                first,
                last: None,
                segment: path,
                offset: 0,
                length: 0,
                files: Vec::new(),
            });
        }
    }

    /// The highest commit number that the log has given out, as far as it knows.
    fn head(&self) -> CommitNo {
        /// How many commits are taken to be lost where their number is unknown: positions must not be given out twice.
        const UNKNOWN: u64 = 1 << 20;
        let frames = self.used.iter().filter_map(Used::last);
        let lost =
            self.lost.iter().map(|lost| lost.last.unwrap_or(CommitNo(lost.first.0.saturating_add(UNKNOWN))));
        frames.chain(lost).max().unwrap_or(CommitNo(0))
    }
}

/// Names commits that are missing between a segment's last frame and the first one of the next segment.
fn close_gap(used: &mut Used, next: CommitNo) {
    let scanned = &mut used.scanned;
    let last = CommitNo(next.0.saturating_sub(1));
    let end = used.bytes.len();
    let known = scanned.frames.last().map(|span| (span.commit, span.at + span.len));
    match scanned.holes.last_mut().filter(|hole| known.is_none_or(|(_, end)| hole.at >= end)) {
        Some(hole) => hole.last = hole.last.max(last),
        None => {
            if let Some((commit, at)) = known.filter(|(commit, _)| *commit < last) {
                let first = CommitNo(commit.0 + 1);
                scanned.holes.push(Hole { at, end, first, last, files: Vec::new(), was_whole: true });
            }
        }
    }
}

fn lost_in(path: &str, hole: &Hole) -> LostCommits {
    LostCommits {
        first: hole.first,
        last: Some(hole.last),
        segment: path.to_owned(),
        offset: hole.at as u64,
        length: (hole.end - hole.at) as u64,
        files: hole.files.clone(),
    }
}

/// What the name of a segment that cannot be used ends with.
pub(crate) const SET_ASIDE: &str = ".damaged";

/// Puts back what the log has. Segments with frames stay: the next checkpoint drops them.
pub(crate) fn recover(shared: &Shared) -> Result<Recovered, LogError> {
    let mut log = Log::read(shared.disk.as_ref(), Some(shared.directory))?;
    let journal_head = match last_in_journal(shared) {
        Ok(head) => head,
        Err(error) => {
            log.warnings.push(format!("{}: {error}", layout::JOURNAL));
            CommitNo(0)
        }
    };
    log.miss_journalled(shared, journal_head);
    let head = log.head().max(journal_head);
    let mut recovered = Recovered { warnings: std::mem::take(&mut log.warnings), ..Recovered::default() };
    let sentences = log.lost.iter().map(|lost| format!("{}: {}", lost.segment, lost.sentence()));
    recovered.warnings.extend(sentences);
    damage_log::add(shared.disk.as_ref(), &log.lost)?;
    // Only where something is lost does it matter what else knows of removals.
    let registered =
        if log.lost.is_empty() { None } else { register::read(shared.disk.as_ref(), shared.directory).ok() };
    let mut plan = Plan::new(&log.lost, registered.map(|registered| registered.removed).unwrap_or_default());
    let mut sealed = Vec::new();
    for used in &log.used {
        for span in &used.scanned.frames {
            let frame = used.bytes.get(span.at..span.at + span.len).unwrap_or_default();
            plan.add(span.commit, follow_ops(frame).0);
            recovered.commits += 1;
        }
        let through = used.last().unwrap_or(CommitNo(0));
        let size = used.bytes.len() as u64;
        sealed.push(Sealed { segment: used.id, through, size, damaged: !used.scanned.holes.is_empty() });
    }
    plan.carry_out(shared, &mut recovered)?;
    if recovered.kept_back {
        sealed.iter_mut().for_each(|sealed| sealed.damaged = true);
    }
    log.set_aside(shared)?;
    shared.head.store(head.0, Ordering::Release);
    shared.live.set(log.used.iter().filter_map(|used| log.live.get(&used.id).copied()).collect());
    recovered.lost = log.lost;
    let mut upkeep = shared.upkeep();
    upkeep.next_id = log.highest + 1;
    upkeep.sealed = sealed;
    Ok(recovered)
}

impl Log {
    /// Names commits that the journal on the disk has and the log has not: the journal is written after the log was flushed.
    fn miss_journalled(&mut self, shared: &Shared, journal_head: CommitNo) {
        let Some(last) = self.used.iter().rev().find_map(Used::last) else { return };
        let named = self.lost.iter().any(|lost| lost.last.is_none_or(|lost| lost >= journal_head));
        if shared.options.durability == Durability::Buffered || journal_head <= last || named {
            return;
        }
        let first = CommitNo(last.0 + 1);
        let segment = self.used.last().map_or_else(String::new, |used| layout::segment(used.id));
        let lost =
            LostCommits { first, last: Some(journal_head), segment, offset: 0, length: 0, files: Vec::new() };
        self.lost.push(lost);
    }

    /// Removes what holds nothing, and gives what cannot be read a name under which it is kept.
    fn set_aside(&self, shared: &Shared) -> Result<(), LogError> {
        for path in &self.unused {
            shared.disk.remove(path).map_err(LogError::io(format!("removing {path}")))?;
        }
        for (id, _) in &self.unreadable {
            let path = layout::segment(*id);
            // What cannot be renamed either stays, and its number is not used again.
            let _ = shared.disk.rename(&path, &format!("{path}{SET_ASIDE}"));
        }
        if !self.unreadable.is_empty() {
            shared.disk.sync_dir(layout::WAL).map_err(LogError::io("flushing the write-ahead log's directory"))?;
        }
        Ok(())
    }
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
