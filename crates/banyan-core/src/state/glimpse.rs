//! A session of which only a part is known: what a decision needs, and no more.
//!
//! Whoever stores through another instance asks it for a glimpse, and decides on that with the same rules.

use std::sync::Arc;

use banyan_model::{CommitNo, EntryId, Revision, Seq, SessionId, SessionMeta};

use super::node::{NO_PARENT, Place, SourceIx, flag};
use super::tree::NewNode;
use super::{NodeIx, SessionState};
use crate::born::Born;
use crate::id_key::IdKey;
use crate::node_kind::NodeKind;
use crate::record::Attached;

/// What was seen of a session.
#[derive(Clone, Debug)]
pub struct Glimpse {
    /// The session.
    pub session_id: SessionId,
    /// Which incarnation of it.
    pub born: Born,
    /// The number that its next record gets.
    pub next_seq: Seq,
    /// The last commit that wrote to it.
    pub last_commit: CommitNo,
    /// What it is known by; none when there is no such session.
    pub meta: Option<SessionMeta>,
    /// The active leaf.
    pub leaf: Option<EntryId>,
    /// Some of its entries.
    pub entries: Vec<Glimpsed>,
    /// Some of its attachments.
    pub attachments: Vec<Attached>,
}

/// What was seen of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glimpsed {
    /// Its id.
    pub id: EntryId,
    /// What it follows.
    pub parent_id: Option<EntryId>,
    /// When it was taken.
    pub timestamp: i64,
    /// How often it has changed.
    pub revision: Revision,
    /// What it is.
    pub kind: NodeKind,
    /// How many entries come before it on its path.
    pub depth: u32,
    /// How many messages its path has, itself included.
    pub messages: u32,
    /// It was put, and is not on a path yet.
    pub uncommitted: bool,
    /// Following its parents never ends.
    pub endless: bool,
}

impl SessionState {
    /// What is to be seen of an entry.
    pub fn glimpse(&self, ix: NodeIx) -> Glimpsed {
        let node = self.node(ix);
        Glimpsed {
            id: node.id(),
            parent_id: self.parent_id(ix),
            timestamp: node.timestamp,
            revision: node.revision(),
            kind: node.kind,
            depth: node.depth,
            messages: node.messages,
            uncommitted: node.is_uncommitted(),
            endless: node.has(flag::CYCLIC),
        }
    }

    /// A session as it was seen. Decisions about what was seen are right; its path and its texts are not here.
    pub fn glimpsed(glimpse: Glimpse) -> Self {
        let mut state = Self::begin(glimpse.session_id);
        state.sources[0].born = glimpse.born;
        state.next_seq = glimpse.next_seq.0;
        state.last_commit = glimpse.last_commit;
        if let Some(meta) = glimpse.meta {
            state.exists = true;
            state.meta = Arc::new(meta);
            state.share_metadata();
        }
        for seen in &glimpse.entries {
            let ix = state.seen(&seen.id);
            let node = &mut state.nodes[ix.at()];
            node.clear(flag::DAMAGED | flag::PLACEHOLDER);
            node.timestamp = seen.timestamp;
            node.revision = super::tree::clamp(seen.revision.0);
            node.kind = seen.kind;
            node.depth = seen.depth;
            node.messages = seen.messages;
            node.set(if seen.uncommitted { flag::UNCOMMITTED } else { 0 });
            node.set(if seen.endless { flag::CYCLIC } else { 0 });
            node.set(if seen.kind == NodeKind::Lost { flag::DAMAGED } else { 0 });
            let parent = seen.parent_id.as_ref().map_or(NO_PARENT, |id| state.seen(id).0);
            state.nodes[ix.at()].parent = parent;
        }
        state.leaf = glimpse.leaf.as_ref().map(|id| state.seen(id));
        let attachments = glimpse.attachments.into_iter();
        state.attachments = attachments.map(|one| (one.attachment.attachment_id.clone(), one)).collect();
        state
    }

    /// The entry with this id, of which nothing else need be known.
    fn seen(&mut self, id: &EntryId) -> NodeIx {
        let key = IdKey::of(id.as_str());
        self.find_key(&key).unwrap_or_else(|| {
            self.insert(NewNode {
                key,
                parent: None,
                place: Place { source: SourceIx::OWN, offset: 0, len: 0 },
                seq: 0,
                weight: 0,
                revision: 0,
                timestamp: 0,
                kind: NodeKind::Lost,
                custom_type: None,
                flags: flag::DAMAGED | flag::PLACEHOLDER,
            })
        })
    }
}
