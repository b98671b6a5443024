//! The destination's side of a backup: a stream becomes a generation.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Read, Write};

use super::frames::{
    self, Begin, ContentEnd, ContentFrame, Have, HaveHead, Kind, Known, SessionEnd, SessionFrame, VERSION,
};
use super::manifest::{FORMAT, Manifest, ManifestHead, Part, SessionCopy, SessionKind, SourceDamage};
use super::repository::{BackupError, Content, Repository};
use super::spool::{Pace, Spool};
use crate::Progress;

/// How a backup is received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveOptions {
    /// How many generations stay, the new one included; all of them if this is `None`.
    pub keep: Option<u64>,
    /// The most bytes a second; no limit if this is `None`.
    pub rate: Option<u64>,
}

/// What a destination asks for besides what is new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The keys of the server.
    pub keys: bool,
    /// That what it has already is read, too, so that damage in it is named.
    pub reread: bool,
}

/// What a backup came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The new generation.
    pub generation: u64,
    /// The commit that it is consistent at.
    pub commit: u64,
    /// Sessions in it.
    pub sessions: u64,
    /// Sessions of which nothing was new.
    pub unchanged: u64,
    /// Bytes of records and content that were written.
    pub written: u64,
    /// Old generations that were removed.
    pub removed: u64,
    /// What was wrong in the directory that was backed up.
    pub damage: Vec<SourceDamage>,
}

/// A part of this size or less is joined with the one that follows it.
const SMALL: u64 = 64 << 10;
/// Up to this many new files are flushed one by one.
const FEW: usize = 64;

/// Tells a store what a repository has, as JSON lines.
pub fn have(repository: &Repository, wanted: Wanted, out: &mut dyn Write) -> Result<(), BackupError> {
    let writing = || BackupError::io("say what the backup has");
    let newest = usable(repository)?;
    let head = HaveHead {
        stream: VERSION,
        store: newest.as_ref().map(|manifest| manifest.head.store.clone()),
        commit: newest.as_ref().map_or_else(Default::default, |manifest| manifest.head.commit),
        keys: wanted.keys,
        reread: wanted.reread,
    };
    put_line(&head, out).map_err(writing())?;
    let mut lacking = HashSet::new();
    for session in newest.iter().flat_map(|manifest| &manifest.sessions) {
        if !session.parts.iter().all(|part| repository.has_part(part)) {
            // It is sent as a whole.
            continue;
        }
        let known = Known {
            name: session.name.clone(),
            id: session.id.clone(),
            kind: session.kind,
            length: session.length,
            first: session.first.clone(),
            tail: session.tail.clone(),
        };
        put_line(&Have::Session(known), out).map_err(writing())?;
        for hash in session.parts.iter().flat_map(|part| &part.blobs) {
            if !repository.has_blob(hash) && lacking.insert(hash) {
                put_line(&Have::Wants(hash.clone()), out).map_err(writing())?;
            }
        }
    }
    Ok(())
}

fn put_line(value: &impl serde::Serialize, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&serde_json::to_vec(value)?)?;
    out.write_all(b"\n")
}

/// The generation that the next one builds on. A newest manifest that cannot be read must be decided about first.
fn usable(repository: &Repository) -> Result<Option<Manifest>, BackupError> {
    let mut generations = repository.generations()?;
    match generations.damaged.pop() {
        Some((file, reason)) if reason.contains("newer") => Err(BackupError::Damaged { file, reason }),
        // The next generation builds on the newest one that can be read, and what cannot be read stays.
        _ => Ok(generations.whole.pop()),
    }
}

/// Writes a stream to a repository as its next generation. Until this returns, the earlier generations are all there is.
pub fn receive(
    repository: &Repository,
    stream: &mut dyn Read,
    options: ReceiveOptions,
    progress: &dyn Progress,
) -> Result<Received, BackupError> {
    let generations = repository.generations()?;
    let next = generations.next;
    let previous = usable(repository)?;
    let mut receiver = Receiver::new(repository, previous, options.rate);
    let read = receiver.read(stream, progress);
    progress.end();
    let head = read?;
    let Receiver { sessions, written, unchanged, damage, new_files, new_dirs, .. } = receiver;
    flush(repository, &new_files, &new_dirs).map_err(BackupError::io("flush the backup"))?;
    let head = ManifestHead { damage, ..head };
    let manifest = Manifest { generation: next, head, sessions: sessions.into_values().collect() };
    repository.write_manifest(&manifest)?;
    let pruned = repository.prune(options.keep)?;
    Ok(Received {
        generation: next,
        commit: manifest.head.commit.0,
        sessions: manifest.sessions.iter().filter(|session| session.kind == SessionKind::Live).count() as u64,
        unchanged,
        written,
        removed: pruned.generations,
        damage: manifest.damage().cloned().collect(),
    })
}

