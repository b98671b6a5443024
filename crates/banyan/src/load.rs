//! Bringing a session into memory: its records are read once, in order, without their content.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use banyan_core::born::Born;
use banyan_core::record::{Base, Head, HeadKind, Salvaged, SalvagedWhat};
use banyan_core::state::{SessionState, StateFault};
use banyan_index::Listing;
use banyan_log::{At, Scanned, SessionLog, first_line_sum};
use banyan_model::{Error, SessionId};

use crate::access::Access;
use crate::bodies::{Body, Wanted};
use crate::file_damage::REGISTERED_BEGINNING;
use crate::sessions::{Loaded, Session};
use crate::store::{Purpose, Store};

/// A session that was read.
pub(crate) struct Read {
    pub(crate) state: SessionState,
    /// The blobs that its records use, each with the first line that does.
    pub(crate) blobs: HashMap<String, u64>,
    /// What is wrong, by line.
    pub(crate) faults: Vec<(u64, String)>,
    /// The lines among them that a newer Banyan wrote, which is no damage.
    pub(crate) newer: HashSet<u64>,
    pub(crate) scanned: Scanned,
    pub(crate) lines: u64,
    /// The checksum of its file's first line, if that is valid and was read.
    pub(crate) first_line: Option<u32>,
}

impl Store {
    /// The session's object, loaded, whoever asks. Functions get at a state by `look` or `find`.
    pub(crate) fn session(&self, id: &SessionId) -> Result<Arc<Session>, Error> {
        let session = self.sessions.get(id);
        if matches!(*session.read(), Loaded::NotYet) {
            let mut loaded = Ok(());
            (self.settings.may_block)(&mut || loaded = self.load_into(&session));
            loaded?;
        }
        Ok(session)
    }

    /// Looks at a session. `None` when there is no such session in the scope.
    pub(crate) fn look<T>(
        &self,
        access: &Access,
        id: &SessionId,
        look: impl FnOnce(&SessionState) -> T,
    ) -> Result<Option<T>, Error> {
        if self.listing(access, id)? != Listing::Matching {
            return Ok(None);
        }
        let session = self.session(id)?;
        let seen = match &*session.read() {
            Loaded::Present(state) if access.covers(state) => Some(look(state)),
            Loaded::Present(_) | Loaded::Absent(_) | Loaded::NotYet => None,
        };
        if seen.is_none() {
            self.sessions.forget_absent(session);
        }
        Ok(seen)
    }

    fn load_into(&self, session: &Session) -> Result<(), Error> {
        // Forks are loaded base first, one after another, so that a long line of them needs no deep stack.
        if self.log.tree(&session.id).is_none() {
            for (id, _) in self.line_of_bases(&session.id)?.iter().rev() {
                self.load_one(&self.sessions.get(id))?;
            }
        }
        self.load_one(session)
    }

    fn load_one(&self, session: &Session) -> Result<(), Error> {
        let mut loaded = session.write();
        if !matches!(*loaded, Loaded::NotYet) {
            return Ok(());
        }
        let at = At::Live(&session.id);
        let image = self.read_image(&session.id)?;
        let from_image = image.is_some();
        let read = match image {
            Some(read) => Some(read),
            None => self.read_or_refuse(&session.id)?,
        };
        self.compare_if_strange(&session.id, read.as_ref())?;
        let Some(read) = read else {
            self.refuse_damaged_file(&session.id)?;
            *loaded = Loaded::Absent(None);
            return Ok(());
        };
        if !read.state.exists() && read.state.newer().is_none() {
            self.refuse_damaged_file(&session.id)?;
        }
        if let Some(newer) = read.state.newer() {
            self.log.close_newer(&session.id, newer.reason.clone(), newer.needed());
        } else if self.settings.purpose == Purpose::Work && !self.is_short(&session.id, read.scanned.len) {
            self.log.mend(at, read.scanned)?;
            if !from_image && read.state.exists() {
                self.save_image(&session.id, &read.state, read.scanned.len);
            }
        }
        for (line, fault) in &read.faults {
            self.warn(&format!("session {}, line {line}: {fault}", session.id));
        }
        self.log.expect_seq(&session.id, read.state.next_seq())?;
        *loaded = if read.state.exists() {
            self.notice(&session.id, &read).map_err(|error| Error::storage(error.to_string()))?;
            session.set_image_covers(read.scanned.len);
            self.note_loaded_damage(&read.state);
            self.sessions.weigh(session, Some(&read.state));
            Loaded::Present(Box::new(read.state))
        } else {
            Loaded::Absent(Some(Box::new(read.state)))
        };
        Ok(())
    }

