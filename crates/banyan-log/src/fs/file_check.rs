//! Session files compared with the register: which are gone, short or unreadable. Those are read-only until somebody decides.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use banyan_core::names;
use banyan_model::{CommitNo, SessionId};

use super::recovery::Recovered;
use super::register::{self, Absent, RegisteredFile};
use super::shared::Shared;
use super::{FsLog, layout};
use crate::{JournalKind, LogError, Replay, SessionLog};

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
            Self::Unreadable { reason } => format!("cannot be read: {reason}"),
            Self::Newer { reason, .. } => format!("has records of a newer Banyan ({reason})"),
        }
    }

    /// What to do about it.
    fn advice(&self, path: &str) -> String {
        let id = layout::stem(path).and_then(names::session_id_of);
        let id = id.as_ref().map_or("ID", SessionId::as_str);
        match self {
            Self::Missing { .. } => format!(
                "put the file back, or stop the server and run `banyan verify --repair --forget {id}` if it was removed on purpose"
            ),
            Self::Short { .. } => format!(
                "put the whole file back, or stop the server and run `banyan verify --repair --accept {id}` to go on with what is left"
            ),
            Self::Newer { needed, .. } => format!("write to it with {needed}"),
            Self::Unreadable { .. } => "make the file readable and open the store again".to_owned(),
        }
    }
}

/// The damaged files of an open directory.
#[derive(Default)]
pub(crate) struct DamagedFiles {
    /// Whether there is any, so that a write need not take the lock.
    any: AtomicBool,
    files: RwLock<HashMap<String, FileDamage>>,
}

impl DamagedFiles {
    /// Fails for a file that must not be written to.
    pub(crate) fn refuse(&self, path: &str) -> Result<(), LogError> {
        match self.get(path) {
            Some(damage) => Err(LogError::ReadOnly {
                path: path.to_owned(),
                reason: damage.reason(),
                advice: damage.advice(path),
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

    fn put(&self, path: String, damage: FileDamage) {
        self.files.write().unwrap_or_else(PoisonError::into_inner).insert(path, damage);
        self.any.store(true, Ordering::Release);
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
        let lines = files.into_iter().map(|(id, file)| (layout::session(&id), file)).collect();
        self.shared.register.note(self.shared.disk.as_ref(), self.shared.directory, lines)
    }

    /// Compares all session files with the register. Returns what is wrong, by file; those files are read-only from now on.
    pub fn check_files(&self) -> Result<Vec<(String, FileDamage)>, LogError> {
        let contents = match register::read(self.shared.disk.as_ref(), self.shared.directory) {
            Ok(contents) => contents,
            Err(_) => return Ok(Vec::new()),
        };
        let mut found = Vec::new();
        for (path, registered) in &contents.files {
            found.extend(self.compare(path, registered).map(|damage| (path.clone(), damage)));
        }
        found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        self.leave_out_removed(&contents.files, &mut found)?;
        for (path, damage) in &found {
            self.shared.damaged.put(path.clone(), damage.clone());
        }
        if contents.is_bloated() {
            self.shared.register.compact(self.shared.disk.as_ref(), self.shared.directory, contents)?;
        }
        Ok(found)
    }

    /// Compares one session's file with the register.
    pub fn check_file(&self, session: &SessionId) -> Option<FileDamage> {
        let path = layout::session(session);
        let contents = register::read(self.shared.disk.as_ref(), self.shared.directory).ok()?;
        let damage = self.compare(&path, contents.files.get(&path)?)?;
        self.shared.damaged.put(path, damage.clone());
        Some(damage)
    }

    /// What is wrong with a session's file, as far as it was compared.
    pub fn file_damage(&self, session: &SessionId) -> Option<FileDamage> {
        self.shared.damaged.get(&layout::session(session))
    }

    /// Makes a session read-only whose file cannot be read.
    pub fn close_unreadable(&self, session: &SessionId, reason: String) {
        self.shared.damaged.put(layout::session(session), FileDamage::Unreadable { reason });
    }

    /// Makes a session read-only that has records of a newer Banyan.
    pub fn close_newer(&self, session: &SessionId, reason: String, needed: String) {
        self.shared.damaged.put(layout::session(session), FileDamage::Newer { reason, needed });
    }

    /// Fails for a session that must not be written to.
    pub fn refuse_writes(&self, session: &SessionId) -> Result<(), LogError> {
        self.shared.damaged.refuse(&layout::session(session))
    }

    /// The first line of a fork, as the register has it.
    pub fn registered_beginning(&self, session: &SessionId) -> Option<String> {
        let contents = register::read(self.shared.disk.as_ref(), self.shared.directory).ok()?;
        contents.files.get(&layout::session(session))?.begins.clone()
    }

    fn compare(&self, path: &str, registered: &RegisteredFile) -> Option<FileDamage> {
        let found = match self.shared.files.len_in_memory(path) {
            Some(found) => Ok(Some(found).filter(|found| *found > 0)),
            None => self.shared.disk.stat(path).map(|stat| stat.map(|stat| stat.len)),
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
                    removed.insert(layout::session(&entry.session), entry.commit);
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
