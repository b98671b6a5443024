//! Making a data directory of a backup. Everything that is restored is checked first; then it is written into an empty directory,
//! which cannot be opened before all of it is durable. The directory gets a history of its own.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use banyan_core::Born;
use banyan_core::names::Naming;
use banyan_log::disk::{Disk, OsDisk};
use banyan_log::restored::{self, place};
use banyan_model::SessionId;

use super::check::{Checked, check_blobs, check_sessions, each_line, note_source_damage};
use super::lines::{Cut, Line, LineReader};
use super::manifest::{Manifest, SessionCopy, SessionKind};
use super::repository::{BackupError, Content, Repository};
use crate::Progress;
use crate::verify::{Finding, Report};

/// What to restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restore {
    /// Only these sessions, with what they need; all of them if there are none here.
    pub sessions: Vec<SessionId>,
    /// The state to restore; the newest one if this is [`Cut::NONE`].
    pub at: Cut,
    /// Whether the keys of the server are restored.
    pub with_keys: bool,
}

/// What was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The generation that it was restored from.
    pub generation: u64,
    /// The commit up to which it was restored, at most.
    pub commit: u64,
    /// What was read, and what was wrong already when it was backed up.
    pub report: Report,
    /// Sessions that an earlier generation has and the restored state may have had: they were deleted some time before the
    /// generation that was used.
    pub left_out: Vec<SessionId>,
    /// Whether keys were restored.
    pub keys: bool,
}

/// Where one session's records go.
struct Target<'a> {
    path: String,
    copy: &'a SessionCopy,
}

/// Restores a backup onto an empty disk. Fails with the findings, and writes nothing, if anything that is needed is damaged.
pub fn restore(
    repository: &Repository,
    target: &Arc<dyn Disk>,
    request: &Restore,
    progress: &dyn Progress,
) -> Result<Result<Restored, Report>, BackupError> {
    let listed = target.list("").map_err(BackupError::io("look at the directory"))?;
    if let Some(there) = listed.first() {
        return Err(BackupError::Refused(format!(
            "the directory is not empty: it has `{}`; restore into an empty one",
            there.name
        )));
    }
    let (manifest, left_out) = choose(repository, request.at)?;
    let chosen = targets(&manifest, &request.sessions, Naming::CaseSensitive)?;
    let mut checked = check_sessions(repository, chosen.iter().map(|target| target.copy), request.at, progress);
    check_blobs(repository, &mut checked, progress);
    let keys = manifest.head.keys.clone().filter(|_| request.with_keys);
    if request.with_keys && keys.is_none() {
        return Err(BackupError::Refused("this backup has no keys; back up with --with-keys".to_owned()));
    }
    leave_out_known(&manifest, &mut checked);
    if !checked.report.is_sound() {
        return Ok(Err(checked.report));
    }
    restored::begin(target.as_ref())?;
    let targets = targets(&manifest, &request.sessions, place::naming(target.as_ref())?)?;
    let blobs: Vec<String> = checked.blobs.keys().filter(|hash| repository.has_blob(hash)).cloned().collect();
    for dir in place::directories(&blobs) {
        target.create_dir(&dir).map_err(BackupError::io(format!("make {dir}")))?;
    }
    let steps = targets.len() as u64 + blobs.len() as u64;
    progress.begin("Restoring", steps);
    let mut done = 0;
    for Target { path, copy } in &targets {
        write_session(repository, target.as_ref(), path, copy, request.at)?;
        done += 1;
        progress.step(done);
    }
    for hash in &blobs {
        copy_file(repository, &Content::Blobs.path(hash), target.as_ref(), &place::blob(hash), hash)?;
        done += 1;
        progress.step(done);
    }
    if let Some(hash) = &keys {
        copy_file(repository, &Content::Keys.path(hash), target.as_ref(), KEYS, hash)?;
    }
    target.sync_all().map_err(BackupError::io("flush what was restored"))?;
    progress.end();
    // Positions that were given out up to the newest backup, whatever is restored, must not be given out again.
    let newest = repository.newest()?.map_or(manifest.head.commit, |newest| newest.head.commit);
    let commit = manifest.head.commit.min(request.at.commit);
    let history = restored::Restored::of(manifest.head.store.clone(), newest.max(commit));
    restored::finish(target.as_ref(), &restored::Restored { commit, ..history })?;
    note_source_damage(&manifest, &mut checked.report);
    let restored = Restored {
        generation: manifest.generation,
        commit: commit.0,
        report: checked.report,
        left_out,
        keys: keys.is_some(),
    };
    Ok(Ok(restored))
}

