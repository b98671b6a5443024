//! Reading everything there is, and saying what is wrong with it.
//!
//! What the write-ahead log still has is taken into account, as when the store is opened. Nothing is changed.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use banyan_core::names;
use banyan_index::Catalogue;
use banyan_log::disk::{Disk, OsDisk, Overlay};
use banyan_log::{At, FileDamage, FsLog, LogError, SessionLog, inspect};
use banyan_model::{Error, SessionId};
use serde::{Deserialize, Serialize};

use crate::backup::Hold;
use crate::file_damage::{REGISTERED_BEGINNING, restorable_beginning};
use crate::load::Read;
use crate::opening::CATALOGUE;
use crate::store::Store;
use crate::{Banyan, OpenError, Options, Progress};

/// What was read, and what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something was lost.
    Damage,
    /// A newer Banyan wrote it: nothing was lost, and this build cannot check it.
    Newer,
    /// Nothing was lost; worth knowing.
    Note,
}

impl Report {
    /// True when nothing was lost.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity != Severity::Damage)
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
    let oddities = inspect::format(disk.as_ref()).into_iter();
    let mut findings: Vec<Finding> = oddities.map(|oddity| damage(oddity.path, None, oddity.reason)).collect();
    // The journal only remembers: where it is damaged, subscribers start over.
    findings.extend(inspect::journal(disk.as_ref())?.into_iter().map(|oddity| note(oddity.path, oddity.reason)));
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
            let id = log.session_of_file(&file);
            let advice = found.advice(&id.unwrap_or_else(|| SessionId::from("ID")));
            damage(file, None, format!("{}; {advice}", found.reason()))
        }));
    }
    log.respell()?;
    let store = Store::for_reading(log, Options::default())?;
    let mut check = Check {
        store,
        disk,
        report: Report { findings, ..Report::default() },
        good_blobs: HashMap::new(),
        hold: None,
    };
    check.sessions(progress)?;
    check.bases()?;
    check.blobs()?;
    Ok(check.report)
}

impl Banyan {
    /// Reads everything while the store is in use, and says what is wrong with it. Needs an access to everything that may
    /// write. Nothing is changed.
    pub fn verify(&self, progress: &dyn Progress) -> Result<Report, OpenError> {
        if self.access().read_only || !self.access().scope.is_everything() {
            return Err(Error::forbidden("verify needs an access that has no scope and may write").into());
        }
        let hold = Hold::begin(&self.store);
        let store = Arc::clone(hold.store());
        let disk = Arc::clone(store.log.disk());
        let mut report = Report::default();
        for oddity in inspect::format(disk.as_ref()).into_iter().chain(inspect::known_damage(disk.as_ref())?) {
            report.findings.push(damage(oddity.path, None, oddity.reason));
        }
        let mut check = Check { store, disk, report, good_blobs: HashMap::new(), hold: Some(hold) };
        check.sessions(progress)?;
        check.bases()?;
        check.blobs()?;
        Ok(check.report)
    }
}

/// Whether a session's file is worth reading on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    Readable,
    Closed,
}

struct Check {
    /// Keeps what is deleted meanwhile; none where nobody uses the directory.
    hold: Option<Hold>,
    store: Arc<Store>,
    disk: Arc<dyn Disk>,
    report: Report,
    /// What is known of each blob that was looked at.
    good_blobs: HashMap<String, bool>,
}

