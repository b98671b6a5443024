//! Session files compared with the register: which are gone, short or unreadable. Those are read-only until somebody decides.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use banyan_core::names;
use banyan_model::{CommitNo, SessionId};

use super::recovery::Recovered;
use super::register::{self, Absent, RegisteredFile};
use super::shared::Shared;
use super::{FsLog, layout};
use crate::{At, JournalKind, LogError, Replay, SessionLog};

/// What is wrong with a session's file as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileDamage {
    /// It is gone.
    Missing {
        /// How long it was.
        registered: u64,
    },
    /// Its end is gone.
    Short {
        /// How long it was.
        registered: u64,
        /// How long it is.
        found: u64,
    },
    /// It is another file: it begins with another line than it did.
    Replaced,
    /// It cannot be read at all.
    Unreadable {
        /// Why.
        reason: String,
    },
    /// It has records of a newer Banyan. It is no damage.
    Newer {
        /// What is not known here.
        reason: String,
        /// Which Banyan is needed.
        needed: String,
    },
}

impl FileDamage {
    /// What is wrong, to follow the name of the file.
    pub fn reason(&self) -> String {
        match self {
            Self::Missing { registered } => format!("is missing; it had {registered} bytes"),
            Self::Short { registered, found } => format!("has {found} bytes and had {registered}"),
            Self::Replaced => "was replaced: it begins with another line than it did".to_owned(),
            Self::Unreadable { reason } => format!("cannot be read: {reason}"),
            Self::Newer { reason, .. } => format!("has records of a newer Banyan ({reason})"),
        }
    }

    /// What to do about it.
    pub fn advice(&self, session: &SessionId) -> String {
        let id = session.as_str();
        match self {
            Self::Missing { .. } => format!(
                "put the file back, or stop the server and run `banyan verify --repair --forget {id}` if it was removed on purpose"
            ),
            Self::Short { .. } => format!(
                "put the whole file back, or stop the server and run `banyan verify --repair --accept {id}` to go on with what is left"
            ),
            Self::Replaced => format!(
                "put its own file back, or stop the server and run `banyan verify --repair --accept {id}` to go on with this one"
            ),
            Self::Newer { needed, .. } => format!("write to it with {needed}"),
            Self::Unreadable { .. } => "make the file readable and open the store again".to_owned(),
        }
    }
}

/// The session that a file's name tells.
fn session_of(path: &str) -> SessionId {
    layout::stem(path).and_then(names::legacy_session_id_of).unwrap_or_else(|| SessionId::from("ID"))
}

/// The damaged files of an open directory.
#[derive(Default)]
pub(crate) struct DamagedFiles {
    /// Whether there is any, so that a write need not take the lock.
    any: AtomicBool,
    /// Whether all files were compared with the register.
    complete: AtomicBool,
    files: RwLock<HashMap<String, FileDamage>>,
    /// Checksums of first lines, while the directory is being opened.
    firsts: Mutex<Option<HashMap<String, u32>>>,
}

impl DamagedFiles {
    /// Fails for a file that must not be written to.
    pub(crate) fn refuse(&self, path: &str) -> Result<(), LogError> {
        match self.get(path) {
            Some(damage) => Err(LogError::ReadOnly {
                path: path.to_owned(),
                reason: damage.reason(),
                advice: damage.advice(&session_of(path)),
            }),
            None => Ok(()),
        }
    }

    fn get(&self, path: &str) -> Option<FileDamage> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.files.read().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    pub(crate) fn put(&self, path: String, damage: FileDamage) {
        self.files.write().unwrap_or_else(PoisonError::into_inner).insert(path, damage);
        self.any.store(true, Ordering::Release);
    }
}

impl DamagedFiles {
    fn firsts(&self) -> MutexGuard<'_, Option<HashMap<String, u32>>> {
        self.firsts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clear(&self, path: &str) {
        self.files.write().unwrap_or_else(PoisonError::into_inner).remove(path);
    }
}

impl Shared {
    /// Opens the register, or begins one.
    pub(crate) fn open_register(&self, said: &mut Recovered) -> Result<(), LogError> {
        let found = register::check(self.disk.as_ref(), self.directory);
        if let Err(Absent::Unusable(reason)) = &found {
            said.warnings.push(format!("{}: {reason}; it is made anew from the session files", layout::REGISTER));
        }
        self.register.open(self.disk.as_ref(), self.directory, found.is_ok())?;
        self.register_is_new.store(found.is_err(), Ordering::Release);
        Ok(())
    }
}

