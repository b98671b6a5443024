//! Reading everything there is, and saying what is wrong with it.
//!
//! What the write-ahead log still has is taken into account, as when the store is opened. Nothing is changed.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use banyan_core::names;
use banyan_index::Catalogue;
use banyan_log::disk::{Disk, OsDisk, Overlay};
use banyan_log::{At, FsLog, LogError, SessionLog, inspect};
use banyan_model::SessionId;

use crate::opening::CATALOGUE;
use crate::store::Store;
use crate::{OpenError, Options, Progress};

/// What was read, and what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Session files that were read.
    pub sessions: u64,
    /// Lines in them.
    pub records: u64,
    /// Blobs that were read.
    pub blobs: u64,
    /// Bytes of all of it.
    pub bytes: u64,
    /// What is wrong, by file.
    pub findings: Vec<Finding>,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, relative to the data directory.
    pub file: String,
    /// The line in it, from 1, for session files.
    pub line: Option<u64>,
    /// What is wrong, in plain words.
    pub reason: String,
    /// How bad it is.
    pub severity: Severity,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something was lost.
    Damage,
    /// Nothing was lost; worth knowing.
    Note,
}

impl Report {
    /// True when nothing was lost.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity == Severity::Note)
    }
}

/// Reads a whole data directory, which no other process may be using.
pub fn verify(dir: impl AsRef<Path>, progress: &dyn Progress) -> Result<Report, OpenError> {
    let dir = dir.as_ref();
    let report = verify_records(dir, progress)?;
    Ok(with_derived(dir, report))
}

/// Adds what is wrong with derived files, which is no loss.
fn with_derived(dir: &Path, mut report: Report) -> Report {
    let disk = OsDisk::new(dir.to_owned());
    if let Some(owner) = inspect::directory_id(&disk)
        && let Some(reason) = Catalogue::check_file(&dir.join(CATALOGUE), &owner.to_string())
    {
        report.findings.push(Finding {
            file: CATALOGUE.to_owned(),
            line: None,
            reason: format!("{reason}; it is derived, and rebuilt when the store is opened next"),
            severity: Severity::Note,
        });
    }
    report
}

fn verify_records(dir: &Path, progress: &dyn Progress) -> Result<Report, OpenError> {
    if !dir.is_dir() {
        return Err(OpenError::Log(LogError::Io {
            doing: format!("opening {}", dir.display()),
            cause: "there is no such directory; name one with --data".into(),
        }));
    }
    verify_on(Arc::new(OsDisk::new(dir.to_owned())), progress)
}

/// The same on any disk.
pub fn verify_on(disk: Arc<dyn Disk>, progress: &dyn Progress) -> Result<Report, OpenError> {
    // What recovery would change is seen, and nothing is written.
    let disk: Arc<dyn Disk> = Arc::new(Overlay::new(disk));
    let oddities = inspect::format(disk.as_ref()).into_iter().chain(inspect::journal(disk.as_ref())?);
    let mut findings: Vec<Finding> = oddities.map(|oddity| damage(oddity.path, None, oddity.reason)).collect();
    let (log, recovered) = FsLog::open(Arc::clone(&disk), banyan_log::Options::default())?;
    findings.extend(recovered.warnings.iter().map(|warning| {
        let (file, reason) = warning.split_once(": ").unwrap_or(("the write-ahead log", warning));
        damage(file.to_owned(), None, reason.to_owned())
    }));
    for oddity in inspect::known_damage(disk.as_ref())? {
        // What recovery just found is in its warnings, too.
        if !findings.iter().any(|finding| finding.file == oddity.path && finding.reason == oddity.reason) {
            findings.push(damage(oddity.path, None, oddity.reason));
        }
    }
    if !log.register_is_new() {
        let damaged = log.check_files()?;
        findings.extend(damaged.into_iter().map(|(file, found)| {
            let id = file.strip_suffix(".jsonl").and_then(names::session_id_of);
            let advice = found.advice(&id.unwrap_or_else(|| SessionId::from("ID")));
            damage(file, None, format!("{}; {advice}", found.reason()))
        }));
    }
    let store = Store::for_reading(log, Options::default())?;
    let mut check =
        Check { store, disk, report: Report { findings, ..Report::default() }, good_blobs: HashMap::new() };
    check.sessions(progress)?;
    check.bases()?;
    check.blobs()?;
    Ok(check.report)
}

struct Check {
    store: Arc<Store>,
    disk: Arc<dyn Disk>,
    report: Report,
    /// What is known of each blob that was looked at.
    good_blobs: HashMap<String, bool>,
}

