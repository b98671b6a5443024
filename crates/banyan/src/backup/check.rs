//! Reading a generation of a backup to its end: every checksum, every record, all content.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use super::lines::{Cut, Line, LineReader};
use super::manifest::{Manifest, SessionCopy, SessionKind};
use super::repository::{BackupError, Content, Repository};
use crate::Progress;
use crate::verify::{Finding, Report, Severity};

/// What was read, and which content it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// What was read and found.
    pub report: Report,
    /// Hashes of the content that the records need, each with the session that does.
    pub blobs: BTreeMap<String, String>,
}

/// Checks all generations of a repository.
pub fn check(repository: &Repository, progress: &dyn Progress) -> Result<Report, BackupError> {
    let generations = repository.generations()?;
    let mut report = Report::default();
    for (file, reason) in generations.damaged {
        report.findings.push(damage(file, reason));
    }
    // Parts are shared between generations, and read once.
    let mut sessions: BTreeMap<Vec<&str>, &SessionCopy> = BTreeMap::new();
    for session in generations.whole.iter().flat_map(|manifest| &manifest.sessions) {
        sessions.insert(session.parts.iter().map(|part| part.hash.as_str()).collect(), session);
    }
    let mut checked = check_sessions(repository, sessions.into_values(), Cut::NONE, progress);
    check_blobs(repository, &mut checked, progress);
    for manifest in &generations.whole {
        if let Some(hash) = &manifest.head.keys
            && repository.hash_of(&Content::Keys.path(hash)).ok().flatten().as_ref() != Some(hash)
        {
            checked.report.findings.push(damage(Content::Keys.path(hash), "is missing or damaged".to_owned()));
        }
    }
    if let Some(newest) = generations.whole.last() {
        note_source_damage(newest, &mut checked.report);
    }
    report.findings.append(&mut checked.report.findings);
    Ok(Report { findings: report.findings, ..checked.report })
}

/// What was wrong in the directory is known, and no damage of the backup.
pub(crate) fn note_source_damage(manifest: &Manifest, report: &mut Report) {
    for damage in manifest.damage() {
        let reason = format!("when it was backed up: {}", damage.reason);
        report.findings.push(Finding { file: damage.file.clone(), line: None, reason, severity: Severity::Note });
    }
}

/// Reads the records of sessions up to a cut.
pub(crate) fn check_sessions<'a>(
    repository: &Repository,
    sessions: impl Iterator<Item = &'a SessionCopy>,
    cut: Cut,
    progress: &dyn Progress,
) -> Checked {
    let sessions: Vec<&SessionCopy> = sessions.collect();
    let mut checked = Checked::default();
    progress.begin("Checking the backup's sessions", sessions.len() as u64);
    for (done, session) in sessions.into_iter().enumerate() {
        let mut lines = LineReader::from_start();
        checked.report.sessions += u64::from(session.kind == SessionKind::Live);
        let mut faults: BTreeSet<String> = BTreeSet::new();
        let read = each_line(repository, session, &mut |line| {
            checked.report.records += 1;
            checked.report.bytes += line.len() as u64;
            let (kept, fault) = lines.read(line, cut);
            faults.extend(fault);
            matches!(kept, Line::Whole)
        });
        let name = described(session);
        if let Err((file, reason)) = read {
            checked.report.findings.push(damage(file, format!("{reason} ({name})")));
        }
        // A record that was damaged in the directory is damaged here, too, and is not news.
        if !session.damage.iter().any(|damage| damage.copied) {
            checked.report.findings.extend(faults.into_iter().map(|fault| damage(name.clone(), fault)));
        }
        for hash in lines.blobs {
            checked.blobs.entry(hash).or_insert_with(|| name.clone());
        }
        progress.step(done as u64 + 1);
    }
    progress.end();
    checked
}

/// Reads the content that was found to be needed.
pub(crate) fn check_blobs(repository: &Repository, checked: &mut Checked, progress: &dyn Progress) {
    progress.begin("Checking the backup's content", checked.blobs.len() as u64);
    for (done, (hash, user)) in checked.blobs.iter().enumerate() {
        let path = Content::Blobs.path(hash);
        checked.report.blobs += 1;
        checked.report.bytes += repository.disk.stat(&path).ok().flatten().map_or(0, |stat| stat.len);
        match repository.hash_of(&path) {
            Ok(Some(found)) if found == *hash => {}
            Ok(Some(_)) => {
                checked
                    .report
                    .findings
                    .push(damage(path, format!("its content is not what its name says ({user})")));
            }
            Ok(None) => checked.report.findings.push(damage(path, format!("is missing ({user})"))),
            Err(error) => checked.report.findings.push(damage(path, format!("cannot be read: {error} ({user})"))),
        }
        progress.step(done as u64 + 1);
    }
    progress.end();
}

/// Shows the lines of a session until `visit` returns false, and checks every part. Fails with a file and what is wrong with it.
pub(crate) fn each_line(
    repository: &Repository,
    session: &SessionCopy,
    visit: &mut dyn FnMut(&[u8]) -> bool,
) -> Result<(), (String, String)> {
    let mut more = true;
    for part in &session.parts {
        let path = Content::Records.path(&part.hash);
        let failed = |reason: String| (path.clone(), reason);
        let stream = repository.stream(&path).map_err(|error| failed(format!("cannot be read: {error}")))?;
        let mut stream = stream.ok_or_else(|| failed("is missing".to_owned()))?;
        let mut hasher = blake3::Hasher::new();
        let mut rest: Vec<u8> = Vec::new();
        let mut piece = vec![0; 256 << 10];
        loop {
            let read = stream.read(&mut piece).map_err(|error| failed(format!("cannot be read: {error}")))?;
            if read == 0 {
                break;
            }
            hasher.update(&piece[..read]);
            // A line may be longer than a piece; only what is new can end it.
            let searched = rest.len();
            rest.extend_from_slice(&piece[..read]);
            let mut used = 0;
            for end in memchr::memchr_iter(b'\n', &rest[searched..]).map(|at| searched + at) {
                more = more && visit(&rest[used..=end]);
                used = end + 1;
            }
            rest.drain(..used);
        }
        if hasher.finalize().to_hex().as_str() != part.hash || !rest.is_empty() {
            return Err(failed("its content is not what its name says".to_owned()));
        }
    }
    Ok(())
}

fn described(session: &SessionCopy) -> String {
    match session.kind {
        SessionKind::Live => format!("session {}", session.id),
        SessionKind::Base => format!("records of a deleted session ({})", session.born),
    }
}

pub(crate) fn damage(file: String, reason: String) -> Finding {
    Finding { file, line: None, reason, severity: Severity::Damage }
}
