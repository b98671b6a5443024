//! A session in memory, for tests: what a store does with this crate, without any disk.

use std::sync::Arc;

use banyan_model::{
    AgentMessage, AppendRequest, AssistantMessage, AttachmentId, CommitNo, ContentBlock, CreateRequest,
    CustomPayload, EntryId, Error, ExtendMessageRequest, Json, Object, SessionEntry, SessionId, SessionMeta,
    StopReason, UpdateMessageRequest, UserMessage,
};
use banyan_model::{CustomEntry, MessageEntry, Raw, Seq};

use crate::born::Born;
use crate::decide::{self, Ctx, Decision, Ids};
use crate::limits::Limits;
use crate::record::{
    AddPlace, Envelope, Grew, Head, Record, StoredRecord, body_text, close_grew, encode, encode_add, open_grew,
    parse_full, parse_full_open, seal,
};
use crate::state::{Line, LiveAdd, Node, NodeIx, SessionState, StateFault, Written, extend_text};

/// Ids in the order 1, 2, 3.
#[derive(Clone, Default)]
pub(crate) struct Counting(u64);

impl Counting {
    fn next(&mut self, prefix: &str) -> String {
        self.0 += 1;
        format!("{prefix}0190c0ffee0070008{:015x}", self.0)
    }
}

impl Ids for Counting {
    fn session(&mut self) -> SessionId {
        self.next("s_").into()
    }

    fn entry(&mut self) -> EntryId {
        self.next("e_").into()
    }

    fn attachment(&mut self) -> AttachmentId {
        self.next("a_").into()
    }

    fn born(&mut self) -> Born {
        self.0 += 1;
        Born([self.0 as u8; 16])
    }
}

/// One session: its file and its state.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) file: Vec<u8>,
    pub(crate) state: SessionState,
    pub(crate) ids: Counting,
    pub(crate) now_ms: i64,
    pub(crate) commit: u64,
    /// Where the open line begins.
    open_at: Option<usize>,
}

/// Everything of a state that must be the same however it came about.
#[derive(Debug, PartialEq)]
pub(crate) struct Shape {
    exists: bool,
    meta: Arc<SessionMeta>,
    nodes: Vec<Node>,
    path: Vec<NodeIx>,
    leaf: Option<NodeIx>,
    next_seq: Seq,
    last_commit: CommitNo,
    growing: Option<NodeIx>,
    attachments: Vec<AttachmentId>,
}

pub(crate) fn shape(state: &SessionState) -> Shape {
    Shape {
        exists: state.exists(),
        meta: state.meta().clone(),
        nodes: state.nodes().to_vec(),
        path: state.path().to_vec(),
        leaf: state.leaf(),
        next_seq: state.next_seq(),
        last_commit: state.last_commit(),
        growing: state.growing().map(|growing| growing.node()),
        attachments: state.attachments().keys().cloned().collect(),
    }
}

impl Session {
    /// A session that is not there yet.
    pub(crate) fn none(id: &str) -> Self {
        Self {
            file: Vec::new(),
            state: SessionState::begin(id.into()),
            ids: Counting::default(),
            now_ms: 1_000,
            commit: 0,
            open_at: None,
        }
    }

    /// An empty session, made by create.
    pub(crate) fn created() -> Self {
        let mut session = Self::none("?");
        session.decide(|_, ctx| Ok(decide::create(CreateRequest::default(), ctx))).unwrap();
        session
    }