impl FsLog {
    /// Whether the register was begun when the log was opened: the files that there are must be noted in it.
    pub fn register_is_new(&self) -> bool {
        self.shared.register_is_new.load(Ordering::Acquire)
    }

    /// Notes files in the register as they are.
    pub fn register_files(&self, files: Vec<(SessionId, RegisteredFile)>) -> Result<(), LogError> {
        let lines = files.into_iter().map(|(id, file)| (layout::session(self.shared.naming, &id), file)).collect();
        self.shared.register.note(self.shared.disk.as_ref(), self.shared.directory, lines)
    }

    /// Notes that a file has another name now.
    pub(crate) fn register_renamed(&self, from: &str, to: &str) -> Result<(), LogError> {
        let Ok(contents) = register::read(self.shared.disk.as_ref(), self.shared.directory) else { return Ok(()) };
        let Some(registered) = contents.files.get(from) else { return Ok(()) };
        self.shared.register.note_removed(from, self.head())?;
        let moved = vec![(to.to_owned(), registered.clone())];
        self.shared.register.note(self.shared.disk.as_ref(), self.shared.directory, moved)
    }

    /// Compares all session files with the register. Returns what is wrong, by file; those files are read-only from now on.
    pub fn check_files(&self) -> Result<Vec<(String, FileDamage)>, LogError> {
        let contents = match register::read(self.shared.disk.as_ref(), self.shared.directory) {
            Ok(contents) => contents,
            Err(_) => return Ok(Vec::new()),
        };
        self.raise_head(contents.head());
        let mut found = Vec::new();
        for (path, registered) in &contents.files {
            found.extend(self.compare(path, registered).map(|damage| (path.clone(), damage)));
        }
        found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        self.leave_out_removed(&contents.files, &mut found)?;
        for (path, damage) in &found {
            self.shared.damaged.put(path.clone(), damage.clone());
        }
        self.shared.damaged.complete.store(true, Ordering::Release);
        let firsts = contents.files.iter().filter_map(|(path, file)| Some((path.clone(), file.first?)));
        *self.shared.damaged.firsts() = Some(firsts.collect());
        if contents.is_bloated() {
            self.shared.register.compact(self.shared.disk.as_ref(), self.shared.directory, contents)?;
        }
        Ok(found)
    }

    /// What the register, and what was found before, say against a complete reading of all files. Marks nothing.
    pub(crate) fn doubts_of_files(&self) -> Vec<String> {
        let known = self.shared.damaged.files.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut found: Vec<String> =
            known.iter().map(|(path, damage)| format!("{path}: {}", damage.reason())).collect();
        if self.shared.register_is_new.load(Ordering::Acquire) && self.shared.opened_at.load(Ordering::Acquire) > 0
        {
            found.push(format!(
                "{}: was missing or unusable when the store was opened, so it is not known which files there should be",
                layout::REGISTER
            ));
        }
        match register::read(self.shared.disk.as_ref(), self.shared.directory) {
            Ok(contents) => {
                found.extend(
                    contents.damaged.iter().map(|line| format!("{}: line {line} is damaged", layout::REGISTER)),
                );
                for (path, registered) in &contents.files {
                    // A session may have ended since the register was read.
                    let ended = || {
                        let now = register::read(self.shared.disk.as_ref(), self.shared.directory);
                        now.is_ok_and(|now| now.files.get(path) != Some(registered))
                    };
                    if !known.contains_key(path)
                        && let Some(damage) = self.compare(path, registered)
                        && !ended()
                    {
                        found.push(format!("{path}: {}", damage.reason()));
                    }
                }
            }
            Err(Absent::Missing) => found.push(format!("{}: is missing", layout::REGISTER)),
            Err(Absent::Unusable(reason)) => found.push(format!("{}: {reason}", layout::REGISTER)),
        }
        found.sort_unstable();
        found
    }

    /// Whether all files were compared when the log was opened, so that [`Self::file_damage`] knows all there is to know.
    pub fn files_were_checked(&self) -> bool {
        self.shared.damaged.complete.load(Ordering::Acquire)
    }

