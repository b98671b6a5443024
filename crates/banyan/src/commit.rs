//! The life of a mutation: decided under the session's writer lock, committed by the log, then applied, noted and told.
//!
//! What follows the flush happens on a thread of the log, in commit order, whether or not the caller still waits.

mod part;

use std::sync::{Arc, Weak};

use banyan_core::Born;
use banyan_core::decide::{Ctx, Decision};
use banyan_core::record::{self, Envelope, Head, Record, Spots};
use banyan_core::state::{LiveAdd, SessionState, Written};
use banyan_index::{FileKey, Listing, MetadataTrust, Row, SessionFile, Standing};
use banyan_log::{
    Answer, BlobHash, Commit, Committed, Growth, LogError, Piece, Removal, SessionLog, Write, WriteDone,
};
use banyan_model::store::Version;
use banyan_model::{AgentMessage, Error, Object, Seq, SessionId, SessionMeta};
use tokio::sync::{OwnedMutexGuard, oneshot};

use crate::access::Access;
use crate::clock::{FreshIds, now_ms};
use crate::reconcile::trust_of;
use crate::sessions::{Loaded, Session};
use crate::store::Store;
use crate::store_protocol::{Token, version_of};
pub(crate) use part::{Part, PartDone};

/// A session that only the holder may change.
pub(crate) struct Held {
    session: Arc<Session>,
    guard: OwnedMutexGuard<()>,
    /// Whose scope the session must stay in, if that is not everything.
    access: Option<Arc<Access>>,
}

/// What goes into one session in a commit.
pub(crate) struct Change {
    pub(crate) held: Held,
    pub(crate) records: Vec<Record>,
    pub(crate) time_ms: i64,
    /// The message that a growth adds to, when the entry did not grow before.
    pub(crate) before: Option<AgentMessage>,
    pub(crate) kind: ChangeKind,
}

/// How a change meets the session's state.
pub(crate) enum ChangeKind {
    /// The session is there, or begins with this change.
    Own,
    /// A fork begins. Its state is left to whoever looks at it first.
    Fork(Box<SessionMeta>),
    /// A part of an import, perhaps the last one. Earlier parts use this content, which is pinned.
    Import(Vec<BlobHash>),
}

/// How a session ends.
pub(crate) struct End {
    pub(crate) time_ms: i64,
    pub(crate) telling: Telling,
    pub(crate) token: Option<Token>,
}

/// Who is told of an end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    /// All subscribers.
    Everyone,
    /// Those who come back later. Whoever ended it tells those who listen now.
    Later,
    /// Nobody: the session goes on, emptied.
    Nobody,
}

/// A change with its lines written, waiting for its commit.
struct Prepared {
    session: Arc<Session>,
    records: Vec<Record>,
    /// How each record was written.
    lines: Vec<Line>,
    /// The number of the first record.
    first: Seq,
    time_ms: i64,
    before: Option<AgentMessage>,
    kind: ChangeKind,
    blobs: Vec<BlobHash>,
    /// Held until the change is visible.
    guard: Option<OwnedMutexGuard<()>>,
}

/// How a record was written.
#[derive(Default)]
struct Line {
    /// The record without its long strings, if it has any.
    short: Option<Box<Record>>,
    spots: Spots,
}

/// What a caller gets. Whatever the commit needed comes along, to be let go by the thread that made it: giving memory back
/// on another one costs more.
struct Answered {
    outcome: Result<(), LogError>,
    _spent: (Vec<Prepared>, Option<Committed>),
}

/// A line has about so many bytes besides its body and its origin.
const BESIDES_PARTS: usize = 384;

impl Store {
    /// Takes the right to change a session, waiting for whoever has it. `None` when there is no such session in the scope.
    pub(crate) async fn find(&self, access: &Arc<Access>, id: &SessionId) -> Result<Option<Held>, Error> {
        access.must_write()?;
        if self.listing(access, id)? != Listing::Matching {
            return Ok(None);
        }
        let held = Held::take(access, self.session(id)?).await;
        // Only now it is certain: the session may have ended, and its id become another's.
        if held.look(|state| access.covers(state)) == Some(true) {
            self.refuse_newer(&held)?;
            return Ok(Some(held));
        }
        self.let_go(held);
        Ok(None)
    }

    /// The same; a session that does not exist in the scope is refused.
    pub(crate) async fn hold(&self, access: &Arc<Access>, id: &SessionId) -> Result<Held, Error> {
        self.find(access, id).await?.ok_or_else(|| Error::not_found(id))
    }

