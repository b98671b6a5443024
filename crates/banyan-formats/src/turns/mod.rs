//! Turns: entries of a path, in their order, told as questions and what was done about each. `docs/turns.md` has the rules.

mod open;
pub(crate) mod tools;

use banyan_model::{AgentMessage, ContentBlock, EntryId, Origin, SessionEntry, SessionStatus, ToolUse, Turn};

use crate::audit::Facts;
use crate::body::Body;
use crate::history::{Entry, Standing};
use open::Open;

/// What the session says about its newest turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// What is going on with it.
    pub standing: Standing,
    /// True while the session is idle: then what has no end may still get one.
    pub idle: bool,
    /// Why the session is in this status.
    pub reason: Option<String>,
}

impl Outlook {
    /// What a session in this status says.
    pub fn of(status: SessionStatus, reason: Option<String>, updated_at: i64, now_ms: i64) -> Self {
        Self {
            standing: Standing::of(status, updated_at, now_ms),
            idle: status == SessionStatus::Idle,
            reason: reason.filter(|_| status == SessionStatus::Error),
        }
    }
}

/// Makes turns of entries. Holds the newest turn only, without what its entries say.
#[derive(Debug, Default)]
pub struct Turns {
    facts: Facts,
    open: Option<Open>,
    /// The entries that told what is known of the surroundings, fact by fact.
    told_by: [Option<EntryId>; 4],
}

impl Turns {
    /// Turns of a path, from its beginning or from the beginning of a turn. `facts` is what is known before.
    pub fn new(facts: Facts) -> Self {
        Self { facts, ..Self::default() }
    }

    /// Learns from an entry before the first turn to be told.
    pub fn learn(&mut self, entry: &SessionEntry) {
        let body = Entry::from(entry).body;
        self.learn_from(entry.id(), &body, entry.origin());
    }

    /// Whether an entry begins a turn, when it is the next one.
    pub fn begins(&self, entry: &SessionEntry) -> bool {
        begins(&Entry::from(entry), self.open.is_some())
    }

    /// Takes the next entry of the path. Gives the turn that is over by it, if one is.
    pub fn push(&mut self, entry: &SessionEntry) -> Option<Turn> {
        self.push_read(entry, &Entry::from(entry))
    }

    /// The same for an entry that was read already.
    pub(crate) fn push_read(&mut self, entry: &SessionEntry, read: &Entry) -> Option<Turn> {
        let over = begins(read, self.open.is_some()).then(|| {
            let over = self.open.take().map(|open| open.close(None));
            self.open = Some(Open::begin(read, entry, &self.facts));
            over
        });
        self.learn_from(entry.id(), &read.body, entry.origin());
        if let Some(open) = &mut self.open {
            open.take(read);
            open.know(&self.facts);
        }
        over.flatten()
    }

    /// The id of the newest turn.
    pub fn current(&self) -> Option<&str> {
        self.open.as_ref().map(Open::id)
    }

    /// The call of the newest turn whose result an entry has.
    pub fn settled_by(&self, entry_id: &EntryId) -> Option<&ToolUse> {
        self.open.as_ref()?.settled_by(entry_id)
    }

    /// The entries that told what is known of the surroundings. Whoever goes on from elsewhere has to learn from them first.
    pub fn told_by(&self) -> Vec<EntryId> {
        let mut entries: Vec<EntryId> = Vec::new();
        for id in self.told_by.iter().flatten() {
            if !entries.contains(id) {
                entries.push(id.clone());
            }
        }
        entries
    }

    /// The newest turn, at the end of the path.
    pub fn finish(self, outlook: &Outlook) -> Option<Turn> {
        self.open.map(|open| open.close(Some(outlook)))
    }

    fn learn_from(&mut self, id: &EntryId, body: &Body, origin: Option<&Origin>) {
        let news = self.facts.learn(body, origin);
        for (told_by, _) in self.told_by.iter_mut().zip(news).filter(|(_, new)| *new) {
            *told_by = Some(id.clone());
        }
    }
}

/// A question begins a turn; anything else that is said does, when there is none. Results in a person's message are none.
fn begins(entry: &Entry, is_open: bool) -> bool {
    match &entry.body {
        Body::Message(message) => match &**message {
            AgentMessage::User(message) => !is_open || !only_results(&message.content),
            _ => !is_open,
        },
        Body::Custom(_) => false,
        Body::Unreadable => !is_open,
    }
}

fn only_results(content: &[ContentBlock]) -> bool {
    !content.is_empty() && content.iter().all(|block| matches!(block, ContentBlock::FunctionResult(_)))
}

/// Where an origin keeps the id that a session log gave a turn.
pub(crate) const LOG: &str = "session_log";
pub(crate) const TURN_ID: &str = "turn_id";

/// What a turn is called that this entry begins.
pub(crate) fn turn_id(entry: &Entry, origin: Option<&Origin>) -> String {
    let stated = origin.and_then(|origin| Some(origin.get(LOG)?.get(TURN_ID)?.as_str()?.to_owned()));
    match (stated, &entry.mark) {
        (Some(stated), _) => stated,
        (None, Some(mark)) => mark.interaction_id.clone(),
        (None, None) => crate::history::identity::interaction_id(&entry.id),
    }
}
