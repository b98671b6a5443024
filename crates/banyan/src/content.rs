//! Removing content and bases: the catalogue only proposes, and all session files decide.
//!
//! What seems unused is set aside first. It is removed when its time there is over, after a complete reading of all session
//! files, bases and the log proved that no record uses it. While anything cannot be read, nothing is removed.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use banyan_core::Born;
use banyan_core::record::{Head, HeadKind};
use banyan_index::{FileKey, Standing};
use banyan_log::{At, LogError, SessionLog};
use banyan_model::{AttachmentId, Error, SessionId};

use crate::Banyan;
use crate::load::base_in;
use crate::store::{Purpose, Store};

/// What came of removing unused content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweptContent {
    /// What was removed: content by its hash, records that were kept for forks as `<born>.jsonl`.
    pub removed: Vec<String>,
    /// How many bytes that was.
    pub bytes: u64,
    /// What stays because a record uses it after all; it is put back.
    pub kept: Vec<String>,
    /// What could not be read. If there is anything, nothing was removed.
    pub unreadable: Vec<String>,
}

impl SweptContent {
    /// True if all files could be read, so that what is unused was removed.
    pub fn is_complete(&self) -> bool {
        self.unreadable.is_empty()
    }
}

/// What the records of a directory use.
#[derive(Default)]
struct Uses {
    /// Content, by the incarnation that uses it; `None` for all live sessions.
    content: HashMap<Option<Born>, HashSet<String>>,
    /// The bases that forks name, by the incarnation that names them; `None` for a live session.
    bases: Vec<(Option<Born>, Born)>,
    unreadable: Vec<String>,
}

/// At most this many unreadable things are named.
const MOST_NAMED: usize = 100;

/// Between two attempts of the housekeeper to remove what has been aside for its time.
pub(crate) const BETWEEN_SWEEPS: Duration = Duration::from_secs(3600);

impl Banyan {
    /// Removes all content that no session uses now, without waiting for its time aside. Reads all session files first; if
    /// anything cannot be read, nothing is removed, and the result names it.
    pub fn purge_content(&self) -> Result<SweptContent, Error> {
        self.access.must_write()?;
        self.store.set_unused_aside()?;
        self.store.sweep(Duration::ZERO)
    }

    /// Removes the unused content that has been aside for [`Options::aside_for`](crate::Options::aside_for), in the same way.
    pub fn sweep_content(&self) -> Result<SweptContent, Error> {
        self.access.must_write()?;
        self.store.sweep(self.store.settings.aside_for)
    }
}

impl Store {
    /// Moves content aside that no session uses any more, as far as the catalogue knows.
    pub(crate) fn collect_garbage(&self) {
        const AT_ONCE: usize = 256;
        if self.holds.is_any() {
            return;
        }
        while let Ok(orphans) = self.catalogue.orphans(AT_ONCE) {
            if orphans.is_empty() {
                return;
            }
            let moved: Vec<_> =
                orphans.iter().filter(|hash| self.set_content_aside(hash).is_ok()).copied().collect();
            // What could not be moved now is tried again when the store is opened next.
            if self.catalogue.collected(&moved).is_err() || moved.len() < orphans.len() {
                return;
            }
        }
    }

    /// Moves content aside that a crash left without a user, and removes what was never whole.
    pub(crate) fn set_unused_aside(&self) -> Result<(), LogError> {
        self.collect_garbage();
        for hash in self.log.blobs()? {
            if let Ok(hash) = blake3::Hash::from_hex(&hash) {
                self.set_content_aside(&hash)?;
            }
        }
        Ok(())
    }

    fn set_content_aside(&self, hash: &blake3::Hash) -> Result<(), LogError> {
        let unused = || self.catalogue.blob_users(hash).is_ok_and(|users| users == 0);
        self.log.set_blob_aside(&hash.to_hex(), &unused)
    }

    /// Ends a call that stored content and committed nothing.
    pub(crate) fn forget_content(&self, hash: &str) {
        let known = blake3::Hash::from_hex(hash);
        let unused =
            || known.as_ref().is_ok_and(|hash| self.catalogue.blob_users(hash).is_ok_and(|users| users == 0));
        // What cannot be removed now is set aside when the store is opened next.
        let _ = self.log.forget_blob(hash, &unused);
    }

