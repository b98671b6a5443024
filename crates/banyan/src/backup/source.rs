//! The store's side of a backup: a stream of what a destination does not have, as of one commit.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{BufRead, Read};

use banyan_core::{Born, names};
use banyan_log::{At, FileDamage, JournalKind, Replay, SessionLog};
use banyan_model::{CommitNo, Error, SessionId};

use super::Hold;
use super::frames::{
    self, Begin, ContentEnd, ContentFrame, End, Have, HaveHead, Kind, Known, SessionFrame, VERSION,
};
use super::lines::Cut;
use super::manifest::{SessionKind, SourceDamage};
use super::reading::{Place, Reading, Scope};
use crate::Banyan;
use crate::clock::now_ms;
use crate::store::Store;

/// A backup under way. While it lasts, deleted sessions and content stay on the disk.
pub struct Backup {
    hold: Hold,
    cut: Cut,
    stage: Stage,
    known: HashMap<(SessionKind, String), Known>,
    changed: Changed,
    scope: Scope,
    reading: Option<Reading>,
    /// Sessions that were sent or are unchanged.
    done: HashSet<Born>,
    contents: VecDeque<String>,
    seen_contents: HashSet<String>,
    content: Option<OpenContent>,
    out: Vec<u8>,
    sessions: u64,
}

enum Stage {
    Live(std::vec::IntoIter<SessionId>),
    Removed(std::vec::IntoIter<(SessionId, Born)>),
    Bases(std::vec::IntoIter<Born>),
    Missing,
    End,
}

struct OpenContent {
    hash: String,
    input: Box<dyn Read + Send>,
    hasher: blake3::Hasher,
}

/// What the journal says about the time since the destination's last backup.
enum Changed {
    /// These sessions were written to; those ended.
    Known { written: HashSet<SessionId>, ended: HashSet<SessionId> },
    /// The journal does not reach back that far.
    Unknown,
}

/// How large a piece of the stream is, about.
const PIECE: usize = 256 << 10;

impl Banyan {
    /// Begins a backup of everything, consistent at the last commit. `have` is what the destination has, as
    /// [`have`](super::receive) writes it. `keys` is the file of keys, which is sent if the destination wants it.
    pub fn backup(&self, have: &mut dyn BufRead, keys: Option<Vec<u8>>) -> Result<Backup, Error> {
        if self.access.read_only || !self.access.scope.is_everything() {
            return Err(Error::forbidden("a backup needs an access that has no scope and may write"));
        }
        let hold = Hold::begin(&self.store);
        let store = hold.store();
        let commit = store.log.head();
        let directory = store.log.directory_id().to_string();
        let unreadable =
            |error: std::io::Error| Error::invalid_request(format!("what the destination has: {error}"));
        let mut lines = have.lines();
        let first = lines.next().transpose().map_err(unreadable)?.unwrap_or_default();
        let head: HaveHead = parse(&first)?;
        if head.stream != VERSION {
            return Err(Error::invalid_request(format!(
                "backup stream version {} is not known; this is Banyan {}",
                head.stream,
                env!("CARGO_PKG_VERSION")
            )));
        }
        if let Some(other) = head.store.as_ref().filter(|store| **store != directory) {
            return Err(Error::invalid_request(format!(
                "the backup is of another data directory ({other}, and this is {directory}); name another destination"
            )));
        }
        if head.commit > commit {
            return Err(Error::invalid_request(format!(
                "the backup is of commit {}, and the data directory is at commit {commit}: it is older than its backup; \
                 name another destination, or restore the backup",
                head.commit
            )));
        }
        let mut known = HashMap::new();
        let mut contents = VecDeque::new();
        for line in lines {
            match parse(&line.map_err(unreadable)?)? {
                Have::Session(session) => {
                    known.insert((session.kind, session.name.clone()), session);
                }
                Have::Wants(hash) => contents.push_back(hash),
            }
        }
        let changed = if head.store.is_some() { changes(store, head.commit, commit)? } else { Changed::Unknown };
        let mut sessions = store.log.sessions()?;
        sessions.sort_unstable();
        let mut out = Vec::new();
        let begin = Begin {
            stream: VERSION,
            store: directory,
            commit,
            time_ms: now_ms(),
            banyan: env!("CARGO_PKG_VERSION").to_owned(),
            sessions: sessions.len() as u64,
        };
        frames::push_json(Kind::Begin, &begin, &mut out);
        if let Some(keys) = keys.filter(|_| head.keys) {
            frames::push(Kind::Keys, &keys, &mut out);
        }
        let seen_contents = contents.iter().cloned().collect();
        Ok(Backup {
            hold,
            cut: Cut::at_commit(commit),
            stage: Stage::Live(sessions.into_iter()),
            known,
            changed,
            scope: if head.reread { Scope::All } else { Scope::New },
            reading: None,
            done: HashSet::new(),
            contents,
            seen_contents,
            content: None,
            out,
            sessions: 0,
        })
    }
}

