//! Bringing the catalogue in line with the session files, after a crash or when somebody else wrote to them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use banyan_core::state::SessionState;
use banyan_core::{Born, names};
use banyan_index::{Catalogue, FileKey, IndexError, MetadataTrust, Row, SeenFile, SessionFile, Standing};
use banyan_log::{At, Recovered, SessionLog};
use banyan_model::{CommitNo, Error, SessionId};

use crate::load::Read;
use crate::opening::OpenError;
use crate::store::Store;

/// The state under which the catalogue remembers how the directory looked when it was closed.
const DIRECTORY: &str = "directory";

/// The state under which the catalogue remembers that the store was closed. It is taken away while the store is in use.
const CLOSED: &str = "closed";

/// So many session files are looked at when the store is opened; more are looked at when they are used.
const LOOK_AT_ALL: u64 = 20_000;

/// What comparing the session files with the catalogue found.
#[derive(Default)]
pub(crate) struct Compared {
    /// Imports that did not end.
    pub(crate) interrupted: Vec<SessionId>,
    /// Whether files changed in another way than by commits of this store, so that the journal does not say what is new.
    pub(crate) changed_outside: bool,
}

/// Tells which files changed in another way than by commits of this store.
struct Outside {
    touched: HashSet<String>,
    /// How long each file was; `None` where that is not known.
    registered: Option<HashMap<String, u64>>,
}

impl Outside {
    fn of(store: &Store, recovered: &Recovered) -> Self {
        let touched = store.touched_rows(recovered);
        let is_known = !store.log.register_is_new();
        Self { touched, registered: is_known.then(|| store.log.registered_lengths()) }
    }

    fn changed(&self, store: &Store, id: &SessionId, read: &Read) -> bool {
        let stem = names::file_stem(id);
        let Some(registered) = self.registered.as_ref().filter(|_| !self.touched.contains(&stem)) else {
            return false;
        };
        let is_longer = registered.get(&store.log.file_name(id)).is_none_or(|length| *length < read.scanned.len);
        // The register may be behind, where there was no room for it.
        is_longer && !store.has_journalled(id, read)
    }
}

impl Store {
    /// Makes the catalogue anew from the session files.
    pub(crate) fn rebuild_catalogue(&self, recovered: &Recovered) -> Result<Compared, OpenError> {
        let mut compared = Compared::default();
        self.search.doubt();
        self.log.respell()?;
        let outside = Outside::of(self, recovered);
        let sessions = self.log.sessions()?;
        self.progress.begin("Rebuilding the catalogue", sessions.len() as u64);
        let mut last = CommitNo(0);
        self.catalogue.rebuild::<OpenError>(|sink| {
            for (done, id) in sessions.iter().enumerate() {
                let read = self.read_or_close(id);
                compared.interrupted.extend(self.left_import(id, read.as_ref()));
                compared.changed_outside |= read.as_ref().is_some_and(|read| outside.changed(self, id, read));
                if let Some(read) = read.filter(|read| read.state.exists()) {
                    let row = self.row(id, &read, Standing::Listed);
                    last = last.max(row.commit);
                    sink.put(&row)?;
                }
                self.progress.step(done as u64 + 1);
            }
            last = last.max(self.log.head());
            Ok(last)
        })?;
        self.progress.end();
        self.mark_unused_bases()?;
        Ok(compared)
    }

    /// Asks the catalogue. One that turns out to be damaged is made anew first.
    pub(crate) fn ask_catalogue<T>(&self, ask: impl Fn(&Catalogue) -> Result<T, IndexError>) -> Result<T, Error> {
        let answer = match ask(&self.catalogue) {
            Err(IndexError::Damaged { .. }) => {
                self.rebuild_damaged().map_err(|error| Error::storage(error.to_string()))?;
                ask(&self.catalogue)
            }
            answer => answer,
        };
        Ok(answer?)
    }

    /// Rebuilds a catalogue in which damage was met, unless another caller just did.
    pub(crate) fn rebuild_damaged(&self) -> Result<(), OpenError> {
        let _only = self.rebuilding.lock().unwrap_or_else(PoisonError::into_inner);
        if self.catalogue.is_damaged() {
            self.warn("the catalogue is rebuilt: damage was met");
            self.rebuild_catalogue(&Recovered::default())?;
        }
        Ok(())
    }