    /// The live sessions, not loaded yet, that a session was forked from, nearest first.
    fn line_of_bases(&self, id: &SessionId) -> Result<Vec<(SessionId, Born)>, Error> {
        let mut line = Vec::new();
        let mut next = self.base_of(id)?;
        while let Some(base) = next {
            let known = !matches!(*self.sessions.get(&base.session_id).read(), Loaded::NotYet);
            if known || self.log.is_retained(base.born) || line.len() > MOST_BASES {
                break;
            }
            next = self.base_of(&base.session_id)?;
            line.push((base.session_id, base.born));
        }
        Ok(line)
    }

    fn base_of(&self, id: &SessionId) -> Result<Option<Base>, Error> {
        let Some(line) = self.log.first_line(At::Live(id))? else { return Ok(None) };
        Ok(base_in(&self.registered_beginning(id, &line).unwrap_or(line)))
    }

    /// Reads a session's records. `None` when it has none.
    pub(crate) fn read(&self, at: At<'_>, id: &SessionId) -> Result<Option<Read>, Error> {
        self.read_from(at, id, 0, None)
    }

    /// The same from an offset on, when what comes before is known.
    pub(crate) fn read_from(
        &self,
        at: At<'_>,
        id: &SessionId,
        from: u64,
        mut state: Option<SessionState>,
    ) -> Result<Option<Read>, Error> {
        let mut trouble = Ok(());
        let (mut faults, mut newer) = (Vec::new(), HashSet::new());
        let mut blobs: HashMap<String, u64> = HashMap::new();
        let mut number = 0_u64;
        let mut first_line = None;
        // Up to here the register had the lines.
        let mut known_through = 0;
        let is_live = matches!(at, At::Live(_));
        let mut apply = |number: u64, offset: u64, line: &[u8]| {
            if line.iter().all(u8::is_ascii_whitespace) {
                return;
            }
            if offset == 0 && is_live {
                trouble = refuse_other_session(id, line);
            }
            let state = state.get_or_insert_with(|| match base_in(line) {
                Some(base) => match self.fork_of(id, &base) {
                    Ok(state) => state,
                    Err(error) => {
                        trouble = Err(error);
                        SessionState::begin(id.clone())
                    }
                },
                None => SessionState::begin(id.clone()),
            });
            let len = u32::try_from(line.len()).unwrap_or(u32::MAX);
            let found = match Head::parse(line) {
                Ok(head) => {
                    if offset == 0 {
                        first_line = Some(first_line_sum(line));
                    }
                    for blob in &head.blobs {
                        blobs.entry(blob.hash.clone()).or_insert(number);
                    }
                    if let HeadKind::Newer(_) = head.kind {
                        newer.insert(number);
                    }
                    state.apply(&head, offset, len)
                }
                Err(fault) => {
                    let (damaged, records) = joined_records(line);
                    let damaged_len = u32::try_from(damaged).unwrap_or(u32::MAX);
                    // Without bytes of its own it is only the line feed that is damaged.
                    let mut found = match damaged {
                        0 => vec![StateFault::Damaged(fault.reason.clone())],
                        _ => state.apply_damaged(&fault, offset, damaged_len),
                    };
                    for (at, record) in records {
                        let Ok(head) = Head::parse(record) else { continue };
                        blobs.extend(head.blobs.iter().map(|blob| (blob.hash.clone(), number)));
                        found.extend(state.apply(&head, offset + at as u64, record.len() as u32));
                    }
                    found
                }
            };
            faults.extend(found.into_iter().map(|fault| (number, fault.to_string())));
        };
        let scanned = self.log.scan(at, from, &mut |offset, line| {
            number += 1;
            if offset == 0
                && is_live
                && let Some(known) = self.registered_beginning(id, line)
            {
                known_through = known.len() as u64;
                apply(number, 0, &known);
                // The damage may have joined the lines that follow to the first one.
                if let Some(rest) = line.get(known.len()..).filter(|rest| !rest.is_empty()) {
                    apply(number, known_through, rest);
                }
            } else if offset >= known_through {
                apply(number, offset, line);
            }
        })?;
        if let (0, Some(scanned)) = (number, &scanned)
            && scanned.torn > 0
            && let Some(known) = self.registered_beginning(id, b"").filter(|_| is_live)
        {
            known_through = known.len() as u64;
            apply(1, 0, &known);
        }
        if known_through > 0 {
            faults.push((1, REGISTERED_BEGINNING.to_owned()));
        }
        trouble?;
        let (Some(mut state), Some(scanned)) = (state, scanned) else { return Ok(None) };
        faults.extend(state.finish().into_iter().map(|fault| (number, fault.to_string())));
        if matches!(at, At::Live(_)) && self.lost_its_end(id, scanned)? {
            faults.extend(state.lost_its_end().into_iter().map(|fault| (number, fault.to_string())));
        }
        if scanned.torn > 0 {
            faults.push((number + 1, format!("a last line of {} bytes was never finished", scanned.torn)));
        }
        for attached in state.attachments().values() {
            blobs.entry(attached.blob.clone()).or_insert(0);
        }
        self.hydrate(&mut state)?;
        Ok(Some(Read { state, blobs, faults, newer, scanned, lines: number, first_line }))
    }