    /// The same for a session that begins unless it is there. One that is there, out of scope, is refused.
    pub(crate) async fn hold_or_begin(
        self: &Arc<Self>,
        access: &Arc<Access>,
        id: &SessionId,
    ) -> Result<Held, Error> {
        access.must_write()?;
        if self.listing(access, id)? == Listing::Other {
            return Err(Error::not_found(id));
        }
        let mut held = Held::take(access, self.session(id)?).await;
        if held.with_state(SessionState::is_importing) {
            // Nobody is at it any more, or the session could not be held.
            let end = End { time_ms: now_ms(), telling: Telling::Nobody, token: None };
            held = self.remove(held, end).await?;
        }
        let theirs = match &*held.session.read() {
            Loaded::Present(state) => !access.covers(state),
            // Entries without a session, which would come to light with it.
            Loaded::Absent(Some(lines)) => !lines.nodes().is_empty() && !access.scope.is_everything(),
            Loaded::Absent(None) | Loaded::NotYet => false,
        };
        if theirs {
            self.let_go(held);
            return Err(Error::not_found(id));
        }
        self.refuse_newer(&held)?;
        Ok(held)
    }

    /// Fails for a session with records that this build does not understand: nothing is decided on what is not known.
    fn refuse_newer(&self, held: &Held) -> Result<(), Error> {
        match held.with_state(|state| state.newer().is_some()) {
            true => Ok(self.log.refuse_writes(held.id())?),
            false => Ok(()),
        }
    }

    /// The same for a session whose id was made just now.
    pub(crate) async fn hold_new(&self, access: &Arc<Access>, id: &SessionId) -> Result<Held, Error> {
        access.must_write()?;
        Ok(Held::take(access, self.sessions.get(id)).await)
    }

    /// Decides with a session's state and commits what was decided.
    pub(crate) async fn mutate<R: Send + 'static>(
        self: &Arc<Self>,
        access: &Arc<Access>,
        id: &SessionId,
        decide: impl FnOnce(&SessionState, &mut Ctx<'_>) -> Result<Decision<R>, Error>,
    ) -> Result<R, Error> {
        let held = self.hold(access, id).await?;
        let decided = held.decide(self, decide);
        self.carry_out(held, decided, None).await
    }

