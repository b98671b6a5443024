//! A main that is a Banyan: one look at the session, one commit of what was decided.

use banyan::model::store::{
    CommitRequest, CommitResponse, ForkCommit, LookRequest, LookResponse, LookedEntry, Version,
};
use banyan::model::{CommitNo, Error};
use banyan::rules::NodeKind;
use banyan::rules::record::{self, Attached, Record};
use banyan::rules::state::{Glimpse, Glimpsed, SessionState};
use uuid::Uuid;

use super::main_instance::{Caller, read, storage};
use super::{Ask, Change, LOOK, MainFailed, Place, Seen};

const COMMIT: &str = "session::store::commit";

/// So often a commit is repeated whose answer was lost. It may be what the connection is lost for each time.
const MOST_LOST: usize = 4;

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
        let message = message.map_err(|error| nonsense(error.message))?;
        Ok(Seen {
            message: ask.message.clone().zip(message),
            used_by: seen.used_by,
            ..Seen::new(SessionState::glimpsed(glimpse), seen.now, Place::Banyan(seen.version))
        })
    }

    /// Commits what was decided, unless the session is no longer as it was seen.
    pub(super) async fn commit(&self, seen: &Seen, change: &Change, time_ms: i64) -> Result<Committed, Error> {
        let Place::Banyan(version) = &seen.place else {
            return Err(Error::storage("the main instance is another by now; call again").retryable());
        };
        let mut request = CommitRequest {
            session_id: seen.state.session_id().clone(),
            expected: version.clone(),
            token: Uuid::new_v4().simple().to_string(),
            time: time_ms,
            records: Vec::new(),
            contents: Vec::new(),
            fork: None,
            delete: false,
        };
        match change {
            Change::Records(records, contents) => {
                request.records = lines(records, time_ms);
                request.contents.clone_from(contents);
            }
            Change::Fork(session_id, records) => {
                let (session_id, records) = (session_id.clone(), lines(records, time_ms));
                request.fork = Some(ForkCommit { session_id, records });
            }
            Change::Delete => request.delete = true,
        }
        let mut lost = 0;
        // The answer may be what was lost. The token makes the same commit once, however often it is asked for.
        let answer = loop {
            match self.0.text(COMMIT, &request).await {
                Err(MainFailed::Lost(_)) if lost < MOST_LOST => lost += 1,
                // Its bus is back before it is.
                Err(MainFailed::NoSuchFunction) if lost > 0 && self.0.rest().await => {}
                answer => break answer.map_err(|failed| storage(COMMIT, &failed))?,
            }
        };
        match read(COMMIT, &answer)? {
            CommitResponse { committed: true, version } => Ok(Committed::As(version)),
            // A main that was started anew meanwhile knows no tokens of before: this very commit may be the change.
            CommitResponse { committed: false, .. } if lost > 0 => Err(Error::storage(format!(
                "{COMMIT}: the main instance was lost before it answered, and session `{}` has changed since; \
                 look whether this call did that before calling again",
                request.session_id
            ))
            .retryable()),
            CommitResponse { committed: false, .. } => Ok(Committed::Not),
        }
    }
}

/// What became of a commit.
pub(super) enum Committed {
    /// It was made; what the session is since, if the main says so.
    As(Option<Version>),
    /// The session has changed meanwhile.
    Not,
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
