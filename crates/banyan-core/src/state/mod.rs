//! What a session is after its records: the tree, the active path, the meta. Bodies stay where they are.
//!
//! The same [`SessionState::apply`] runs when a session is loaded and after each commit.

mod apply;
mod by_id;
mod damage;
mod fault;
mod fork;
mod glimpse;
mod growing;
mod history;
mod legacy;
mod newer;
mod node;
mod put;
mod snapshot;
mod tree;

use std::collections::BTreeMap;
use std::sync::Arc;

use banyan_model::{AttachmentId, CommitNo, EntryId, Object, Seq, SessionId, SessionMeta, SessionStatus};

use crate::born::Born;
use crate::id_key::IdKey;
use crate::record::{Attached, Base};
use by_id::ById;

pub use fault::StateFault;
pub use fork::ForkFault;
pub use glimpse::{Glimpse, Glimpsed};
pub use growing::{Growing, LiveAdd, OpenLine, Written, extend_text};
pub use history::{BodyAt, BodyParts};
pub use newer::Newer;
pub use node::{Line, Node, NodeIx, Place, Source, SourceIx};

/// A session without its bodies.
#[derive(Clone, Debug)]
pub struct SessionState {
    session_id: SessionId,
    meta: Arc<SessionMeta>,
    /// What `meta` was before the last change, with the same metadata. Others hold what they were given until they get the next
    /// one, so the two are changed in turn, and metadata is not copied for each change.
    spare: Option<Arc<SessionMeta>>,
    /// The same metadata as in `meta`, to be shared with events; none while it is in doubt.
    metadata: Option<Arc<Object>>,
    /// What is lost may have set other metadata than `meta` has.
    metadata_in_doubt: bool,
    /// The metadata's length as JSON.
    metadata_bytes: usize,
    exists: bool,
    next_seq: u64,
    /// Damaged lines since the last readable one. How many records they were is not known.
    slack: u64,
    last_commit: CommitNo,
    nodes: Vec<Node>,
    by_id: ById,
    leaf: Option<NodeIx>,
    path: Vec<NodeIx>,
    /// The leaf's parents form a cycle.
    cyclic: bool,
    /// Depths and path are to be computed anew: an entry's parent became known late.
    relink: bool,
    sources: Vec<Source>,
    base: Option<Base>,
    growing: Option<Growing>,
    history: history::History,
    custom_types: Vec<Box<str>>,
    attachments: BTreeMap<AttachmentId, Attached>,
    damaged_lines: u64,
    /// The leaf at the last damaged line, once there was one.
    leaf_at_damage: Option<Option<NodeIx>>,
    /// An import puts entries that are nobody's before it has ended.
    importing: bool,
    /// A legacy leaf was set and no meta has followed yet.
    legacy_leaf_pending: bool,
    inherited: u32,
    newer: Option<Box<Newer>>,
}

impl SessionState {
    /// A session of which no record is known yet. Its true id may come with its first record.
    pub fn begin(session_id: SessionId) -> Self {
        let born = Born::unsaid(&session_id);
        let meta = SessionMeta {
            session_id: session_id.clone(),
            title: String::new(),
            description: String::new(),
            status: SessionStatus::Idle,
            status_reason: None,
            metadata: None,
            forked_from: None,
            message_count: 0,
            created_at: 0,
            updated_at: 0,
        };
        Self {
            sources: vec![Source { session_id: session_id.clone(), born, ids: None }],
            session_id,
            meta: Arc::new(meta),
            spare: None,
            metadata: None,
            metadata_in_doubt: false,
            metadata_bytes: 0,
            exists: false,
            next_seq: 0,
            slack: 0,
            last_commit: CommitNo(0),
            nodes: Vec::new(),
            by_id: ById::default(),
            leaf: None,
            path: Vec::new(),
            cyclic: false,
            relink: false,
            base: None,
            growing: None,
            history: history::History::default(),
            custom_types: Vec::new(),
            attachments: BTreeMap::new(),
            damaged_lines: 0,
            leaf_at_damage: None,
            importing: false,
            legacy_leaf_pending: false,
            inherited: 0,
            newer: None,
        }
    }

    /// False while nothing says that there is such a session: no records, or entries of a crashed session-manager only.
    pub fn exists(&self) -> bool {
        self.exists
    }

    /// True while an import has put a part of the session. If nobody is at it any more, the part is of no use.
    ///
    /// False if the part has a record that is not understood: it may end the import.
    pub fn is_importing(&self) -> bool {
        self.importing && self.newer.is_none()
    }

    /// The session's id.
    pub fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// Which incarnation of the id this is.
    pub fn born(&self) -> Born {
        self.sources[0].born
    }

    /// What the session is known by.
    pub fn meta(&self) -> &Arc<SessionMeta> {
        &self.meta
    }

    /// The metadata that scopes and filters see, shared. None while damage may have changed it.
    pub fn metadata(&self) -> Option<&Arc<Object>> {
        self.metadata.as_ref()
    }

    /// True when damage may have changed the metadata since it was last set.
    pub fn metadata_in_doubt(&self) -> bool {
        self.metadata_in_doubt
    }

    /// The number that the next record gets.
    pub fn next_seq(&self) -> Seq {
        Seq(self.next_seq)
    }

    /// The last commit that wrote to the session.
    pub fn last_commit(&self) -> CommitNo {
        self.last_commit
    }