    /// Decides and commits; the clock moves on by one.
    pub(crate) fn decide<R>(
        &mut self,
        call: impl FnOnce(&SessionState, &mut Ctx<'_>) -> Result<Decision<R>, Error>,
    ) -> Result<R, Error> {
        let mut ctx = Ctx { now_ms: self.now_ms, ids: &mut self.ids, limits: Limits::default() };
        let decision = call(&self.state, &mut ctx)?;
        self.commit(&decision.records);
        Ok(decision.response)
    }

    pub(crate) fn commit(&mut self, records: &[Record]) {
        if !records.is_empty() {
            self.commit += 1;
        }
        for record in records {
            match record {
                Record::Grew(grew) => self.grow(grew),
                record => self.write(record),
            }
        }
        self.now_ms += 1;
    }

    fn write(&mut self, record: &Record) {
        self.close();
        let start = self.file.len();
        let envelope =
            Envelope { seq: self.state.next_seq(), time_ms: self.now_ms, commit: CommitNo(self.commit) };
        let spots = encode(record, envelope.seq, envelope.time_ms, &mut self.file);
        seal(&mut self.file, start, envelope.commit);
        let head = Head::written(record, envelope, &spots).unwrap();
        assert_eq!(Head::parse(&self.file[start..]).unwrap(), head);
        let faults = self.state.apply(&head, start as u64, (self.file.len() - start) as u32);
        assert_eq!(faults, vec![]);
    }

    /// Closes the open line, as a store does before it writes another.
    pub(crate) fn close(&mut self) {
        if let Some(at) = self.open_at.take() {
            let closing = close_grew(&self.file[at..]);
            self.file.extend_from_slice(&closing);
            self.state.apply_closed(closing.len() as u32);
        }
    }

    fn grow(&mut self, grew: &Grew) {
        let add = &grew.adds[0];
        let live = LiveAdd {
            entry_id: &grew.entry_id,
            block: grew.block,
            revision: grew.revision,
            text: &add.text,
            time_ms: self.now_ms,
            commit: CommitNo(self.commit),
        };
        let before = self.state.find(&grew.entry_id).map(|ix| self.message(ix));
        let written = match self.state.continues(grew) {
            Some(open) => {
                let (ms, commits) = (self.now_ms - open.time_ms, self.commit - open.commit.0);
                let bytes = encode_add(AddPlace::Next, &add.text, ms, commits, add.origin.as_ref());
                self.file.extend_from_slice(&bytes);
                Written::Continued { len: bytes.len() as u32 }
            }
            None => {
                self.close();
                let start = self.file.len();
                open_grew(grew, self.state.next_seq(), self.now_ms, CommitNo(self.commit), &mut self.file);
                self.open_at = Some(start);
                Written::Opened { offset: start as u64, len: (self.file.len() - start) as u32 }
            }
        };
        assert_eq!(self.state.apply_add(&live, written, before.as_ref()), vec![]);
    }

    /// The state that the file alone gives, and what is wrong with the file.
    pub(crate) fn reloaded(&self) -> (SessionState, Vec<StateFault>) {
        load(self.state.session_id().as_str(), &self.file)
    }

    pub(crate) fn append(&mut self, text: &str) -> EntryId {
        self.append_with(request(user(text))).unwrap()
    }

    pub(crate) fn append_with(&mut self, request: AppendRequest) -> Result<EntryId, Error> {
        self.decide(|state, ctx| decide::append(state, request, ctx)).map(|response| response.entry_id)
    }

    /// Appends an assistant's message that has one text.
    pub(crate) fn answer(&mut self, text: &str) -> EntryId {
        self.append_with(request(assistant(vec![ContentBlock::text(text)]))).unwrap()
    }

    pub(crate) fn extend(&mut self, entry: &EntryId, text: &str) {
        let current = self.state.find(entry).map(|ix| self.message(ix));
        let request = ExtendMessageRequest {
            session_id: self.state.session_id().clone(),
            entry_id: entry.clone(),
            text: text.into(),
            block: None,
            expected_revision: None,
            origin: None,
        };
        self.decide(|state, ctx| decide::extend_message(state, request, current.as_ref(), ctx)).unwrap();
    }

    pub(crate) fn update(&mut self, entry: &EntryId, content: Vec<ContentBlock>) {
        let current = self.message(self.state.find(entry).unwrap());
        self.update_from(entry, &current, content);
    }

    /// Updates a message that is in another file.
    pub(crate) fn update_from(&mut self, entry: &EntryId, current: &AgentMessage, content: Vec<ContentBlock>) {
        let request = update(entry, content);
        self.decide(|state, ctx| decide::update_message(state, request, Some(current), ctx)).unwrap();
    }

    /// A message as the file has it.
    pub(crate) fn message(&self, ix: NodeIx) -> AgentMessage {
        message_in(&self.state, &self.file, ix)
    }

    pub(crate) fn text_of(&self, entry: &EntryId) -> String {
        text(&self.message(self.state.find(entry).unwrap()))
    }

    /// The ids on the active path.
    pub(crate) fn path(&self) -> Vec<EntryId> {
        self.state.path().iter().map(|ix| self.state.id(*ix)).collect()
    }
}

pub(crate) fn load(id: &str, file: &[u8]) -> (SessionState, Vec<StateFault>) {
    let mut state = SessionState::begin(id.into());
    let faults = load_into(&mut state, file);
    (state, faults)
}

pub(crate) fn load_into(state: &mut SessionState, file: &[u8]) -> Vec<StateFault> {
    let mut faults = apply_lines(state, file, 0);
    faults.extend(state.finish());
    faults
}

/// Applies the lines of a file that begin at `from` or later, which must be where a line begins.
pub(crate) fn apply_lines(state: &mut SessionState, file: &[u8], from: usize) -> Vec<StateFault> {
    let mut faults = Vec::new();
    let mut offset = from;
    for line in file[from..].split_inclusive(|byte| *byte == b'\n') {
        let at = (offset as u64, line.len() as u32);
        offset += line.len();
        if line.trim_ascii().is_empty() {
            continue;
        }
        let head = match Head::parse(line) {
            Err(_) if !line.ends_with(b"\n") => Head::parse_open(line),
            head => head,
        };
        faults.extend(match head {
            Ok(head) => state.apply(&head, at.0, at.1),
            Err(fault) => state.apply_damaged(&fault, at.0, at.1),
        });
    }
    faults
}

/// A message as a file has it. Everything must be in that one file.
pub(crate) fn message_in(state: &SessionState, file: &[u8], ix: NodeIx) -> AgentMessage {
    let parts = state.body(ix).unwrap();
    let line = |place: crate::Place| &file[place.offset as usize..][..place.len as usize];
    let full = line(parts.full.place);
    let mut message: AgentMessage =
        serde_json::from_str(body_text(full, &Head::parse(full).unwrap()).unwrap()).unwrap();
    for Line { place, .. } in parts.grown {
        let line = line(place);
        let stored = if line.ends_with(b"\n") { parse_full(line) } else { parse_full_open(line) };
        let StoredRecord::Own(Record::Grew(grew)) = stored.unwrap().record else { panic!("not a grew line") };
        for add in grew.adds {
            assert!(extend_text(&mut message, grew.block, &add.text));
        }
    }
    message
}

/// An entry as a file has it, after a record.
pub(crate) fn entry_as_of(state: &SessionState, file: &[u8], id: &EntryId, seq: Seq) -> SessionEntry {
    let ix = state.find(id).unwrap();
    let parts = state.body_parts_as_of(ix, seq).unwrap();
    let line = &file[parts.full.place.offset as usize..][..parts.full.place.len as usize];
    let head = Head::parse(line).unwrap();
    let body = body_text(line, &head).unwrap();
    let node = state.node(ix);
    match node.kind().is_message() {
        true => SessionEntry::Message(MessageEntry {
            id: id.clone(),
            parent_id: state.parent_id(ix),
            timestamp: node.timestamp(),
            revision: node.revision(),
            origin: head.origin(line),
            message: Raw::from_text(body.to_owned()).unwrap(),
        }),
        false => SessionEntry::Custom(CustomEntry {
            id: id.clone(),
            parent_id: state.parent_id(ix),
            timestamp: node.timestamp(),
            revision: node.revision(),
            origin: head.origin(line),
            custom_type: state.custom_type(ix).unwrap().to_owned(),
            data: Json::from_text(body).unwrap(),
        }),
    }
}

pub(crate) fn user(text: &str) -> AgentMessage {
    AgentMessage::User(UserMessage { content: vec![ContentBlock::text(text)], timestamp: 7 })
}

pub(crate) fn assistant(content: Vec<ContentBlock>) -> AgentMessage {
    AgentMessage::Assistant(AssistantMessage {
        content,
        model: "m".into(),
        provider: "p".into(),
        stop_reason: StopReason::End,
        native_stop_reason: None,
        error_kind: None,
        error_message: None,
        usage: None,
        warnings: None,
        agent: None,
        timestamp: 7,
    })
}

/// All texts of a message, joined.
pub(crate) fn text(message: &AgentMessage) -> String {
    let text = |block: &ContentBlock| match block {
        ContentBlock::Text(block) => block.text.clone(),
        ContentBlock::Thinking(block) => block.text.clone(),
        _ => String::new(),
    };
    message.content().iter().map(text).collect()
}

pub(crate) fn request(message: AgentMessage) -> AppendRequest {
    AppendRequest {
        session_id: "any".into(),
        message: Some(message),
        custom: None,
        parent_id: None,
        entry_id: None,
        origin: None,
        expected_leaf: None,
    }
}

pub(crate) fn custom(custom_type: &str, data: &str) -> AppendRequest {
    let payload = CustomPayload { custom_type: custom_type.into(), data: Json::from_text(data).unwrap() };
    AppendRequest { message: None, custom: Some(payload), ..request(user("")) }
}

pub(crate) fn update(entry: &EntryId, content: Vec<ContentBlock>) -> UpdateMessageRequest {
    UpdateMessageRequest {
        session_id: "any".into(),
        entry_id: entry.clone(),
        content,
        details: None,
        usage: None,
        expected_revision: None,
        origin: None,
    }
}

pub(crate) fn object(json: &str) -> Object {
    serde_json::from_str(json).unwrap()
}