    /// Catches up with what the catalogue has not seen.
    pub(crate) fn reconcile(&self, recovered: &Recovered) -> Result<Compared, OpenError> {
        let mut compared = Compared::default();
        let whole = !self.is_large_and_unchanged(recovered)?;
        if whole {
            self.compare_files()?;
        }
        let files = recovered.touched.iter().filter(|path| path.ends_with(".jsonl"));
        let told: Option<Vec<SessionId>> = files.map(|path| self.log.session_of_file(path)).collect();
        let touched = self.touched_rows(recovered);
        match told {
            // With very many sessions only those are looked at that a crash interrupted, unless somebody else was here.
            Some(told) if !whole => {
                self.progress.begin("Catching up after a crash", told.len() as u64);
                for (done, id) in told.iter().enumerate() {
                    match self.catalogue.get(id)? {
                        Some(row) if self.log.stamp(At::Live(id))?.is_none() => {
                            self.forget_missing(&row.file.key)?
                        }
                        _ => drop(self.look_again(id, &mut compared)?),
                    }
                    self.progress.step(done as u64 + 1);
                }
            }
            _ => self.look_at_all(recovered, &touched, &mut compared)?,
        }
        self.progress.end();
        self.catalogue.flush()?;
        // Nothing is kept, and nothing was on its way out: there is no need to look through all rows.
        if recovered.commits == 0 && self.log.retained().is_empty() {
            return Ok(compared);
        }
        self.mark_unused_bases()?;
        Ok(compared)
    }

    /// Whether the journal has the last commit of a session's file as this session's.
    fn has_journalled(&self, id: &SessionId, read: &Read) -> bool {
        let (last, mut found) = (read.state.last_commit(), false);
        let before = CommitNo(last.0.saturating_sub(1));
        let replayed = self.log.replay(before, last, &mut |entry| {
            found = entry.commit == last && entry.session == *id && entry.born == read.state.born();
            false
        });
        replayed.is_ok() && found
    }

    /// The rows of the catalogue whose files recovery touched, by their stems.
    fn touched_rows(&self, recovered: &Recovered) -> HashSet<String> {
        // A name that does not tell its session is that of its row.
        let row_of = |path: &str| match self.log.session_of_file(path) {
            Some(id) => names::file_stem(&id),
            None => path.trim_end_matches(".jsonl").to_owned(),
        };
        recovered.touched.iter().filter(|path| path.ends_with(".jsonl")).map(|path| row_of(path)).collect()
    }

    /// Whether there are very many sessions, and nobody else wrote to the directory since it was closed.
    pub(crate) fn is_large_and_unchanged(&self, recovered: &Recovered) -> Result<bool, OpenError> {
        // What the log has lost of commits is not counted, so that more is looked at then.
        let before_log = self.log.head().0.saturating_sub(recovered.commits);
        let is_current = self.catalogue.applied()?.0 >= before_log;
        Ok(is_current && self.catalogue.count()? > LOOK_AT_ALL && self.nobody_else_was_here(recovered)?)
    }

    fn nobody_else_was_here(&self, recovered: &Recovered) -> Result<bool, OpenError> {
        let stamp = self.log.directory_stamp();
        Ok(recovered.commits > 0 || (stamp.is_some() && self.catalogue.state(DIRECTORY)? == stamp))
    }