fn flush(repository: &Repository, files: &[String], dirs: &HashSet<String>) -> io::Result<()> {
    let disk = &repository.disk;
    if files.len() > FEW {
        return disk.sync_all();
    }
    for file in files {
        if let Some(file) = disk.open(file)? {
            file.sync()?;
        }
    }
    let folders: HashSet<&str> =
        dirs.iter().map(|dir| dir.split_once('/').map_or(dir.as_str(), |(top, _)| top)).collect();
    for dir in dirs.iter().map(String::as_str).chain(folders).chain([""]) {
        disk.sync_dir(dir)?;
    }
    Ok(())
}

struct Receiver<'a> {
    repository: &'a Repository,
    previous: BTreeMap<(SessionKind, String), SessionCopy>,
    sessions: BTreeMap<(SessionKind, String), SessionCopy>,
    damage: Vec<SourceDamage>,
    written: u64,
    unchanged: u64,
    new_files: Vec<String>,
    new_dirs: HashSet<String>,
    pace: Pace,
}

impl<'a> Receiver<'a> {
    fn new(repository: &'a Repository, previous: Option<Manifest>, rate: Option<u64>) -> Self {
        let sessions = previous.into_iter().flat_map(|manifest| manifest.sessions);
        Self {
            repository,
            previous: sessions.map(|session| ((session.kind, session.name.clone()), session)).collect(),
            sessions: BTreeMap::new(),
            damage: Vec::new(),
            written: 0,
            unchanged: 0,
            new_files: Vec::new(),
            new_dirs: HashSet::new(),
            pace: Pace::new(rate),
        }
    }

    fn read(&mut self, stream: &mut dyn Read, progress: &dyn Progress) -> Result<ManifestHead, BackupError> {
        let mut bytes = Vec::new();
        let begin: Begin = match next(stream, &mut bytes)? {
            Kind::Begin => decoded(&bytes)?,
            kind => return Err(unexpected(kind)),
        };
        if begin.stream != VERSION {
            return Err(BackupError::Refused(format!(
                "the server is Banyan {} and sends backup stream {}; this is Banyan {}; use the server's version",
                begin.banyan,
                begin.stream,
                env!("CARGO_PKG_VERSION")
            )));
        }
        let mut head = ManifestHead {
            banyan_backup: FORMAT,
            store: begin.store,
            commit: begin.commit,
            time_ms: begin.time_ms,
            banyan: begin.banyan,
            keys: None,
            damage: Vec::new(),
        };
        progress.begin("Backing up sessions", begin.sessions);
        let mut done = 0;
        loop {
            match next(stream, &mut bytes)? {
                Kind::Session => {
                    self.session(decoded(&bytes)?, stream)?;
                    done += 1;
                    progress.step(done);
                }
                Kind::Content => self.content(&decoded::<ContentFrame>(&bytes)?.hash, stream)?,
                Kind::Keys => head.keys = Some(self.keys(&bytes)?),
                Kind::Damage => self.damage.push(decoded(&bytes)?),
                Kind::End => return Ok(head),
                kind @ (Kind::Begin | Kind::Data | Kind::SessionEnd | Kind::ContentEnd) => {
                    return Err(unexpected(kind));
                }
            }
        }
    }

    fn session(&mut self, frame: SessionFrame, stream: &mut dyn Read) -> Result<(), BackupError> {
        let key = (frame.kind, frame.name.clone());
        let previous = self.previous.get(&key).cloned();
        if frame.unchanged {
            let copy = previous.ok_or_else(|| broken("a session that is not in the backup did not change"))?;
            self.unchanged += 1;
            let damage = copied(&copy);
            self.sessions.insert(key, SessionCopy { damage, ..copy });
            return Ok(());
        }
        let mut spool = Spool::new(self.repository);
        let mut bytes = Vec::new();
        let end: SessionEnd = loop {
            match next(stream, &mut bytes)? {
                Kind::Data => {
                    spool.write(&bytes).map_err(BackupError::io("write records"))?;
                    self.pace.spend(bytes.len());
                }
                Kind::SessionEnd => break decoded(&bytes)?,
                kind => return Err(unexpected(kind)),
            }
        };
        let (length, hash) = (spool.length, spool.hash());
        if hash != end.hash {
            return Err(broken("records arrived changed"));
        }
        if let Some(previous) = previous
            .as_ref()
            .filter(|previous| frame.from == 0 && !end.damage.is_empty() && previous.born == frame.born)
        {
            // What is there now is damaged, and the copy is not.
            let mut damage = copied(previous);
            damage.extend(end.damage.into_iter().map(|damage| SourceDamage { copied: false, ..damage }));
            self.sessions.insert(key, SessionCopy { damage, ..previous.clone() });
            return Ok(());
        }
        let mut copy = match previous {
            Some(copy) if frame.from > 0 => copy,
            None if frame.from > 0 => return Err(broken("a session that is not in the backup goes on")),
            _ => SessionCopy {
                name: frame.name,
                kind: frame.kind,
                id: frame.id,
                born: frame.born,
                base: frame.base,
                length: 0,
                commit: Default::default(),
                first: String::new(),
                tail: (0, String::new()),
                parts: Vec::new(),
                damage: Vec::new(),
            },
        };
        if length == 0 {
            self.unchanged += 1;
        } else {
            // Whatever was provisional comes again.
            copy.parts.retain(|part| !part.provisional);
        }
        let stable = length.checked_sub(end.provisional).ok_or_else(|| broken("a session's end does not fit"))?;
        copy.length += stable;
        copy.commit = copy.commit.max(end.commit);
        copy.first = end.first.unwrap_or(copy.first);
        copy.tail = end.tail.unwrap_or(copy.tail);
        copy.damage = copied(&copy);
        copy.damage.extend(end.damage);
        let (stable_hash, provisional) = spool.split(stable).map_err(BackupError::io("write records"))?;
        if stable > 0 {
            let part = Part { hash: stable_hash, length: stable, blobs: end.blobs.clone(), provisional: false };
            self.add_part(&mut copy, part, spool)?;
        }
        if !provisional.is_empty() {
            let mut spool = Spool::new(self.repository);
            spool.write(&provisional).map_err(BackupError::io("write records"))?;
            let part = Part { hash: spool.hash(), length: spool.length, blobs: end.blobs, provisional: true };
            self.place(Content::Records, &part.hash, spool)?;
            copy.parts.push(part);
        }
        self.sessions.insert(key, copy);
        Ok(())
    }