impl Check {
    fn sessions(&mut self, progress: &dyn Progress) -> Result<(), OpenError> {
        let known: HashMap<String, SessionId> =
            self.store.log.sessions()?.into_iter().map(|id| (self.store.log.file_name(&id), id)).collect();
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
        let read = match self.read(at, id) {
            Ok(read) => read,
            Err(error) => {
                self.report.sessions += 1;
                self.report.findings.push(damage(file.to_owned(), None, error.to_string()));
                return Ok(());
            }
        };
        if self.compare(file, at, id, read.as_ref())? == Compared::Closed {
            self.report.sessions += 1;
            return Ok(());
        }
        let Some(read) = read else {
            if self.hold.is_none() && self.store.log.file_damage(id).is_none() {
                self.report.sessions += 1;
                self.note(file, "an empty file; no session");
            }
            return Ok(());
        };
        self.report.sessions += 1;
        self.report.records += read.lines;
        self.report.bytes += read.scanned.len + read.scanned.torn;
        let is_known = |(line, fault): &(u64, String)| *line == 1 && fault == REGISTERED_BEGINNING;
        let live = matches!(at, At::Live(_));
        let damaged_first = live && read.faults.iter().any(|(line, _)| *line == 1);
        if damaged_first
            && !read.faults.iter().any(is_known)
            && restorable_beginning(&self.store.log, id)?.is_some()
        {
            self.report.findings.push(damage(file.to_owned(), Some(1), REGISTERED_BEGINNING.to_owned()));
        }
        for (line, fault) in &read.faults {
            let severity = if read.newer.contains(line) { Severity::Newer } else { Severity::Damage };
            let (file, reason) = (file.to_owned(), fault.clone());
            self.report.findings.push(Finding { file, line: Some(*line), reason, severity });
        }
        if read.state.is_importing() && self.hold.is_some() {
            return Ok(());
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

    /// Compares a session's file as a whole with the register. What is found is reported.
    fn compare(
        &mut self,
        file: &str,
        at: At<'_>,
        id: &SessionId,
        read: Option<&Read>,
    ) -> Result<Compared, OpenError> {
        if !matches!(at, At::Live(_)) {
            return Ok(Compared::Readable);
        }
        let known = self.store.log.file_damage(id);
        // Without an owner all files were compared before; beside one it knows what it found.
        if self.hold.is_none() {
            if known.is_some() {
                return Ok(Compared::Readable);
            }
            let length = self.store.log.stamp(at)?.map_or(0, |(length, _)| length);
            self.store.compare_beginning(id, read, length);
        }
        match self.store.log.file_damage(id) {
            None | Some(FileDamage::Newer { .. }) => Ok(Compared::Readable),
            Some(found) => {
                let reason = format!("{}; {}", found.reason(), found.advice(id));
                self.report.findings.push(damage(file.to_owned(), None, reason));
                match found {
                    FileDamage::Short { .. } => Ok(Compared::Readable),
                    _ => Ok(Compared::Closed),
                }
            }
        }
    }

    /// Reads a session's records. `None` if there are none, or if the session was deleted meanwhile.
    fn read(&self, at: At<'_>, id: &SessionId) -> Result<Option<Read>, OpenError> {
        let beginning = |store: &Store| store.log.first_line(at);
        let before = beginning(&self.store)?;
        let Some(read) = self.store.read(at, id)? else { return Ok(None) };
        let was_deleted = self.hold.is_some()
            && matches!(at, At::Live(_))
            && (self.store.log.is_retained(read.state.born()) || beginning(&self.store)? != before);
        Ok((!was_deleted).then_some(read))
    }

    /// Records of deleted sessions that forks still read.
    fn bases(&mut self) -> Result<(), OpenError> {
        let unnamed = SessionId::from("a deleted session");
        for born in self.store.log.retained() {
            let file = format!(".banyan/bases/{born}.jsonl");
            let sessions = self.report.sessions;
            self.session(&file, At::Incarnation(&unnamed, born), &unnamed)?;
            self.report.sessions = sessions;
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
            if self.hold.is_some() && (hash.ends_with(".tmp") || self.blob_is_good(&hash)?) {
                // It may be on its way into a session.
            } else if self.hold.is_some() && self.disk.stat(&path).ok().flatten().is_none() {
                // It was removed meanwhile.
            } else if hash.ends_with(".tmp") {
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
        // One that cannot be read is as good as missing.
        let bytes = self.store.log.get_blob(hash).unwrap_or_default();
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
        self.report.findings.push(note(file.to_owned(), reason.to_owned()));
    }
}

fn note(file: String, reason: String) -> Finding {
    Finding { file, line: None, reason, severity: Severity::Note }
}

fn damage(file: String, line: Option<u64>, reason: String) -> Finding {
    Finding { file, line, reason, severity: Severity::Damage }
}