    /// Compares every session file with what the catalogue knows of it.
    fn look_at_all(
        &self,
        recovered: &Recovered,
        touched: &HashSet<String>,
        compared: &mut Compared,
    ) -> Result<(), OpenError> {
        self.log.respell()?;
        let mut known: HashMap<String, SeenFile> = HashMap::new();
        self.catalogue.files(|seen| {
            if seen.standing == Standing::Listed {
                known.insert(seen.stem.clone(), seen);
            }
        })?;
        let sessions = self.log.sessions()?;
        let unknown = |id: &&SessionId| {
            let stem = names::file_stem(id);
            let Some(seen) = known.get(&stem) else { return true };
            touched.contains(&stem)
                || self.log.stamp(At::Live(id)).ok().flatten().map(|(len, _)| len) != Some(seen.length)
        };
        let changed: Vec<&SessionId> = sessions.iter().filter(unknown).collect();
        let present: HashSet<String> = sessions.iter().map(names::file_stem).collect();
        for seen in known.values().filter(|seen| !present.contains(&seen.stem)) {
            self.forget_missing(&seen.key)?;
        }
        self.progress.begin("Catching up with the session files", changed.len() as u64);
        let by_others = changed.iter().filter(|id| !touched.contains(&names::file_stem(id)));
        // Before the catalogue knows the files: whatever happens then, search looks at them.
        self.mark_for_search(by_others.map(|id| (*id).clone()).collect());
        let outside = Outside::of(self, recovered);
        for (done, id) in changed.into_iter().enumerate() {
            let read = self.look_again(id, compared)?;
            compared.changed_outside |= read.is_some_and(|read| outside.changed(self, id, &read));
            self.progress.step(done as u64 + 1);
        }
        Ok(())
    }

    /// Notes a session as its file is now.
    pub(crate) fn note_again(&self, id: &SessionId) -> Result<(), OpenError> {
        self.mark_for_search(vec![id.clone()]);
        self.look_again(id, &mut Compared::default()).map(drop)
    }

    /// Notes a session as its file is now.
    fn look_again(&self, id: &SessionId, compared: &mut Compared) -> Result<Option<Read>, OpenError> {
        let read = self.read_or_close(id);
        if read.is_none() && self.log.file_damage(id).is_some() {
            return Ok(None);
        }
        compared.interrupted.extend(self.left_import(id, read.as_ref()));
        match read.as_ref().filter(|read| read.state.exists()) {
            Some(read) => {
                let row = self.row(id, read, Standing::Listed);
                // Numbers that any file has seen are not given out again.
                self.log.raise_head(row.commit);
                self.catalogue.note(row);
            }
            None => self.catalogue.forget(id),
        }
        Ok(read)
    }

    /// The id of an import that did not end. One that is damaged may have ended, so it is left as it is, and closed.
    fn left_import(&self, id: &SessionId, read: Option<&Read>) -> Option<SessionId> {
        let read = read.filter(|read| read.state.is_importing() && !read.state.exists())?;
        if let Some((line, fault)) = read.faults.first() {
            let reason = format!("line {line}: {fault}; it is not known whether its import ended");
            self.warn(&format!("session {id}, {reason}"));
            self.log.close_unreadable(id, reason);
        }
        self.log.file_damage(id).is_none().then(|| id.clone())
    }

    /// A session whose file is gone was deleted just before a crash, or by somebody else.
    fn forget_missing(&self, key: &FileKey) -> Result<(), OpenError> {
        if self.log.file_damage(&key.session_id).is_some() {
            return Ok(());
        }
        self.mark_for_search(vec![key.session_id.clone()]);
        let kept = key.born.parse().is_ok_and(|born| self.log.is_retained(born));
        match self.catalogue.file(key)? {
            Some(mut row) if kept => {
                row.standing = Standing::Retained;
                self.catalogue.note(row);
            }
            _ => self.catalogue.forget(&key.session_id),
        }
        Ok(())
    }

    /// Marks records that were kept for forks which seem to be gone.
    fn mark_unused_bases(&self) -> Result<(), OpenError> {
        let kept = self.note_needed_bases()?;
        for born in self.log.retained() {
            match kept.get(&born.to_string()) {
                Some(key) => self.release_base(Some(key.clone())),
                None if self.catalogue.base_born(&born.to_string())?.is_none() => {
                    self.log.mark_unused(born)?;
                    self.note_unused_base(born)?;
                }
                // A fork names it, though its records cannot be read: they are left for a person to look at.
                None => {}
            }
        }
        for key in kept.into_values() {
            if key.born.parse().is_ok_and(|born| !self.log.is_retained(born)) {
                self.catalogue.release(&key);
            }
        }
        Ok(())
    }