    /// Commits a decision.
    pub(crate) async fn carry_out<R: Send + 'static>(
        self: &Arc<Self>,
        held: Held,
        decided: Result<(Decision<R>, i64), Error>,
        before: Option<AgentMessage>,
    ) -> Result<R, Error> {
        let (decision, time_ms) = match decided {
            Ok(decided) => decided,
            Err(error) => {
                self.let_go(held);
                return Err(error);
            }
        };
        let Decision { records, response } = decision;
        if records.is_empty() {
            return Ok(response);
        }
        let change = Change { held, records, time_ms, before, kind: ChangeKind::Own };
        self.commit(vec![change], None, None).await?;
        Ok(response)
    }

    /// Gives the right back without a change. A session that does not exist is forgotten.
    pub(crate) fn let_go(&self, held: Held) {
        let Held { session, guard, .. } = held;
        drop(guard);
        self.sessions.forget_absent(session);
    }

    /// Commits changes to one or more sessions together. The last one is what subscribers hear about.
    /// `also` is held until they are visible, and `token` is remembered once they are safe.
    pub(crate) async fn commit(
        self: &Arc<Self>,
        changes: Vec<Change>,
        also: Option<Held>,
        token: Option<Token>,
    ) -> Result<(), Error> {
        let mut writes = Vec::with_capacity(changes.len());
        let mut prepared: Vec<Prepared> = Vec::with_capacity(changes.len());
        for change in changes {
            match self.prepare(change) {
                Ok((write, change)) => {
                    writes.push(write);
                    prepared.push(change);
                }
                Err((error, _)) => {
                    self.unpin(&prepared);
                    return Err(error);
                }
            }
        }
        let (answer, answered) = oneshot::channel();
        let store = Arc::downgrade(self);
        let done = Box::new(move |outcome: Result<Committed, LogError>| {
            let mut prepared = prepared;
            finish(&store, &mut prepared, &outcome, token);
            drop(also);
            let (outcome, committed) = match outcome {
                Ok(committed) => (Ok(()), Some(committed)),
                Err(error) => (Err(error), None),
            };
            let answered = Answered { outcome, _spent: (prepared, committed) };
            Box::new(move || drop(answer.send(answered))) as Answer
        });
        self.log.append(Commit { writes, removal: None, done });
        Ok(answered.await.map_or(Err(LogError::Closed), |answered| answered.outcome)?)
    }

    /// Commits the end of a session, and gives back the right to begin another of its id.
    pub(crate) async fn commit_removal(
        self: &Arc<Self>,
        held: Held,
        removal: Removal,
        end: End,
    ) -> Result<Held, Error> {
        Ok(self.begin_removal(held, removal, end).await.unwrap_or(Err(LogError::Closed))?)
    }

    /// The same without waiting. Whoever does not wait for it lets go of the session all the same.
    pub(crate) fn begin_removal(
        self: &Arc<Self>,
        held: Held,
        removal: Removal,
        end: End,
    ) -> oneshot::Receiver<Result<Held, LogError>> {
        let (answer, answered) = oneshot::channel();
        let store = Arc::downgrade(self);
        let keep = removal.keep_for_forks;
        let done = Box::new(move |outcome: Result<Committed, LogError>| {
            if let (Ok(committed), Some(store)) = (&outcome, store.upgrade()) {
                store.removed(&held, committed, keep, &end);
                store.search.hear(committed.commit);
                store.erasure.note();
            }
            if let (true, Some(store), Some(token)) = (outcome.is_ok(), store.upgrade(), end.token) {
                store.tokens.note(token, None);
            }
            Box::new(move || drop(answer.send(outcome.map(|_| held)))) as Answer
        });
        self.log.append(Commit { writes: Vec::new(), removal: Some(removal), done });
        answered
    }

    /// Writes a change's lines; long strings go to the blobs first.
    fn prepare(&self, change: Change) -> Result<(Write, Prepared), (Error, Held)> {
        let Change { held, records, time_ms, before, mut kind } = change;
        if let Err(error) = held.access.as_ref().map_or(Ok(()), |access| access.must_cover(&records)) {
            return Err((error, held));
        }
        let has_metadata = |record: &Record| {
            matches!(record, Record::Created(_) | Record::MetaSet(_) | Record::MetaPut(_) | Record::StatusSet(_))
        };
        if records.iter().any(has_metadata)
            && let Err(error) = held.with_metadata(|known| self.settings.limits().check_metadata(&records, known))
        {
            return Err((error, held));
        }
        let session = &held.session;
        let (known, next) = match session.read().state() {
            Some(state) => (state.born(), state.next_seq()),
            None => (Born::unsaid(&session.id), Seq(0)),
        };
        let born = born_of(&records).unwrap_or(known);
        // Nobody keeps account of content that entries without a session use, so theirs stays in their lines.
        let keeps_account = |state: &SessionState| state.exists() || state.is_importing();
        let has_blobs = session.read().state().is_some_and(keeps_account) || begins(&records);
        let mut pieces = Vec::with_capacity(records.len());
        let mut lines = Vec::with_capacity(records.len());
        let mut blobs = match &mut kind {
            ChangeKind::Import(pinned) => std::mem::take(pinned),
            ChangeKind::Own | ChangeKind::Fork(_) => Vec::new(),
        };
        for (record, seq) in records.iter().zip(next.0..) {
            let stored = match has_blobs.then(|| self.without_long_strings(record, &mut blobs)).transpose() {
                Ok(stored) => stored.flatten(),
                Err(error) => {
                    for hash in &blobs {
                        self.forget_content(hash);
                    }
                    return Err((error, held));
                }
            };
            let short = stored.map(Box::new);
            let record = short.as_deref().unwrap_or(record);
            let mut spots = Spots::default();
            pieces.push(match record {
                Record::Grew(grew) => Piece::Growth(Growth { seq: Seq(seq), time_ms, grew: grew.clone() }),
                other => {
                    let mut line = Vec::with_capacity(other.parts_len() + BESIDES_PARTS);
                    spots = record::encode(other, Seq(seq), time_ms, &mut line);
                    Piece::Line(line)
                }
            });
            lines.push(Line { short, spots });
        }
        let write = Write { session: session.id.clone(), born, expected: next, pieces };
        let Held { session, guard, .. } = held;
        let guard = Some(guard);
        Ok((write, Prepared { session, records, lines, first: next, time_ms, before, kind, blobs, guard }))
    }

    /// The record with its long strings stored elsewhere, if it has any.
    fn without_long_strings(&self, record: &Record, pinned: &mut Vec<BlobHash>) -> Result<Option<Record>, Error> {
        let Some((short, pieces)) = record.take_out_blobs(self.settings.blob_threshold) else {
            return Ok(None);
        };
        for piece in &pieces {
            pinned.push(self.log.put_blob(&piece.bytes)?);
        }
        Ok(Some(short))
    }

    fn unpin(&self, prepared: &[Prepared]) {
        for hash in prepared.iter().flat_map(|change| &change.blobs) {
            self.log.unpin_blob(hash);
        }
    }

    /// Makes a change visible: in the session's state, in the catalogue, to subscribers.
    fn applied(&self, change: &Prepared, committed: &Committed, written: &WriteDone) {
        if let ChangeKind::Fork(meta) = &change.kind {
            let file = change.session.file(&change.records);
            let known = (Arc::new(meta.as_ref().clone()), MetadataTrust::Known);
            self.note(file, known, change, committed, written);
            self.tell_created(meta, committed.commit);
            return;
        }
        let mut loaded = change.session.write();
        if !matches!(*loaded, Loaded::Present(_)) {
            let before = match std::mem::replace(&mut *loaded, Loaded::NotYet) {
                Loaded::Absent(Some(lines)) => lines,
                _ => Box::new(SessionState::begin(change.session.id.clone())),
            };
            *loaded = Loaded::Present(before);
        }
        let Loaded::Present(state) = &mut *loaded else { return };
        let status_before = state.meta().status;
        for (at, record) in change.records.iter().enumerate() {
            apply(state, record, change, committed, written, at);
        }
        if !state.exists() {
            // Another instance puts entries before there is a session.
            if let Loaded::Present(lines) = std::mem::replace(&mut *loaded, Loaded::NotYet) {
                *loaded = Loaded::Absent(Some(lines));
            }
            self.hub.pass(committed.commit);
            return;
        }
        let meta = (Arc::clone(state.meta()), trust_of(state));
        let file = change.session.file_of(state);
        self.sessions.weigh(&change.session, Some(state));
        // Whoever hears of it may ask the catalogue at once.
        self.note(file, meta, change, committed, written);
        // A commit to several sessions is told by the last of them.
        if committed.writes.len() == 1 {
            self.tell(state, &change.records, change.time_ms, status_before, committed.commit);
        }
    }

    fn note(
        &self,
        file: Arc<SessionFile>,
        (meta, trust): (Arc<SessionMeta>, MetadataTrust),
        change: &Prepared,
        committed: &Committed,
        written: &WriteDone,
    ) {
        let attached = change.records.iter().filter_map(|record| match record {
            Record::Attached(attached) => Some(&attached.blob),
            _ => None,
        });
        let blobs = change.blobs.iter().chain(attached);
        let blobs = blobs.inspect(|hash| self.log.keep_blob(hash));
        let blobs = blobs.filter_map(|hash| blake3::Hash::from_hex(hash).ok());
        self.catalogue.note(Row {
            file,
            standing: Standing::Listed,
            meta,
            trust,
            length: written.end(),
            modified: 0,
            commit: committed.commit,
            blobs: blobs.collect(),
        });
    }

    fn removed(&self, held: &Held, committed: &Committed, keep: bool, end: &End) {
        let mut loaded = held.session.write();
        let Loaded::Present(state) = std::mem::replace(&mut *loaded, Loaded::Absent(None)) else {
            // It was no session, and nobody is told.
            self.hub.pass(committed.commit);
            return;
        };
        drop(loaded);
        let file = held.session.file_of(&state);
        self.holds.note_removed(&file.key, committed.commit);
        held.session.forget_file();
        self.sessions.weigh(&held.session, None);
        if keep {
            self.catalogue.note(Row {
                file,
                standing: Standing::Retained,
                meta: Arc::clone(state.meta()),
                trust: trust_of(&state),
                length: 0,
                modified: 0,
                commit: committed.commit,
                blobs: Vec::new(),
            });
        } else {
            self.catalogue.forget(&held.session.id);
        }
        match end.telling {
            Telling::Everyone => self.tell_deleted(&state, committed.commit, end.time_ms),
            Telling::Later | Telling::Nobody => self.hub.pass(committed.commit),
        }
    }
}