    /// Adds new records. Small parts are joined, so that their number grows with the logarithm of the number of backups.
    fn add_part(
        &mut self,
        copy: &mut SessionCopy,
        mut part: Part,
        mut spool: Spool<'a>,
    ) -> Result<(), BackupError> {
        while let Some(last) = copy.parts.last()
            && spool.is_in_memory()
            && last.length <= part.length.max(SMALL)
        {
            let before = self.repository.read_file(&Content::Records.path(&last.hash));
            // A part that cannot be read stays as it is, for `verify` to name.
            let Some(before) = before.ok().filter(|bytes| blake3::hash(bytes).to_hex().as_str() == last.hash)
            else {
                break;
            };
            spool.prepend(&before);
            part.blobs.extend(last.blobs.iter().cloned());
            part.blobs.sort_unstable();
            part.blobs.dedup();
            copy.parts.pop();
            part.length = spool.length;
            part.hash = spool.hash();
        }
        self.place(Content::Records, &part.hash, spool)?;
        copy.parts.push(part);
        Ok(())
    }

    fn place(&mut self, content: Content, hash: &str, spool: Spool<'_>) -> Result<(), BackupError> {
        let length = spool.length;
        let place = || {
            let path = spool.finish()?;
            self.repository.put(content, hash, &path, &mut self.new_dirs)
        };
        if place().map_err(BackupError::io("write the backup"))? {
            self.new_files.push(content.path(hash));
            self.written += length;
        }
        Ok(())
    }

    fn content(&mut self, hash: &str, stream: &mut dyn Read) -> Result<(), BackupError> {
        let writing = || BackupError::io("write content");
        let mut spool = Spool::new(self.repository);
        let mut bytes = Vec::new();
        let end: ContentEnd = loop {
            match next(stream, &mut bytes)? {
                Kind::Data => {
                    spool.write(&bytes).map_err(writing())?;
                    self.pace.spend(bytes.len());
                }
                Kind::ContentEnd => break decoded(&bytes)?,
                kind => return Err(unexpected(kind)),
            }
        };
        if end.is_whole {
            if spool.hash() != hash {
                return Err(broken("content arrived changed"));
            }
            return self.place(Content::Blobs, hash, spool);
        }
        let kept = if self.repository.has_blob(hash) { "; the backup keeps its copy" } else { "" };
        let file = format!(".banyan/blobs/{}/{hash}", hash.get(..2).unwrap_or_default());
        let reason = format!("is missing or damaged{kept}");
        self.damage.push(SourceDamage { file, offset: None, reason, copied: false });
        Ok(())
    }

    fn keys(&mut self, bytes: &[u8]) -> Result<String, BackupError> {
        let mut spool = Spool::new(self.repository);
        spool.write(bytes).map_err(BackupError::io("write the keys"))?;
        let hash = spool.hash();
        self.place(Content::Keys, &hash, spool)?;
        Ok(hash)
    }
}

/// The damage that a copy itself has.
fn copied(copy: &SessionCopy) -> Vec<SourceDamage> {
    copy.damage.iter().filter(|damage| damage.copied).cloned().collect()
}

fn next(stream: &mut dyn Read, bytes: &mut Vec<u8>) -> Result<Kind, BackupError> {
    match frames::read(stream, bytes) {
        Ok(Some(kind)) => Ok(kind),
        Ok(None) => Err(broken("the stream ended early")),
        Err(error) => Err(BackupError::BrokenOff(error.to_string())),
    }
}

fn decoded<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, BackupError> {
    frames::json(bytes).map_err(|error| BackupError::BrokenOff(error.to_string()))
}

fn broken(reason: &str) -> BackupError {
    BackupError::BrokenOff(reason.to_owned())
}

fn unexpected(kind: Kind) -> BackupError {
    BackupError::BrokenOff(format!("a frame of kind {kind:?} where another is due"))
}
