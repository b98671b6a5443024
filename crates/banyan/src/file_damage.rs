//! Session files that are gone, short or unreadable: each closes one session, never the store.

use banyan_core::record::Head;
use banyan_log::{At, FileDamage, RegisteredFile, SessionLog};
use banyan_model::{Error, SessionId};

use crate::load::Read;
use crate::opening::OpenError;
use crate::store::Store;

impl Store {
    /// Compares all session files with the register of the log. What is wrong is warned of, and those sessions are read-only.
    pub(crate) fn compare_files(&self) -> Result<(), OpenError> {
        if self.log.register_is_new() {
            return Ok(());
        }
        for (path, damage) in self.log.check_files()? {
            self.warn(&format!("{path}: {}", damage.reason()));
        }
        Ok(())
    }

    /// Notes every session file in a register that was begun just now.
    pub(crate) fn fill_register(&self) -> Result<(), OpenError> {
        if !self.log.register_is_new() {
            return Ok(());
        }
        let mut files = Vec::new();
        for id in self.log.sessions()? {
            let at = At::Live(&id);
            let Ok(Some((length, _))) = self.log.stamp(at) else { continue };
            let first = self.log.first_line(at).ok().flatten();
            let is_fork = |line: &Vec<u8>| crate::load::base_in(line).is_some() && Head::parse(line).is_ok();
            let begins = first.filter(is_fork).and_then(|line| String::from_utf8(line).ok());
            let commit = self.catalogue.get(&id).ok().flatten().map(|row| row.commit).unwrap_or_default();
            files.push((id, RegisteredFile { length, commit, begins }));
        }
        Ok(self.log.register_files(files)?)
    }

    /// Reads a session for the catalogue. One whose file cannot be read is closed, with a warning, and others go on.
    pub(crate) fn read_or_close(&self, id: &SessionId) -> Option<Read> {
        match self.read(At::Live(id), id) {
            Ok(read) => read,
            Err(error) => {
                self.warn(&format!("session {id} cannot be read: {}", error.message));
                self.log.close_unreadable(id, error.message);
                None
            }
        }
    }

    /// Reads a session that a caller wants. One whose file cannot be read is closed.
    pub(crate) fn read_or_refuse(&self, id: &SessionId) -> Result<Option<Read>, Error> {
        self.read(At::Live(id), id).map_err(|error| {
            self.log.close_unreadable(id, error.message.clone());
            Error::storage(format!("session `{id}` cannot be read: {}", error.message))
        })
    }

    /// Fails for a session of which nothing can be read and whose file is damaged, so that it is not taken for a new one.
    pub(crate) fn refuse_damaged_file(&self, id: &SessionId) -> Result<(), Error> {
        match self.damage_of(id, None) {
            Some(damage) => Err(Error::storage(format!(
                "the file of session `{id}` {}; {}",
                damage.reason(),
                damage.advice(id)
            ))),
            None => Ok(()),
        }
    }

    /// Whether a session's file is shorter than it was. It is then left as it is: nothing is mended.
    pub(crate) fn is_short(&self, id: &SessionId, length: u64) -> bool {
        self.damage_of(id, Some(length)).is_some()
    }

    /// What is wrong with the file of a session, which has `length` bytes if there is one. Where not all files were compared when
    /// the store was opened, the catalogue says whether it is worth a look at the register.
    fn damage_of(&self, id: &SessionId, length: Option<u64>) -> Option<FileDamage> {
        let known = self.log.file_damage(id);
        if known.is_some() || self.log.files_were_checked() {
            return known;
        }
        let row = self.catalogue.get(id).ok().flatten();
        let is_shorter = row.is_some_and(|row| length.is_none_or(|length| row.length > length));
        if is_shorter { self.log.check_file(id) } else { None }
    }

    /// The first line of a fork as the register has it, for one that is damaged in the session's file.
    pub(crate) fn registered_beginning(&self, id: &SessionId, line: &[u8]) -> Option<Vec<u8>> {
        Head::parse(line).err()?;
        let begins = self.log.registered_beginning(id)?.into_bytes();
        (begins.len() == line.len() && Head::parse(&begins).is_ok()).then_some(begins)
    }
}