    /// Whether a session's file lacks lines that it had. It is read-only then, and what is left of its end stays.
    fn lost_its_end(&self, id: &SessionId, scanned: Scanned) -> Result<bool, Error> {
        if self.is_short(id, scanned.len + scanned.torn) {
            return Ok(true);
        }
        if scanned.torn == 0 {
            return Ok(false);
        }
        // session-manager leaves unfinished lines, which nobody was told of.
        let legacy = self.log.read(At::Live(id), scanned.len, LEGACY_LINE.len())? == LEGACY_LINE;
        Ok(!legacy && self.log.close_torn(id, scanned.len).is_some())
    }

    /// A fork's beginning: what it inherits. Without its base it begins empty.
    fn fork_of(&self, id: &SessionId, base: &Base) -> Result<SessionState, Error> {
        let begin = |state: &SessionState| SessionState::begin_fork(id.clone(), base, state);
        let begun = if self.log.is_retained(base.born) {
            let at = At::Incarnation(&base.session_id, base.born);
            let read = self.read(at, &base.session_id).unwrap_or_else(|error| {
                self.warn(&format!("session {id}: what it inherits cannot be read: {error}"));
                None
            });
            for (line, fault) in read.iter().flat_map(|read| &read.faults) {
                self.warn(&format!("session {id}: .banyan/bases/{}.jsonl, line {line}: {fault}", base.born));
            }
            read.map(|read| begin(&read.state))
        } else {
            self.look(Access::whole(), &base.session_id, begin)?
        };
        Ok(match begun {
            Some(Ok(state)) => state,
            Some(Err(fault)) => {
                self.warn(&format!("session {id}: {fault}"));
                SessionState::begin(id.clone())
            }
            None => SessionState::begin(id.clone()),
        })
    }

    /// Gives a growing entry the message that it has by now.
    fn hydrate(&self, state: &mut SessionState) -> Result<(), Error> {
        let Some(ix) = state.needs_hydration() else { return Ok(()) };
        let wanted = Wanted::of(state, ix);
        if let Some(fetched) = self.fetch_one(state.sources(), &wanted)?
            && let Body::Message(message) = fetched.body
        {
            state.hydrate(message.parse()?);
        }
        Ok(())
    }
}

/// What the lines of session-manager begin with.
const LEGACY_LINE: &[u8] = b"{\"type\"";
/// The whole records at the end of a damaged line, each with its offset: the line feeds before them are damaged. Returns how many
/// bytes precede them, too.
fn joined_records(line: &[u8]) -> (usize, Vec<(usize, &[u8])>) {
    /// A line in which more may begin has other damage.
    const MOST: usize = 1000;
    let begins: Vec<usize> = memchr::memmem::find_iter(line, RECORD).take(MOST).collect();
    let (mut end, mut records) = (line.len(), Vec::new());
    for at in begins.into_iter().rev().filter(|at| *at > 0) {
        // The last byte may be what was a line feed.
        let whole = line.get(at..end).into_iter().chain(line.get(at..end - 1));
        if let Some(record) = whole.into_iter().find(|record| Head::parse(record).is_ok()) {
            records.push((at, record));
            end = at;
        }
    }
    if end > 0
        && let Some(record) = line.get(..end - 1).filter(|record| Head::parse(record).is_ok())
    {
        records.push((0, record));
        end = 0;
    }
    records.reverse();
    (end, records)
}

/// What each record begins with.
const RECORD: &[u8] = b"{\"schema_version\":";

/// Fails for the first line of another session's file: files were exchanged, or one was copied over another.
fn refuse_other_session(id: &SessionId, line: &[u8]) -> Result<(), Error> {
    // What a damaged line says may be damaged itself.
    let named = Head::parse(line).ok().and_then(|_| banyan_log::session_named_in(line));
    match named.filter(|named| named != id) {
        Some(named) => Err(Error::storage(format!(
            "its records are of session `{named}`; put the file of session `{id}` back in its place"
        ))),
        None => Ok(()),
    }
}

/// A line of forks that is longer than this is taken to be damaged.
const MOST_BASES: usize = 100_000;

/// Where a session's first entries come from, as its first line tells, damaged or not.
pub(crate) fn base_in(line: &[u8]) -> Option<Base> {
    match Head::parse(line) {
        Ok(Head { kind: HeadKind::Created(created), .. }) => created.base,
        Ok(Head { kind: HeadKind::Newer(newer), .. }) => salvaged_base(newer.salvage),
        Ok(_) => None,
        Err(fault) => salvaged_base(fault.salvage),
    }
}

fn salvaged_base(salvage: Option<Salvaged>) -> Option<Base> {
    match salvage?.what {
        SalvagedWhat::Created { base, .. } => base,
        _ => None,
    }
}