/// Where a server's keys are in a data directory.
pub const KEYS: &str = ".banyan/keys.json";

/// Content that was missing when it was backed up is known, and does not keep the rest from being restored.
fn leave_out_known(manifest: &Manifest, checked: &mut Checked) {
    let known: HashSet<&str> =
        manifest.head.damage.iter().filter_map(|damage| damage.file.rsplit('/').next()).collect();
    let missing: Vec<String> = checked
        .blobs
        .keys()
        .filter(|hash| known.contains(hash.as_str()))
        .map(|hash| Content::Blobs.path(hash))
        .collect();
    checked.report.findings.retain(|finding: &Finding| !missing.contains(&finding.file));
}

/// The generation that has a state, and the sessions that an earlier one has besides.
fn choose(repository: &Repository, at: Cut) -> Result<(Manifest, Vec<SessionId>), BackupError> {
    let generations = repository.generations()?;
    if let Some((file, reason)) = generations.damaged.last()
        && (at == Cut::NONE || generations.whole.is_empty())
    {
        return Err(BackupError::Damaged {
            file: file.clone(),
            reason: format!("{reason}; nothing was restored; --at restores an earlier state"),
        });
    }
    let newest = generations.whole.last();
    let newest = newest.ok_or_else(|| BackupError::Refused("there is no backup here".to_owned()))?;
    if at == Cut::NONE {
        return Ok((newest.clone(), Vec::new()));
    }
    let reaches = |manifest: &Manifest| {
        (at.commit == Cut::NONE.commit || manifest.head.commit >= at.commit)
            && (at.time_ms == Cut::NONE.time_ms || manifest.head.time_ms >= at.time_ms)
    };
    let Some(index) = generations.whole.iter().position(reaches) else {
        return Err(BackupError::Refused(format!(
            "the newest backup is of commit {}, before the state that --at asks for; leave --at out to restore it",
            newest.head.commit
        )));
    };
    let chosen = &generations.whole[index];
    let has: HashSet<Born> = chosen.sessions.iter().map(|session| session.born).collect();
    let earlier = index.checked_sub(1).and_then(|index| generations.whole.get(index));
    let gone = earlier.into_iter().flat_map(|manifest| &manifest.sessions);
    let gone = gone.filter(|session| session.kind == SessionKind::Live && !has.contains(&session.born));
    Ok((chosen.clone(), gone.map(|session| session.id.clone()).collect()))
}