    /// The active leaf.
    pub fn leaf(&self) -> Option<NodeIx> {
        self.leaf
    }

    /// The active leaf's id.
    pub fn leaf_id(&self) -> Option<EntryId> {
        self.leaf.map(|ix| self.id(ix))
    }

    /// The active path, root first. Empty when [`SessionState::is_cyclic`].
    pub fn path(&self) -> &[NodeIx] {
        &self.path
    }

    /// True when the active leaf's parents form a cycle, which only a foreign file can hold.
    pub fn is_cyclic(&self) -> bool {
        self.cyclic
    }

    /// Every entry, each after its parent except in foreign files.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// One entry. The index must come from this state.
    pub fn node(&self, ix: NodeIx) -> &Node {
        &self.nodes[ix.at()]
    }

    /// The entry with this id, damaged ones included.
    pub fn find(&self, id: &EntryId) -> Option<NodeIx> {
        self.find_key(&IdKey::of(id.as_str()))
    }

    /// An entry's id.
    pub fn id(&self, ix: NodeIx) -> EntryId {
        self.node(ix).id()
    }

    /// The id of what an entry follows.
    pub fn parent_id(&self, ix: NodeIx) -> Option<EntryId> {
        self.node(ix).parent().map(|parent| self.id(parent))
    }

    /// The name of a custom entry's type.
    pub fn custom_type(&self, ix: NodeIx) -> Option<&str> {
        self.custom_types.get(usize::from(self.node(ix).custom_type)).map(AsRef::as_ref)
    }

    /// The files that bodies of this session are in; the first is its own.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Where a fork's first entries come from.
    pub fn base(&self) -> Option<&Base> {
        self.base.as_ref()
    }

    /// How many entries came with the fork. They are the first in [`SessionState::nodes`].
    pub fn inherited(&self) -> usize {
        self.inherited as usize
    }

    /// The attachments, by id.
    pub fn attachments(&self) -> &BTreeMap<AttachmentId, Attached> {
        &self.attachments
    }

    /// About how many bytes of memory the session takes. Costs the same however large it is.
    pub fn memory(&self) -> usize {
        let meta = &self.meta;
        let texts = meta.title.len() + meta.description.len() + meta.status_reason.as_ref().map_or(0, String::len);
        let history = self.history.lines();
        let growing = self.growing.as_ref().map_or(0, |growing| self.node(growing.node()).weight());
        size_of::<Self>()
            // The metadata is held by the state, by what it was before, and to be shared with events. As values it takes more than
            // as text.
            + 3 * (texts + METADATA_FACTOR * self.metadata_bytes)
            + self.nodes.capacity() * (size_of::<Node>() + BYTES_BY_ID)
            + self.path.capacity() * size_of::<NodeIx>()
            + history * BYTES_OF_HISTORY
            + self.attachments.len() * BYTES_OF_ATTACHMENT
            + self.custom_types.len() * BYTES_OF_TYPE
            + usize::try_from(growing).unwrap_or(usize::MAX)
    }

    /// How many lines were set aside.
    pub fn damaged_lines(&self) -> u64 {
        self.damaged_lines
    }

    /// True when an entry is on the active path.
    pub fn on_path(&self, ix: NodeIx) -> bool {
        self.path.get(self.node(ix).depth as usize) == Some(&ix)
    }

    fn find_key(&self, key: &IdKey) -> Option<NodeIx> {
        self.by_id.find(key, &self.nodes)
    }

    /// Ends every doubt: the metadata was set as a whole.
    /// Must follow each change of the metadata.
    fn share_metadata(&mut self) {
        self.metadata_in_doubt = false;
        self.metadata = self.meta.metadata.clone().map(Arc::new);
        self.metadata_bytes = self.metadata.as_deref().map_or(0, crate::limits::json_len);
        self.spare = None;
    }

    fn meta_mut(&mut self) -> &mut SessionMeta {
        if Arc::get_mut(&mut self.meta).is_none() {
            let mut spare = self.spare.take();
            let next = match spare.as_mut().and_then(Arc::get_mut) {
                Some(free) => {
                    copy_except_metadata(&self.meta, free);
                    spare
                }
                None => None,
            };
            let next = next.unwrap_or_else(|| Arc::new(SessionMeta::clone(&self.meta)));
            self.spare = Some(std::mem::replace(&mut self.meta, next));
        }
        Arc::make_mut(&mut self.meta)
    }
}

/// About how many times its length as JSON metadata takes in memory.
const METADATA_FACTOR: usize = 2;
/// About how many bytes of memory an entry takes in the table by id, a line in the history, an attachment, and the name of a type.
const BYTES_BY_ID: usize = 8;
const BYTES_OF_HISTORY: usize = 48;
const BYTES_OF_ATTACHMENT: usize = 512;
const BYTES_OF_TYPE: usize = 64;

fn copy_except_metadata(from: &SessionMeta, to: &mut SessionMeta) {
    let SessionMeta {
        session_id,
        title,
        description,
        status,
        status_reason,
        metadata: _,
        forked_from,
        message_count,
        created_at,
        updated_at,
    } = from;
    to.session_id.clone_from(session_id);
    to.title.clone_from(title);
    to.description.clone_from(description);
    to.status_reason.clone_from(status_reason);
    to.forked_from.clone_from(forked_from);
    (to.status, to.message_count) = (*status, *message_count);
    (to.created_at, to.updated_at) = (*created_at, *updated_at);
}

#[cfg(test)]
mod tests;
