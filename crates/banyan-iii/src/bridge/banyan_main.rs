//! A main that is a Banyan: one look at the session, one commit of what was decided.

use banyan::model::store::{CommitRequest, CommitResponse, ForkCommit, LookRequest, LookResponse, LookedEntry};
use banyan::model::{CommitNo, Error, SessionId};
use banyan::rules::NodeKind;
use banyan::rules::record::{self, Attached, Record};
use banyan::rules::state::{Glimpse, Glimpsed, SessionState};
use uuid::Uuid;

use super::main_instance::{Caller, read, storage};
use super::{Ask, Change, LOOK, MainFailed, Place, Seen};

const COMMIT: &str = "session::store::commit";

/// See the module.
pub(super) struct BanyanMain(pub(super) Caller);

impl BanyanMain {
    pub(super) async fn look(&self, ask: &Ask) -> Result<Seen, Error> {
        let request = LookRequest {
            session_id: ask.session_id.clone(),
            entries: ask.entries.clone(),
            message: ask.message.clone(),
            fork_at: ask.fork_at.clone(),
            attachment_id: ask.attachment_id.clone(),
        };
        let seen: LookResponse = self.0.store(LOOK, &request).await?;
        let nonsense =
            |what: String| Error::storage(format!("{LOOK}: the main instance answered nonsense: {what}"));
        let attached = |stored: banyan::model::store::StoredAttachment| Attached {
            attachment: stored.attachment,
            blob: stored.blob,
        };
        let glimpse = Glimpse {
            session_id: ask.session_id.clone(),
            born: seen.version.born.parse().map_err(|error| nonsense(format!("{error}")))?,
            next_seq: seen.version.seq,
            last_commit: CommitNo(seen.version.commit),
            meta: seen.meta,
            leaf: seen.leaf,
            entries: seen.entries.into_iter().map(glimpsed).collect(),
            attachments: seen.attachments.into_iter().map(attached).collect(),
        };
        let message = seen.message.map(|message| message.parse()).transpose();
        Ok(Seen {
            state: SessionState::glimpsed(glimpse),
            now_ms: seen.now,
            message: message.map_err(|error| nonsense(error.message))?,
            used_by: seen.used_by,
            place: Place::Banyan(seen.version),
        })
    }

    /// Commits what was decided; false when the session is no longer as it was seen.
    pub(super) async fn commit(&self, id: &SessionId, seen: &Seen, change: Change) -> Result<bool, Error> {
        let Place::Banyan(version) = &seen.place else {
            return Err(Error::storage("the main instance is another by now; call again").retryable());
        };
        let mut request = CommitRequest {
            session_id: id.clone(),
            expected: version.clone(),
            token: Uuid::new_v4().simple().to_string(),
            time: seen.now_ms,
            records: Vec::new(),
            contents: Vec::new(),
            fork: None,
            delete: false,
        };
        match change {
            Change::Records(records, contents) => {
                request.records = lines(&records, seen.now_ms);
                request.contents = contents;
            }
            Change::Fork(session_id, records) => {
                request.fork = Some(ForkCommit { session_id, records: lines(&records, seen.now_ms) });
            }
            Change::Delete => request.delete = true,
        }
        let mut answer = self.0.text(COMMIT, &request).await;
        if let Err(MainFailed::Unreachable(_)) = answer {
            // The answer may be what was lost. The token makes the same commit once, however often it is asked for.
            answer = self.0.text(COMMIT, &request).await;
        }
        let answer = answer.map_err(|failed| storage(COMMIT, &failed))?;
        Ok(read::<CommitResponse>(COMMIT, &answer)?.committed)
    }
}

/// Records as lines. The main gives them their numbers.
fn lines(records: &[Record], time_ms: i64) -> Vec<String> {
    let line = |record: &Record| {
        let mut line = Vec::new();
        record::encode(record, banyan::model::Seq(0), time_ms, &mut line);
        record::seal(&mut line, 0, CommitNo(0));
        String::from_utf8_lossy(&line).trim_end().to_owned()
    };
    records.iter().map(line).collect()
}

fn glimpsed(seen: LookedEntry) -> Glimpsed {
    Glimpsed {
        id: seen.entry_id,
        parent_id: seen.parent_id,
        timestamp: seen.timestamp,
        revision: seen.revision,
        kind: match seen.role {
            Some(role) => NodeKind::of_role(role),
            None if seen.lost => NodeKind::Lost,
            None => NodeKind::CustomEntry,
        },
        depth: seen.depth,
        messages: seen.messages,
        uncommitted: seen.uncommitted,
        endless: seen.endless,
    }
}