/// Which records go where. A base that is not asked for goes where forks find the records of deleted sessions.
fn targets<'a>(
    manifest: &'a Manifest,
    wanted: &[SessionId],
    naming: Naming,
) -> Result<Vec<Target<'a>>, BackupError> {
    let live = || manifest.sessions.iter().filter(|session| session.kind == SessionKind::Live);
    if wanted.is_empty() {
        let all = manifest.sessions.iter().map(|copy| Target {
            path: match copy.kind {
                SessionKind::Live => place::session(naming, &copy.id),
                SessionKind::Base => place::base(copy.born),
            },
            copy,
        });
        return Ok(all.collect());
    }
    let by_id: HashMap<&SessionId, &SessionCopy> = live().map(|copy| (&copy.id, copy)).collect();
    let by_born: HashMap<Born, &SessionCopy> = manifest.sessions.iter().map(|copy| (copy.born, copy)).collect();
    let mut chosen: BTreeMap<String, &SessionCopy> = BTreeMap::new();
    let mut placed: HashSet<Born> = HashSet::new();
    for id in wanted {
        let copy = by_id.get(id);
        let copy = copy.ok_or_else(|| BackupError::Refused(format!("session `{id}` is not in the backup")))?;
        chosen.insert(place::session(naming, id), copy);
        placed.insert(copy.born);
    }
    let mut bases: Vec<Born> = chosen.values().filter_map(|copy| copy.base).collect();
    while let Some(born) = bases.pop() {
        if !placed.insert(born) {
            continue;
        }
        // A fork whose base is lost restores what it has, as it is in the directory that was backed up.
        let Some(copy) = by_born.get(&born) else { continue };
        chosen.insert(place::base(born), copy);
        bases.extend(copy.base);
    }
    Ok(chosen.into_iter().map(|(path, copy)| Target { path, copy }).collect())
}

fn write_session(
    repository: &Repository,
    target: &dyn Disk,
    path: &str,
    copy: &SessionCopy,
    cut: Cut,
) -> Result<(), BackupError> {
    /// How much is written at a time.
    const AT_ONCE: usize = 1 << 20;
    let writing = || BackupError::io(format!("write {path}"));
    let mut file = None;
    let mut failed = None;
    let mut at = 0;
    let mut buffer: Vec<u8> = Vec::new();
    let mut lines = LineReader::from_start();
    let mut write = |buffer: &mut Vec<u8>| {
        let file = match &file {
            Some(file) => file,
            // A session that began after the cut gets no file.
            None => file.insert(target.create(path)?),
        };
        file.write_at(at, buffer)?;
        at += buffer.len() as u64;
        buffer.clear();
        Ok(())
    };
    let read = each_line(repository, copy, &mut |line| {
        let (kept, _) = lines.read(line, cut);
        match &kept {
            Line::Whole => buffer.extend_from_slice(line),
            Line::Shortened(line) => buffer.extend_from_slice(line),
            Line::After => {}
        }
        if buffer.len() >= AT_ONCE
            && let Err(error) = write(&mut buffer)
        {
            failed = Some(error);
            return false;
        }
        matches!(kept, Line::Whole)
    });
    read.map_err(|(file, reason)| BackupError::Damaged { file, reason })?;
    if failed.is_none() && !buffer.is_empty() {
        failed = write(&mut buffer).err();
    }
    failed.map_or(Ok(()), |error| Err(writing()(error)))
}

fn copy_file(
    repository: &Repository,
    from: &str,
    target: &dyn Disk,
    to: &str,
    hash: &str,
) -> Result<(), BackupError> {
    let copying = || BackupError::io(format!("copy {from}"));
    let stream = repository.stream(from).map_err(copying())?;
    let mut stream =
        stream.ok_or_else(|| BackupError::Damaged { file: from.to_owned(), reason: "is missing".to_owned() })?;
    let file = target.create(to).map_err(copying())?;
    let (mut hasher, mut at, mut piece) = (blake3::Hasher::new(), 0, vec![0; 256 << 10]);
    loop {
        let read = stream.read(&mut piece).map_err(copying())?;
        if read == 0 {
            break;
        }
        hasher.update(&piece[..read]);
        file.write_at(at, &piece[..read]).map_err(copying())?;
        at += read as u64;
    }
    if hasher.finalize().to_hex().as_str() != hash {
        return Err(BackupError::Damaged {
            file: from.to_owned(),
            reason: "changed while it was copied".to_owned(),
        });
    }
    Ok(())
}

/// A directory to restore into, which only its owner can read. It is made if it does not exist.
pub fn directory(dir: &Path) -> Result<OsDisk, BackupError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(dir).map_err(BackupError::io(format!("make {}", dir.display())))?;
    Ok(OsDisk::new(dir.to_owned()))
}
