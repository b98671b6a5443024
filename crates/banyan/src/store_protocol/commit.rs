//! Commits that another Banyan decided: made if the session is still as it was seen, and made once.

use banyan_core::decide::{self, ForkDecision};
use banyan_core::record::{self, Created, Record, StoredRecord};
use banyan_log::{At, SessionLog};
use banyan_model::store::{CommitRequest, CommitResponse, ForkCommit};
use banyan_model::{Error, ForkResponse, SessionId};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::version_of;
use crate::Banyan;
use crate::access::Access;
use crate::commit::{Change, ChangeKind, End, Held, Telling};
use crate::store::Store;

/// A token that is longer is not one of ours.
const LONGEST_TOKEN: usize = 64;

impl Banyan {
    /// Commits what was decided elsewhere.
    pub(crate) async fn store_commit(&self, request: CommitRequest) -> Result<CommitResponse, Error> {
        if request.token.is_empty() || request.token.len() > LONGEST_TOKEN {
            return Err(Error::invalid_request(format!(
                "`token` has 1 to {LONGEST_TOKEN} bytes; use a fresh UUID"
            )));
        }
        let decided = Decided::read(&request)?;
        let held = self.store.hold_or_begin(Access::whole(), &request.session_id).await?;
        if let Some(version) = self.store.tokens.get(&request.token) {
            self.store.let_go(held);
            return Ok(CommitResponse { committed: true, version });
        }
        let actual = held.version(&request.session_id);
        if actual != request.expected {
            self.store.let_go(held);
            return Ok(CommitResponse { committed: false, version: Some(actual) });
        }
        let mut pinned = Vec::new();
        let committed = match self.store.put_contents(&request.contents, &mut pinned) {
            Ok(()) => self.carry_out_decided(held, decided, &request, &pinned).await,
            Err(error) => {
                self.store.let_go(held);
                Err(error)
            }
        };
        for hash in &pinned {
            self.store.log.unpin_blob(hash);
        }
        committed?;
        Ok(CommitResponse { committed: true, version: self.store.tokens.get(&request.token).flatten() })
    }

    async fn carry_out_decided(
        &self,
        held: Held,
        decided: Decided,
        request: &CommitRequest,
        contents: &[String],
    ) -> Result<(), Error> {
        let token = Some(request.token.clone());
        match decided {
            Decided::Records(records) => self.commit_decided(held, records, request, contents).await,
            Decided::Fork(id, records) => self.commit_decided_fork(held, &id, records, request).await,
            Decided::Delete => {
                if held.look(|_| ()).is_none() {
                    self.store.let_go(held);
                    return Err(Error::not_found(&request.session_id));
                }
                let end = End { time_ms: request.time, telling: Telling::Everyone, token };
                self.store.let_go(self.store.remove(held, end).await?);
                Ok(())
            }
        }
    }

    async fn commit_decided(
        &self,
        held: Held,
        records: Vec<Record>,
        request: &CommitRequest,
        contents: &[String],
    ) -> Result<(), Error> {
        let prepared = (|| {
            let attached = |record: &Record| match record {
                Record::Attached(attached) => contents.contains(&attached.blob),
                _ => true,
            };
            if !records.iter().all(attached) {
                return Err(Error::invalid_request(
                    "an attachment comes without its content; give it in `contents`",
                ));
            }
            let before = match records.last() {
                Some(Record::Grew(grew)) => self.store.current_message(&held, &grew.entry_id)?,
                _ => None,
            };
            Ok((held.with_state(|state| decide::decided_elsewhere(state, records))?, before))
        })();
        let (records, before) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                self.store.let_go(held);
                return Err(error);
            }
        };
        let detached: Vec<String> = held.with_state(|state| {
            let gone = records.iter().filter_map(|record| match record {
                Record::Detached(gone) => state.attachments().get(&gone.attachment_id),
                _ => None,
            });
            gone.map(|attached| attached.blob.clone()).collect()
        });
        let change = Change { held, records, time_ms: request.time, before, kind: ChangeKind::Own };
        self.store.commit(vec![change], None, Some(request.token.clone())).await?;
        for blob in detached {
            // The attachment is gone; content that is left over goes when the store is opened next.
            if let Err(error) = self.store.stop_using(&request.session_id, &blob) {
                self.store.warn(&format!("session {}: {error}", request.session_id));
            }
        }
        Ok(())
    }

    async fn commit_decided_fork(
        &self,
        held: Held,
        fork_id: &SessionId,
        records: Vec<Record>,
        request: &CommitRequest,
    ) -> Result<(), Error> {
        let decided = (|| {
            if *fork_id == request.session_id || self.store.log.stamp(At::Live(fork_id))?.is_some() {
                return Err(Error::conflict(format!(
                    "there is a session `{fork_id}` already; fork to another id"
                )));
            }
            let (source, records) = held.with_state(|state| decide::forked_elsewhere(state, records))?;
            let created = begun_by(&records, fork_id)?;
            let meta = decide::meta_of(created, request.time);
            let response = ForkResponse { session_id: fork_id.clone(), meta };
            Ok(ForkDecision { source_records: source, records, response })
        })();
        match decided {
            Ok(decision) => {
                let fork = self.store.hold_new(Access::whole(), fork_id).await?;
                self.store.commit_fork(held, fork, decision, request.time, Some(request.token.clone())).await
            }
            Err(error) => {
                self.store.let_go(held);
                Err(error)
            }
        }
    }
}

/// What was decided elsewhere.
enum Decided {
    Records(Vec<Record>),
    Fork(SessionId, Vec<Record>),
    Delete,
}

impl Decided {
    fn read(request: &CommitRequest) -> Result<Self, Error> {
        match (&request.records[..], &request.fork, request.delete) {
            ([], Some(ForkCommit { session_id, records }), false) => {
                Ok(Self::Fork(session_id.clone(), read_records(records)?))
            }
            ([], None, true) => Ok(Self::Delete),
            (records @ [_, ..], None, false) => Ok(Self::Records(read_records(records)?)),
            _ => Err(Error::invalid_request("give one of `records`, `fork` and `delete`")),
        }
    }
}

impl Held {
    fn version(&self, id: &SessionId) -> banyan_model::store::Version {
        // A file without lines has the version of none.
        self.with_state(|state| version_of(id, Some(state)))
    }
}

impl Store {
    /// Stores what attachments contain; each is pinned until the commit is over.
    fn put_contents(&self, contents: &[String], pinned: &mut Vec<String>) -> Result<(), Error> {
        for content in contents {
            let bytes = STANDARD.decode(content).map_err(|error| {
                Error::invalid_request(format!("`contents` is not standard base64 with padding: {error}"))
            })?;
            pinned.push(self.log.put_blob(&bytes)?);
        }
        Ok(())
    }
}

fn read_records(lines: &[String]) -> Result<Vec<Record>, Error> {
    let read = |line: &String| match record::parse_full(line.as_bytes()) {
        Ok(stored) => match stored.record {
            StoredRecord::Own(record) if record.blobs().is_none_or(<[_]>::is_empty) => Ok(record),
            _ => Err(Error::invalid_request("a record of a kind that is not committed for others")),
        },
        Err(fault) => Err(Error::invalid_request(format!("a record cannot be read: {fault}"))),
    };
    lines.iter().map(read).collect()
}

fn begun_by<'a>(records: &'a [Record], id: &SessionId) -> Result<&'a Created, Error> {
    match records.first() {
        Some(Record::Created(created)) if created.session_id == *id => Ok(created),
        _ => Err(Error::invalid_request("the first record does not begin the fork")),
    }
}