    /// Makes sure that the catalogue knows all kept records that a fork names as its base, and says which are known.
    fn note_needed_bases(&self) -> Result<HashMap<String, FileKey>, OpenError> {
        let mut noted_before = HashSet::new();
        loop {
            let mut kept: HashMap<String, FileKey> = HashMap::new();
            self.catalogue.files(|seen| {
                if seen.standing == Standing::Retained {
                    kept.insert(seen.key.born.clone(), seen.key);
                }
            })?;
            // What is noted may itself be a fork of something kept, so this goes on until nothing is new.
            let mut noted = false;
            for born in self.log.retained() {
                if !kept.contains_key(&born.to_string())
                    && let Some(key) = self.catalogue.base_born(&born.to_string())?
                    && noted_before.insert(born)
                {
                    noted |= self.note_base(&key.session_id, born)?;
                }
            }
            if !noted {
                return Ok(kept);
            }
        }
    }

    /// Notes a base that no fork seems to read: it stays for its time, and so does the content that it uses.
    fn note_unused_base(&self, born: Born) -> Result<(), OpenError> {
        let first = self.log.first_line(At::Incarnation(&SessionId::from(""), born))?;
        if let Some(id) = first.and_then(|line| banyan_log::session_named_in(&line)) {
            self.note_base(&id, born)?;
        }
        Ok(())
    }

    fn note_base(&self, id: &SessionId, born: Born) -> Result<bool, OpenError> {
        let Some(read) = self.read(At::Incarnation(id, born), id)? else { return Ok(false) };
        let mut row = self.row(id, &read, Standing::Retained);
        // Damage may have taken the first record, which says this.
        Arc::make_mut(&mut row.file).key.born = born.to_string();
        self.catalogue.note(row);
        self.catalogue.flush()?;
        Ok(true)
    }

    /// Whether the last one who used the store closed it. Whoever asks uses it from now on.
    pub(crate) fn was_closed(&self) -> bool {
        matches!(self.catalogue.take_state(CLOSED), Ok(Some(_)))
    }

    /// Remembers that nobody uses the store any more.
    pub(crate) fn note_closed(&self) {
        // Without it the next opening looks through the stored content, which is only slower.
        let _ = self.catalogue.set_state(CLOSED, "yes");
    }

    /// Remembers how the directory looks, for the next opening.
    pub(crate) fn note_clean_close(&self) {
        if let Some(stamp) = self.log.directory_stamp() {
            // Without it the next opening looks at every file, which is only slower.
            let _ = self.catalogue.set_state(DIRECTORY, &stamp);
        }
        let closed = self.catalogue.flush_through(self.log.head()).and_then(|()| self.catalogue.close());
        if let Err(error) = closed {
            self.warn(&format!("the catalogue could not be written and will be rebuilt: {error}"));
        }
    }

    fn row(&self, id: &SessionId, read: &Read, standing: Standing) -> Row {
        let state = &read.state;
        let base =
            state.base().map(|base| FileKey { session_id: base.session_id.clone(), born: base.born.to_string() });
        Row {
            file: Arc::new(SessionFile {
                key: FileKey { session_id: id.clone(), born: state.born().to_string() },
                stem: names::file_stem(id),
                base,
            }),
            standing,
            meta: Arc::clone(state.meta()),
            trust: trust_of(state),
            length: read.scanned.len,
            modified: 0,
            commit: state.last_commit(),
            blobs: read.blobs.keys().filter_map(|hash| blake3::Hash::from_hex(hash).ok()).collect(),
        }
    }

    /// Notes a session again when its file is not as the catalogue knows it.
    pub(crate) fn notice(&self, id: &SessionId, read: &Read) -> Result<(), IndexError> {
        let known = match self.catalogue.get(id) {
            // The rebuild that is under way comes to this session by itself.
            Err(IndexError::Unbuilt) => return Ok(()),
            known => known?,
        };
        if known.is_none_or(|row| row.length != read.scanned.len || row.trust != trust_of(&read.state)) {
            self.mark_for_search(vec![id.clone()]);
            self.catalogue.note(self.row(id, read, Standing::Listed));
        }
        Ok(())
    }
}

/// Whether the metadata that a state has is known to be the session's.
pub(crate) fn trust_of(state: &SessionState) -> MetadataTrust {
    if state.metadata_in_doubt() { MetadataTrust::InDoubt } else { MetadataTrust::Known }
}