fn parse<T: serde::de::DeserializeOwned>(line: &str) -> Result<T, Error> {
    serde_json::from_str(line)
        .map_err(|error| Error::invalid_request(format!("what the destination has cannot be read: {error}")))
}

/// Which sessions were written to or ended after one commit and up to another.
fn changes(store: &Store, after: CommitNo, upto: CommitNo) -> Result<Changed, Error> {
    let (mut written, mut ended) = (HashSet::new(), HashSet::new());
    let mut at = after;
    while at < upto {
        let mut next = at;
        let replayed = store.log.replay(at, upto, &mut |entry| {
            next = entry.commit;
            if matches!(entry.kind, JournalKind::Removed(_)) {
                ended.insert(entry.session.clone());
            }
            written.insert(entry.session);
            true
        })?;
        match replayed {
            Replay::Through(through) if through > at && next == through => at = through,
            Replay::Through(_) | Replay::Forgotten(_) => return Ok(Changed::Unknown),
        }
    }
    Ok(Changed::Known { written, ended })
}

impl Backup {
    /// The next piece of the stream; none after the last.
    pub fn next_piece(&mut self) -> Result<Option<Vec<u8>>, Error> {
        while self.out.len() < PIECE && !matches!(self.stage, Stage::End) {
            self.step()?;
        }
        Ok(Some(std::mem::take(&mut self.out)).filter(|piece| !piece.is_empty()))
    }

    fn step(&mut self) -> Result<(), Error> {
        if self.content.is_some() {
            return self.send_content();
        }
        if let Some(reading) = &mut self.reading {
            if !reading.step(self.hold.store(), self.cut, &mut self.out)?
                && let Some(reading) = self.reading.take()
            {
                let new = reading.blobs().into_iter().filter(|hash| self.seen_contents.insert(hash.clone()));
                self.contents.extend(new.collect::<Vec<_>>());
            }
            return Ok(());
        }
        if let Some(hash) = self.contents.pop_front() {
            return self.open_content(hash);
        }
        self.next_session()
    }

    fn next_session(&mut self) -> Result<(), Error> {
        match &mut self.stage {
            Stage::Live(sessions) => match sessions.next() {
                Some(id) => self.live(&id, None)?,
                None => {
                    let removed = self.hold.store().holds.removed_after(self.cut.commit);
                    let removed =
                        removed.into_iter().filter_map(|key| Some((key.session_id, key.born.parse().ok()?)));
                    self.stage = Stage::Removed(removed.collect::<Vec<_>>().into_iter());
                }
            },
            Stage::Removed(sessions) => match sessions.next() {
                Some((id, born)) if !self.done.contains(&born) => self.live(&id, Some(born))?,
                Some(_) => {}
                None => self.stage = Stage::Bases(self.hold.store().log.retained().into_iter()),
            },
            Stage::Bases(bases) => match bases.next() {
                Some(born) => self.base(born)?,
                None => self.stage = Stage::Missing,
            },
            Stage::Missing => {
                self.missing()?;
                frames::push_json(Kind::End, &End { sessions: self.sessions }, &mut self.out);
                self.stage = Stage::End;
            }
            Stage::End => {}
        }
        Ok(())
    }