impl Check {
    fn sessions(&mut self, progress: &dyn Progress) -> Result<(), OpenError> {
        let known: HashMap<String, SessionId> = self
            .store
            .log
            .sessions()?
            .into_iter()
            .map(|id| (format!("{}.jsonl", names::file_stem(&id)), id))
            .collect();
        let listed = self.disk.list("").map_err(|error| LogError::Io {
            doing: "listing the data directory".into(),
            cause: error.to_string(),
        })?;
        let on_disk: HashSet<&str> = listed.iter().map(|listed| listed.name.as_str()).collect();
        let mut names: Vec<&str> = known.keys().map(String::as_str).chain(on_disk).collect();
        names.sort_unstable();
        names.dedup();
        progress.begin("Reading sessions", names.len() as u64);
        for (done, name) in names.into_iter().enumerate() {
            match known.get(name) {
                Some(id) => self.session(name, At::Live(id), id)?,
                None if name == ".banyan" => {}
                None => self.foreign(name),
            }
            progress.step(done as u64 + 1);
        }
        progress.end();
        Ok(())
    }

    fn session(&mut self, file: &str, at: At<'_>, id: &SessionId) -> Result<(), OpenError> {
        self.report.sessions += 1;
        let read = match self.store.read(at, id) {
            Ok(read) => read,
            Err(error) => {
                self.report.findings.push(damage(file.to_owned(), None, error.message));
                return Ok(());
            }
        };
        let Some(read) = read else {
            if self.store.log.file_damage(id).is_none() {
                self.note(file, "an empty file; no session");
            }
            return Ok(());
        };
        self.report.records += read.lines;
        self.report.bytes += read.scanned.len + read.scanned.torn;
        for (line, fault) in &read.faults {
            self.report.findings.push(damage(file.to_owned(), Some(*line), fault.clone()));
        }
        if read.state.is_importing() {
            self.note(file, "an import that did not end; it goes when the store is opened");
            return Ok(());
        }
        if !read.state.exists() && read.faults.is_empty() {
            self.note(file, "entries without a session: session-manager stopped before it had begun");
        }
        let mut used: Vec<(&String, &u64)> = read.blobs.iter().collect();
        used.sort_unstable_by_key(|(hash, line)| (**line, hash.as_str()));
        for (hash, line) in used {
            if !self.blob_is_good(hash)? {
                let line = (*line > 0).then_some(*line);
                let reason = format!("content {hash} is missing or damaged");
                self.report.findings.push(damage(file.to_owned(), line, reason));
            }
        }
        Ok(())
    }

    /// Records of deleted sessions that forks still read.
    fn bases(&mut self) -> Result<(), OpenError> {
        let unnamed = SessionId::from("a deleted session");
        for born in self.store.log.retained() {
            let file = format!(".banyan/bases/{born}.jsonl");
            self.session(&file, At::Incarnation(&unnamed, born), &unnamed)?;
            self.report.sessions -= 1;
        }
        Ok(())
    }

    fn blobs(&mut self) -> Result<(), OpenError> {
        for (hash, _) in self.store.log.aside_content() {
            if !self.good_blobs.contains_key(&hash) {
                self.note(
                    &format!(".banyan/aside/content/{hash}"),
                    "content that no session uses; it waits to be removed",
                );
            }
        }
        for (path, hash) in inspect::blobs(self.disk.as_ref())? {
            if self.good_blobs.contains_key(&hash) {
                continue;
            }
            if hash.ends_with(".tmp") {
                self.note(&path, "content that was never finished; it goes when the store is opened");
            } else if self.blob_is_good(&hash)? {
                self.note(&path, "content that no session uses");
            } else {
                self.report.findings.push(damage(path, None, "its content is not what its name says".into()));
            }
        }
        Ok(())
    }

    fn blob_is_good(&mut self, hash: &str) -> Result<bool, OpenError> {
        if let Some(good) = self.good_blobs.get(hash) {
            return Ok(*good);
        }
        let bytes = self.store.log.get_blob(hash)?;
        self.report.blobs += 1;
        self.report.bytes += bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
        self.good_blobs.insert(hash.to_owned(), bytes.is_some());
        Ok(bytes.is_some())
    }

    fn foreign(&mut self, name: &str) {
        let reason = match name.strip_suffix(".jsonl") {
            Some(stem) if names::legacy_session_id_of(stem).is_some() => {
                "not the name that its session has here; it is ignored, rename it to be read"
            }
            Some(_) => "no session has such a name, or its first record does not tell which; it is ignored",
            None => "not a file of Banyan's; it is ignored",
        };
        self.note(name, reason);
    }

    fn note(&mut self, file: &str, reason: &str) {
        let (file, reason) = (file.to_owned(), reason.to_owned());
        self.report.findings.push(Finding { file, line: None, reason, severity: Severity::Note });
    }
}

fn damage(file: String, line: Option<u64>, reason: String) -> Finding {
    Finding { file, line, reason, severity: Severity::Damage }
}