impl Held {
    async fn take(access: &Arc<Access>, session: Arc<Session>) -> Self {
        let guard = Arc::clone(&session.writer).lock_owned().await;
        let access = (!access.scope.is_everything()).then(|| Arc::clone(access));
        Self { session, guard, access }
    }

    /// Whose right it is.
    pub(crate) fn id(&self) -> &SessionId {
        &self.session.id
    }

    /// Looks at the session, which stays as it is until the holder changes it.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&SessionState) -> T) -> Option<T> {
        match &*self.session.read() {
            Loaded::Present(state) => Some(look(state)),
            Loaded::Absent(_) | Loaded::NotYet => None,
        }
    }

    /// Looks at what the session's file says, whether or not that is a session.
    pub(crate) fn with_state<T>(&self, look: impl FnOnce(&SessionState) -> T) -> T {
        match self.session.read().state() {
            Some(state) => look(state),
            None => look(&SessionState::begin(self.session.id.clone())),
        }
    }

    /// Looks at the session's metadata, if there is a session and it has some.
    fn with_metadata<T>(&self, look: impl FnOnce(Option<&Object>) -> T) -> T {
        let loaded = self.session.read();
        look(loaded.state().and_then(|state| state.metadata()).map(Arc::as_ref))
    }

    /// Runs a decision on the session as it is; a session that does not exist is refused by the decision itself.
    pub(crate) fn decide<R>(
        &self,
        store: &Store,
        decide: impl FnOnce(&SessionState, &mut Ctx<'_>) -> Result<Decision<R>, Error>,
    ) -> Result<(Decision<R>, i64), Error> {
        let now_ms = now_ms();
        let mut ctx = Ctx { now_ms, ids: &mut FreshIds, limits: store.settings.limits() };
        let decision = self.with_state(|state| decide(state, &mut ctx));
        Ok((decision?, now_ms))
    }
}