    fn live(&mut self, id: &SessionId, born: Option<Born>) -> Result<(), Error> {
        let store = self.hold.store();
        let name = names::file_stem(id);
        let known = self.known.remove(&(SessionKind::Live, name.clone()));
        let file_damage = store.log.file_damage(id);
        if let (Some(known), Changed::Known { written, .. }, None, None) =
            (&known, &self.changed, &file_damage, born)
            && self.scope == Scope::New
            && !written.contains(id)
            && store.log.stamp(At::Live(id))?.is_some_and(|(length, _)| length == known.length)
        {
            self.unchanged(known);
            return Ok(());
        }
        let place = Place { name: &name, kind: SessionKind::Live, id, born };
        match Reading::begin(store, &place, known.as_ref(), self.scope) {
            Ok(Some(mut reading)) => {
                if self.done.contains(&reading.born()) {
                    return Ok(());
                }
                if let Some(damage) = file_damage {
                    reading.damage(None, damage.reason());
                }
                self.start(reading);
            }
            // Whether it was deleted or is missing is found out at the end.
            Ok(None) => self.known.extend(known.map(|known| ((SessionKind::Live, name.clone()), known))),
            Err(error) => {
                self.whole_damage(place.file(), format!("cannot be read: {}", error.message));
                if let Some(known) = known {
                    self.unchanged(&known);
                }
            }
        }
        Ok(())
    }

    fn base(&mut self, born: Born) -> Result<(), Error> {
        if self.done.contains(&born) {
            return Ok(());
        }
        let removed = self.hold.store().holds.removed_after(self.cut.commit);
        if removed.iter().any(|key| key.born == born.to_string()) {
            // It was no session at the cut, or it was sent as one.
            return Ok(());
        }
        let name = born.to_string();
        let known = self.known.remove(&(SessionKind::Base, name.clone()));
        // The id is only told to people: what reads a base knows it by its incarnation.
        let id = SessionId::from("a deleted session");
        let place = Place { name: &name, kind: SessionKind::Base, id: &id, born: Some(born) };
        if let Some(reading) = Reading::begin(self.hold.store(), &place, known.as_ref(), self.scope)? {
            self.start(reading);
        }
        Ok(())
    }

    fn start(&mut self, reading: Reading) {
        self.done.insert(reading.born());
        self.sessions += 1;
        self.reading = Some(reading);
    }

    fn unchanged(&mut self, known: &Known) {
        self.sessions += 1;
        let frame = SessionFrame {
            name: known.name.clone(),
            kind: known.kind,
            id: known.id.clone(),
            born: Born([0; 16]),
            base: None,
            from: known.length,
            unchanged: true,
        };
        frames::push_json(Kind::Session, &frame, &mut self.out);
    }

    /// Names the sessions that the destination has and that are neither here nor deleted.
    fn missing(&mut self) -> Result<(), Error> {
        let known: Vec<Known> = std::mem::take(&mut self.known).into_values().collect();
        for known in known.into_iter().filter(|known| known.kind == SessionKind::Live) {
            let store = self.hold.store();
            let is_missing = match &self.changed {
                Changed::Known { ended, .. } => !ended.contains(&known.id),
                Changed::Unknown => {
                    matches!(store.log.check_file(&known.id), Some(FileDamage::Missing { .. }))
                }
            };
            if is_missing {
                let reason = format!("is missing; it had {} bytes; the backup keeps its copy", known.length);
                self.whole_damage(format!("{}.jsonl", known.name), reason);
                self.unchanged(&known);
            }
        }
        Ok(())
    }

    fn whole_damage(&mut self, file: String, reason: String) {
        frames::push_json(
            Kind::Damage,
            &SourceDamage { file, offset: None, reason, copied: false },
            &mut self.out,
        );
    }

    fn open_content(&mut self, hash: String) -> Result<(), Error> {
        frames::push_json(Kind::Content, &ContentFrame { hash: hash.clone() }, &mut self.out);
        match self.hold.store().log.open_blob(&hash) {
            Ok(Some(input)) => self.content = Some(OpenContent { hash, input, hasher: blake3::Hasher::new() }),
            Ok(None) | Err(_) => {
                frames::push_json(Kind::ContentEnd, &ContentEnd { is_whole: false }, &mut self.out)
            }
        }
        Ok(())
    }

    fn send_content(&mut self) -> Result<(), Error> {
        let Some(content) = &mut self.content else { return Ok(()) };
        let mut piece = vec![0; PIECE];
        let is_whole = match content.input.read(&mut piece) {
            Ok(0) => content.hasher.finalize().to_hex().as_str() == content.hash,
            Ok(read) => {
                content.hasher.update(&piece[..read]);
                frames::push(Kind::Data, &piece[..read], &mut self.out);
                return Ok(());
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Ok(()),
            Err(_) => false,
        };
        frames::push_json(Kind::ContentEnd, &ContentEnd { is_whole }, &mut self.out);
        self.content = None;
        Ok(())
    }
}