    /// Compares one session's file with the register.
    pub fn check_file(&self, session: &SessionId) -> Option<FileDamage> {
        let path = layout::session(self.shared.naming, session);
        let contents = register::read(self.shared.disk.as_ref(), self.shared.directory).ok()?;
        let damage = self.compare(&path, contents.files.get(&path)?)?;
        self.shared.damaged.put(path, damage.clone());
        Some(damage)
    }

    /// Makes a session read-only whose file had more whole lines when it was registered than it has now: `sound` bytes of them.
    pub fn close_torn(&self, session: &SessionId, sound: u64) -> Option<FileDamage> {
        let path = layout::session(self.shared.naming, session);
        let contents = register::read(self.shared.disk.as_ref(), self.shared.directory).ok()?;
        let registered = contents.files.get(&path)?.length;
        let damage = (registered > sound).then_some(FileDamage::Short { registered, found: sound })?;
        self.shared.damaged.put(path, damage.clone());
        Some(damage)
    }

    /// What is wrong with a session's file, as far as it was compared.
    pub fn file_damage(&self, session: &SessionId) -> Option<FileDamage> {
        self.shared.damaged.get(&layout::session(self.shared.naming, session))
    }

    /// Compares the first line of a session's file, which is valid, with the register. Where they differ the session is closed.
    pub fn check_first_line(&self, session: &SessionId, sum: u32) -> Option<FileDamage> {
        let path = layout::session(self.shared.naming, session);
        let known = match &*self.shared.damaged.firsts() {
            Some(firsts) => firsts.get(&path).copied(),
            None => {
                let contents = register::read(self.shared.disk.as_ref(), self.shared.directory).ok()?;
                contents.files.get(&path)?.first
            }
        };
        known.filter(|known| *known != sum)?;
        self.shared.damaged.put(path, FileDamage::Replaced);
        Some(FileDamage::Replaced)
    }

    /// Forgets what [`Self::check_files`] keeps for [`Self::check_first_line`] while a directory is being opened.
    pub fn end_checks(&self) {
        *self.shared.damaged.firsts() = None;
    }

    /// Makes a session read-only whose file cannot be read.
    pub fn close_unreadable(&self, session: &SessionId, reason: String) {
        self.shared.damaged.put(layout::session(self.shared.naming, session), FileDamage::Unreadable { reason });
    }

    /// Makes a session read-only that has records of a newer Banyan.
    pub fn close_newer(&self, session: &SessionId, reason: String, needed: String) {
        self.shared
            .damaged
            .put(layout::session(self.shared.naming, session), FileDamage::Newer { reason, needed });
    }

    /// Fails for a session that must not be written to.
    pub fn refuse_writes(&self, session: &SessionId) -> Result<(), LogError> {
        self.shared.damaged.refuse(&layout::session(self.shared.naming, session))
    }

    /// How long the file of each session was when it was flushed, by the name that the file has.
    pub fn registered_lengths(&self) -> HashMap<String, u64> {
        let contents = register::read(self.shared.disk.as_ref(), self.shared.directory);
        let files = contents.map(|contents| contents.files).unwrap_or_default();
        files.into_iter().map(|(path, file)| (path, file.length)).collect()
    }

    /// The first line of a fork, as the register has it.
    pub fn registered_beginning(&self, session: &SessionId) -> Option<String> {
        let contents = register::read(self.shared.disk.as_ref(), self.shared.directory).ok()?;
        contents.files.get(&layout::session(self.shared.naming, session))?.begins.clone()
    }

    /// Writes the beginning of a session's file again, in place. What was there is copied to `.banyan/aside` first. The session
    /// must not be in use.
    pub fn restore_beginning(&self, session: &SessionId, begins: &[u8]) -> Result<(), LogError> {
        let path = layout::session(self.shared.naming, session);
        let restoring = || LogError::io(format!("restoring the first line of {path}"));
        let Some(file) = self.shared.disk.open(&path).map_err(restoring())? else { return Ok(()) };
        self.copy_aside(session)?;
        file.write_at(0, begins).map_err(restoring())?;
        file.sync().map_err(restoring())
    }