/// What a commit to one session leaves it as.
fn left_as(prepared: &[Prepared]) -> Option<Version> {
    match prepared {
        [Prepared { session, kind: ChangeKind::Own, .. }] => Some(version_of(&session.id, session.read().state())),
        _ => None,
    }
}

/// What is done when a commit is safe, or refused.
fn finish(
    store: &Weak<Store>,
    prepared: &mut [Prepared],
    outcome: &Result<Committed, LogError>,
    token: Option<Token>,
) {
    // Without a store there is nobody to tell; the next opening reads the files.
    if let Some(store) = store.upgrade() {
        if let Ok(committed) = outcome {
            for (change, written) in prepared.iter().zip(&committed.writes) {
                store.applied(change, committed, written);
            }
            // Remembered before anybody else can change what was changed.
            if let Some(token) = token {
                store.tokens.note(token, left_as(prepared));
            }
            store.search.hear(committed.commit);
        }
        store.unpin(prepared);
    }
    for change in prepared {
        change.guard = None;
    }
}

fn apply(
    state: &mut SessionState,
    record: &Record,
    change: &Prepared,
    committed: &Committed,
    written: &WriteDone,
    at: usize,
) {
    let Some(place) = written.pieces.get(at) else { return };
    if let Record::Grew(grew) = record {
        let Some(add) = grew.adds.first() else { return };
        let add = LiveAdd {
            entry_id: &grew.entry_id,
            block: grew.block,
            revision: grew.revision,
            text: &add.text,
            time_ms: change.time_ms,
            commit: committed.commit,
        };
        let how = if place.continued {
            Written::Continued { len: written.len as u32 }
        } else {
            Written::Opened { offset: place.offset, len: place.len }
        };
        state.apply_add(&add, how, change.before.as_ref());
        return;
    }
    let Some(line) = change.lines.get(at) else { return };
    let envelope =
        Envelope { seq: Seq(change.first.0 + at as u64), time_ms: change.time_ms, commit: committed.commit };
    let record = line.short.as_deref().unwrap_or(record);
    if let Some(head) = Head::written(record, envelope, &line.spots) {
        state.apply(&head, place.offset, place.len);
    }
}

fn born_of(records: &[Record]) -> Option<Born> {
    records.iter().find_map(|record| match record {
        Record::Created(created) => Some(created.born),
        Record::Begun(begun) => Some(begun.born),
        _ => None,
    })
}

fn begins(records: &[Record]) -> bool {
    records.iter().any(|record| match record {
        Record::Created(_) => true,
        Record::Begun(begun) => begun.import,
        _ => false,
    })
}

impl Session {
    /// What the catalogue calls this session's file.
    fn file_of(&self, state: &SessionState) -> Arc<SessionFile> {
        let base = state.base().map(|base| (&base.session_id, base.born));
        self.file_named(state.born(), base)
    }

    /// The same for a session that begins with these records.
    fn file(&self, records: &[Record]) -> Arc<SessionFile> {
        let created = records.iter().find_map(|record| match record {
            Record::Created(created) => Some(created),
            _ => None,
        });
        let base = created.and_then(|created| created.base.as_ref()).map(|base| (&base.session_id, base.born));
        self.file_named(created.map_or_else(|| Born::unsaid(&self.id), |created| created.born), base)
    }

    fn file_named(&self, born: Born, base: Option<(&SessionId, Born)>) -> Arc<SessionFile> {
        self.catalogued(|| SessionFile {
            key: FileKey { session_id: self.id.clone(), born: born.to_string() },
            stem: banyan_core::names::file_stem(&self.id),
            base: base
                .map(|(session_id, born)| FileKey { session_id: session_id.clone(), born: born.to_string() }),
        })
    }
}
