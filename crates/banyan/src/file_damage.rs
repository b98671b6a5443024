//! Session files that are gone, short or unreadable: each closes one session, never the store.

use banyan_core::record::{Head, HeadKind};
use banyan_log::{At, FileDamage, FsLog, LogError, RegisteredFile, SessionLog, first_line_sum};
use banyan_model::{Error, Seq, SessionId};

use crate::load::Read;
use crate::opening::OpenError;
use crate::store::Store;

/// What is wrong with the first line of a fork that the register of files has, too.
pub(crate) const REGISTERED_BEGINNING: &str = "the line is damaged; the register of files has it";

/// The first line of a fork as the register has it, if it is damaged in the session's file and fits there in its place.
pub(crate) fn restorable_beginning(log: &FsLog, id: &SessionId) -> Result<Option<Vec<u8>>, LogError> {
    let at = At::Live(id);
    let Some(line) = log.first_line(at)? else { return Ok(None) };
    if Head::parse(&line).is_ok() || log.file_damage(id).is_some() {
        return Ok(None);
    }
    let Some(begins) = log.registered_beginning(id).map(String::into_bytes) else { return Ok(None) };
    let is_of_session = matches!(
        Head::parse(&begins),
        Ok(Head { kind: HeadKind::Created(created), .. }) if created.session_id == *id
    );
    // The damage may have made one line of two, or two of one: then the next record tells that nothing has moved.
    let mut is_in_place = line.len() == begins.len();
    if !is_in_place {
        let mut next = None;
        let length = begins.len() as u64;
        let scanned = log.scan(at, length, &mut |offset, line| {
            if offset == length {
                next = Head::parse(line).ok().and_then(|head| head.envelope);
            }
        })?;
        is_in_place = next.is_some_and(|envelope| envelope.seq == Seq(1))
            || scanned.is_some_and(|scanned| scanned.len == length && scanned.torn == 0);
    }
    Ok((is_of_session && is_in_place).then_some(begins))
}

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
            let sum = first.as_deref().filter(|line| Head::parse(line).is_ok()).map(first_line_sum);
            let is_fork = |line: &Vec<u8>| crate::load::base_in(line).is_some() && Head::parse(line).is_ok();
            let begins = first.filter(is_fork).and_then(|line| String::from_utf8(line).ok());
            let commit = self.catalogue.get(&id).ok().flatten().map(|row| row.commit).unwrap_or_default();
            files.push((id, RegisteredFile { length, commit, first: sum, begins }));
        }
        Ok(self.log.register_files(files)?)
    }

    /// Reads a session for the catalogue. One whose file cannot be read is closed, with a warning, and others go on.
    pub(crate) fn read_or_close(&self, id: &SessionId) -> Option<Read> {
        match self.read(At::Live(id), id) {
            Ok(read) => {
                let length = self.log.stamp(At::Live(id)).ok().flatten().map_or(0, |(length, _)| length);
                self.compare_beginning(id, read.as_ref(), length);
                read.filter(|_| self.log.file_damage(id) != Some(FileDamage::Replaced))
            }
            Err(error) => {
                self.warn(&format!("session {id} cannot be read: {}", error.message));
                self.log.close_unreadable(id, error.message);
                None
            }
        }
    }

    /// Compares the beginning of a session's file with the register if there is a reason to: nothing can be read, or the catalogue
    /// knows another session of this id. Fails if the file was replaced.
    pub(crate) fn compare_if_strange(&self, id: &SessionId, read: Option<&Read>) -> Result<(), Error> {
        let row = self.catalogue.get(id).ok().flatten();
        let born = read.filter(|read| read.state.exists()).map(|read| read.state.born().to_string());
        let is_strange = match (&row, &born) {
            (Some(row), Some(born)) => row.file.key.born != *born,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if is_strange && self.log.file_damage(id).is_none() {
            let length = self.log.stamp(At::Live(id)).ok().flatten().map_or(0, |(length, _)| length);
            self.compare_beginning(id, read, length);
        }
        match self.log.file_damage(id) {
            Some(FileDamage::Replaced) => self.refuse_damaged_file(id),
            _ => Ok(()),
        }
    }

    /// Closes a session whose file is another one than it was, or holds nothing that can be read any more.
    pub(crate) fn compare_beginning(&self, id: &SessionId, read: Option<&Read>, length: u64) {
        let damage = match read.and_then(|read| read.first_line) {
            Some(sum) => self.log.check_first_line(id, sum),
            None => None,
        };
        let is_empty = read.is_none_or(|read| !read.state.exists() && read.first_line.is_none());
        if damage.is_none() && is_empty && length > 0 && self.log.file_damage(id).is_none() {
            // Any sum differs from that of a first line which cannot be read.
            if self.log.check_first_line(id, 0).is_some() {
                self.log.close_unreadable(id, "it holds no record that can be read".to_owned());
            }
        }
        if let Some(damage) = self.log.file_damage(id) {
            self.warn(&format!("the file of session `{id}` {}; {}", damage.reason(), damage.advice(id)));
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
        self.damage_of(id, Some(length)).is_some_and(|damage| !matches!(damage, FileDamage::Newer { .. }))
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
        Head::parse(&begins).is_ok().then_some(begins)
    }
}