    /// Marks a deleted session's records once no fork seems to read them.
    pub(crate) fn release_base(&self, base: Option<FileKey>) {
        let Some(key) = base else { return };
        if self.holds.defer(&key) {
            return;
        }
        let Ok(born) = key.born.parse() else { return };
        let unused = self.catalogue.forks(&key).is_ok_and(|forks| forks.is_empty());
        if unused && self.log.is_retained(born) {
            // What cannot be marked now is marked when the store is opened next.
            let _ = self.log.mark_unused(born);
        }
    }

    /// Removes what has been aside for some time, if all session files say that no record uses it.
    pub(crate) fn sweep(&self, aside_for: Duration) -> Result<SweptContent, Error> {
        if self.holds.is_any() {
            let reason = "a backup or a check is reading; try again when it has ended".to_owned();
            return Ok(SweptContent { unreadable: vec![reason], ..SweptContent::default() });
        }
        let due = |seconds: &u64| *seconds >= aside_for.as_secs();
        let mut purged = SweptContent::default();
        // Records that are removed may have been the last to use some content.
        loop {
            let content: Vec<String> =
                self.log.aside_content().into_iter().filter(|(_, age)| due(age)).map(|(hash, _)| hash).collect();
            let bases: Vec<Born> =
                self.log.aside_bases().into_iter().filter(|(_, age)| due(age)).map(|(born, _)| born).collect();
            if (content.is_empty() && bases.is_empty()) || self.settings.purpose == Purpose::Inspection {
                return Ok(purged);
            }
            let uses = self.read_uses();
            if !uses.unreadable.is_empty() {
                purged.unreadable = uses.unreadable;
                return Ok(purged);
            }
            let needed = uses.needed_bases();
            let removed = self.remove_bases(&bases, &needed, &mut purged)?;
            self.remove_content(content, &uses, &needed, &mut purged)?;
            if !removed {
                return Ok(purged);
            }
            self.collect_garbage();
            self.mark_freed_bases()?;
        }
    }

    /// Marks bases whose last fork was a base that was removed.
    fn mark_freed_bases(&self) -> Result<(), Error> {
        let mut retained = Vec::new();
        self.catalogue.files(|seen| {
            if seen.standing == Standing::Retained {
                retained.push(seen.key);
            }
        })?;
        retained.into_iter().for_each(|key| self.release_base(Some(key)));
        Ok(())
    }

    /// Has the catalogue rebuilt if content was aside that a record uses: it did not know of the record.
    pub(crate) fn distrust_after_return(&self) {
        if self.log.take_content_returned() {
            self.warn("content that is in use was aside and is put back; the catalogue is rebuilt");
            self.catalogue.distrust();
        }
    }

    fn remove_bases(
        &self,
        bases: &[Born],
        needed: &HashSet<Born>,
        purged: &mut SweptContent,
    ) -> Result<bool, Error> {
        let mut keys = HashMap::new();
        if !bases.is_empty() {
            self.catalogue.files(|seen| {
                if seen.standing == Standing::Retained {
                    keys.insert(seen.key.born.clone(), seen.key);
                }
            })?;
        }
        let mut removed = false;
        for born in bases {
            let name = format!("{born}.jsonl");
            if needed.contains(born) {
                self.log.unmark(*born)?;
                purged.kept.push(name);
                continue;
            }
            purged.bytes += self.log.release(*born)?;
            if let Some(key) = keys.get(&born.to_string()) {
                self.catalogue.release(key);
            }
            purged.removed.push(name);
            removed = true;
        }
        Ok(removed)
    }

    fn remove_content(
        &self,
        content: Vec<String>,
        uses: &Uses,
        needed: &HashSet<Born>,
        purged: &mut SweptContent,
    ) -> Result<(), Error> {
        for hash in content {
            let mut users =
                uses.content.iter().filter(|(_, used)| used.contains(&hash)).map(|(by, _)| by).peekable();
            let is_unused = users.peek().is_none();
            if users.any(|by| by.is_none_or(|by| needed.contains(&by))) {
                self.log.bring_back_content(&hash)?;
                purged.kept.push(hash);
            } else if !is_unused {
                // Only bases on their way out use it: it goes after them.
            } else if let Some(length) = self.log.remove_aside_content(&hash)? {
                purged.bytes += length;
                purged.removed.push(hash);
            }
        }
        Ok(())
    }