    /// Accepts a session's file as it is now: what it had beyond that is given up.
    pub fn accept_file(&self, session: &SessionId) -> Result<(), LogError> {
        let path = layout::session(self.shared.naming, session);
        let stat = self.shared.disk.stat(&path).map_err(LogError::io(format!("looking at {path}")))?;
        let length = stat.map_or(0, |stat| stat.len);
        let first = self.first_line(At::Live(session))?.map(|line| register::first_line_sum(&line));
        self.shared.register.note(
            self.shared.disk.as_ref(),
            self.shared.directory,
            vec![(path.clone(), RegisteredFile { length, first, ..RegisteredFile::default() })],
        )?;
        self.shared.damaged.clear(&path);
        Ok(())
    }

    /// Opens the session of a damaged file for writing, so that it can be ended. Unless it is, the file is damaged again when the
    /// log is opened next.
    pub fn forget_damage(&self, session: &SessionId) {
        self.shared.damaged.clear(&layout::session(self.shared.naming, session));
    }

    /// Copies a session's file to `.banyan/aside`, under a name that is free. Returns the path of the copy.
    pub fn copy_aside(&self, session: &SessionId) -> Result<String, LogError> {
        let path = layout::session(self.shared.naming, session);
        let copying = || LogError::io(format!("copying {path}"));
        let disk = self.shared.disk.as_ref();
        disk.create_dir(layout::ASIDE).map_err(copying())?;
        let mut copy = String::new();
        for number in 1_u32.. {
            copy = format!("{}/{path}.{number}", layout::ASIDE);
            if disk.stat(&copy).map_err(copying())?.is_none() {
                break;
            }
        }
        let Some(from) = disk.open(&path).map_err(copying())? else { return Ok(copy) };
        let to = disk.create(&copy).map_err(copying())?;
        let mut at = 0;
        let mut chunk = vec![0; 1 << 20];
        loop {
            let read = from.read_at(at, &mut chunk).map_err(copying())?;
            if read == 0 {
                break;
            }
            to.write_at(at, &chunk[..read]).map_err(copying())?;
            at += read as u64;
        }
        to.sync().map_err(copying())?;
        disk.sync_dir(layout::ASIDE).map_err(copying())?;
        Ok(copy)
    }

    fn compare(&self, path: &str, registered: &RegisteredFile) -> Option<FileDamage> {
        let found = match self.shared.files.len_in_memory(path) {
            Some(found) => Ok(Some(found).filter(|found| *found > 0)),
            None => match self.shared.disk.stat(path) {
                Ok(Some(stat)) if stat.is_dir => Err(io::ErrorKind::IsADirectory.into()),
                stat => stat.map(|stat| stat.map(|stat| stat.len)),
            },
        };
        match found {
            Ok(None) => Some(FileDamage::Missing { registered: registered.length }),
            Ok(Some(found)) if found < registered.length => {
                Some(FileDamage::Short { registered: registered.length, found })
            }
            Ok(Some(_)) => None,
            Err(error) => Some(FileDamage::Unreadable { reason: error.to_string() }),
        }
    }

    /// Files that the journal says were removed are not missing: the register's line about it may be damaged.
    fn leave_out_removed(
        &self,
        files: &HashMap<String, RegisteredFile>,
        found: &mut Vec<(String, FileDamage)>,
    ) -> Result<(), LogError> {
        if !found.iter().any(|(_, damage)| matches!(damage, FileDamage::Missing { .. })) {
            return Ok(());
        }
        let mut removed: HashMap<String, CommitNo> = HashMap::new();
        let mut after = CommitNo(0);
        let head = self.head();
        while after < head {
            let replayed = self.replay(after, head, &mut |entry| {
                if matches!(entry.kind, JournalKind::Removed(_)) {
                    removed.insert(layout::session(self.shared.naming, &entry.session), entry.commit);
                }
                true
            })?;
            after = match replayed {
                Replay::Through(through) | Replay::Forgotten(through) if through > after => through,
                Replay::Through(_) | Replay::Forgotten(_) => break,
            };
        }
        let mut gone = Vec::new();
        found.retain(|(path, damage)| {
            let registered = files.get(path).map(|file| file.commit);
            let by = removed.get(path).copied().filter(|by| registered.is_none_or(|known| known < *by));
            let is_removed = matches!(damage, FileDamage::Missing { .. }) && by.is_some();
            gone.extend(by.filter(|_| is_removed).map(|by| (path.clone(), by)));
            !is_removed
        });
        for (path, commit) in gone {
            self.shared.register.note_removed(&path, commit)?;
        }
        Ok(())
    }
}