    /// Reads all session files and bases, each line of them.
    ///
    /// What is stored after this began is not aside, so a record that begins to use something meanwhile is no danger. Live
    /// sessions come first: one that ends meanwhile is then found among the bases.
    fn read_uses(&self) -> Uses {
        let mut uses = Uses::default();
        match self.log.unreadable() {
            Ok(found) => uses.unreadable.extend(found),
            Err(error) => uses.unreadable.push(error.to_string()),
        }
        match self.log.sessions() {
            Ok(sessions) => {
                for id in &sessions {
                    let name = format!("{}.jsonl", banyan_core::names::file_stem(id));
                    self.read_uses_of(At::Live(id), &name, None, &mut uses);
                }
            }
            Err(error) => uses.unreadable.push(error.to_string()),
        }
        let unnamed = SessionId::from("");
        for born in self.log.retained() {
            let name = format!(".banyan/bases/{born}.jsonl");
            self.read_uses_of(At::Incarnation(&unnamed, born), &name, Some(born), &mut uses);
        }
        uses.unreadable.truncate(MOST_NAMED);
        uses
    }

    fn read_uses_of(&self, at: At<'_>, name: &str, of: Option<Born>, uses: &mut Uses) {
        let (mut number, mut next) = (0_u64, 0_u64);
        let mut attached: HashMap<AttachmentId, String> = HashMap::new();
        let Uses { content, bases, unreadable } = uses;
        let content = content.entry(of).or_default();
        let mut doubt = |number: u64, reason: &str| {
            if unreadable.len() < MOST_NAMED {
                unreadable.push(format!("{name}, line {number}: {reason}"));
            }
        };
        let scanned = self.log.scan(at, 0, &mut |offset, line| {
            number += 1;
            if line.iter().all(u8::is_ascii_whitespace) {
                return;
            }
            let head = match Head::parse(line) {
                Ok(head) => head,
                Err(fault) => {
                    next += 1;
                    return doubt(number, &fault.reason.to_string());
                }
            };
            if let Some(envelope) = &head.envelope {
                if envelope.seq.0 != next {
                    doubt(
                        number,
                        &format!("record {} is expected here, and it is record {}", next, envelope.seq.0),
                    );
                }
                next = envelope.seq.0;
            }
            next += 1;
            if offset == 0
                && let Some(base) = base_in(line)
            {
                bases.push((of, base.born));
            }
            content.extend(head.blobs.into_iter().map(|blob| blob.hash));
            match head.kind {
                HeadKind::Attached(put) => {
                    attached.insert(put.attachment.attachment_id.clone(), put.blob.clone());
                }
                HeadKind::Detached(detached) => {
                    attached.remove(&detached.attachment_id);
                }
                HeadKind::Newer(newer) => doubt(number, &newer.to_string()),
                HeadKind::Unknown(kind) => {
                    doubt(number, &format!("the type `{kind}` is not known to this version"))
                }
                _ => {}
            }
        });
        match scanned {
            Ok(Some(scanned)) if scanned.torn > 0 => doubt(number + 1, "it was never finished"),
            // It ended since it was listed.
            Ok(_) => {}
            Err(error) => doubt(0, &error.to_string()),
        }
        content.extend(attached.into_values());
    }

    /// Tries to remove what has been aside for its time, if it is time to. Returns when that was.
    pub(crate) fn sweep_if_due(&self, last: Option<Instant>) -> Option<Instant> {
        if last.is_some_and(|last| last.elapsed() < BETWEEN_SWEEPS) {
            return last;
        }
        let due = |age: u64| age >= self.settings.aside_for.as_secs();
        let mut ages = self.log.aside_content().into_iter().map(|(_, age)| age);
        if !ages.any(due) && !self.log.aside_bases().into_iter().any(|(_, age)| due(age)) {
            return last;
        }
        match self.sweep(self.settings.aside_for) {
            Ok(purged) if !purged.is_complete() => self.warn(&format!(
                "unused content stays, because not all files can be read: {}",
                purged.unreadable.join("; ")
            )),
            Ok(_) => {}
            Err(error) => self.warn(&format!("unused content cannot be removed: {}", error.message)),
        }
        Some(Instant::now())
    }
}

impl Uses {
    /// The bases that live sessions read, and those that these read in turn.
    fn needed_bases(&self) -> HashSet<Born> {
        let mut needed: HashSet<Born> = HashSet::new();
        let mut reached: Vec<Option<Born>> = vec![None];
        while let Some(from) = reached.pop() {
            for (_, base) in self.bases.iter().filter(|(by, _)| *by == from) {
                if needed.insert(*base) {
                    reached.push(Some(*base));
                }
            }
        }
        needed
    }
}
