//! Tells what a chat says: messages, results and whatever stands beside them, each in its place.

use banyan_model::{AgentMessage, EntryId, FunctionResultMessage, Json, Object, SessionId};
use serde_json::{Value, json};

use super::ID;
use super::message::{Answer, Body, Told, hash, text};
use super::read::Reader;
use super::tree::{Found, Kind, Node};
use crate::build::{Place, title_of};
use crate::{Note, Problem, Sink, entry_id};

/// How a message was told.
#[derive(Clone, Copy)]
pub(super) enum Via<'a> {
    /// By a line of its own: it is new, or replaces the one of that id.
    Line,
    /// In a list of all messages; before it, the path ended there.
    List { before: Option<usize>, all: &'a [Value] },
}

impl Reader<'_> {
    pub(super) fn message(
        &mut self,
        session: &SessionId,
        record: &Object,
        from: Via<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let now = self.state.head.as_ref().map_or(0, |head| head.updated_at);
        let Some(mut told) = Told::of(record, &self.state.model, now) else {
            let what = "a message without id or type was left out".to_owned();
            sink.note(Note { place: String::new(), what, lost: true });
            return Ok(());
        };
        if let (Via::List { before, all }, Kind::Compaction) = (from, told.kind) {
            // A summary begins the list anew; here it follows what it sums up, and says what is in the list still.
            self.state.tree.tail = before.or(self.state.tree.tail);
            let ids: Vec<&Value> = all.iter().filter_map(|message| message.get("id")).collect();
            if let Body::Message(message) = &mut told.body
                && let AgentMessage::Custom(message) = &mut **message
            {
                message.details = Some(Json::of(&ids)?);
            }
        }
        if !matches!(told.body, Body::Nothing) {
            self.place(session, &told, record, from, sink)?;
        }
        for answer in told.answers {
            self.answer(session, answer, sink)?;
        }
        Ok(())
    }

    fn place(
        &mut self,
        session: &SessionId,
        told: &Told,
        record: &Object,
        from: Via<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let tree = &mut self.state.tree;
        let found = tree.find(&told.native, tree.tail);
        let at = match found {
            Found::Passed(at) => at,
            Found::Next(at) => {
                tree.tail = Some(at);
                at
            }
            Found::No => {
                let entry = self.entry(session, told.own.as_ref(), &told.native);
                let native = told.native.clone();
                let (full, loose, kind) = (told.full, told.loose, told.kind);
                let node = Node { native, entry, parent: None, revision: 0, full, loose, kind };
                let at = self.state.tree.add(session, node);
                self.heard(told);
                return self.tell(session, at, told, record, sink);
            }
        };
        let Some(node) = tree.get_mut(at) else { return Ok(()) };
        let is_whole = told.whole || matches!(from, Via::Line);
        let changed = if is_whole { node.full != told.full } else { node.loose != told.loose };
        if !changed || matches!(told.body, Body::Record(_)) {
            return Ok(());
        }
        node.revision += 1;
        (node.full, node.loose) = (told.full, told.loose);
        self.heard(told);
        self.tell(session, at, told, record, sink)
    }

    /// Takes from a message what is of interest to the whole session.
    fn heard(&mut self, told: &Told) {
        let Some(head) = &mut self.state.head else { return };
        head.updated_at = head.updated_at.max(told.at);
        let Body::Message(message) = &told.body else { return };
        match &**message {
            AgentMessage::Assistant(message) if !message.model.is_empty() => {
                self.state.model.clone_from(&message.model);
                head.metadata.insert("model".to_owned(), message.model.clone().into());
            }
            AgentMessage::User(message) if head.title.is_empty() => {
                head.title = message.content.iter().find_map(text).map(title_of).unwrap_or_default();
            }
            _ => {}
        }
    }

    fn tell(
        &self,
        session: &SessionId,
        at: usize,
        told: &Told,
        record: &Object,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let Some(mut place) = self.at(at, told.at) else { return Ok(()) };
        let entry = match &told.body {
            Body::Message(message) => {
                place.origin = Some(told.origin.clone().into());
                place.message(message)?
            }
            Body::Record(kind) => place.custom(format!("{ID}.{kind}"), Json::of(record)?),
            Body::Nothing => return Ok(()),
        };
        Ok(sink.entry(session, entry)?)
    }

    fn answer(&mut self, session: &SessionId, answer: Answer, sink: &mut dyn Sink) -> Result<(), Problem> {
        let Answer { response, at, own } = answer;
        let call = response.call.clone();
        if own.as_ref().is_some_and(|own| own.made_up) {
            self.state.made_up.insert(call.clone());
        }
        if self.state.made_up.contains(&call) {
            return Ok(());
        }
        let native = format!("result:{call}");
        // Not whether it failed: after a resume that is not always known.
        let full = hash(&response.content);
        let tree = &mut self.state.tree;
        let at_node = match tree.find(&native, tree.tail) {
            Found::Passed(node) => node,
            Found::Next(node) => {
                tree.tail = Some(node);
                node
            }
            Found::No => {
                let entry = self.entry(session, own.as_ref(), &native);
                let kind = Kind::Said;
                let node = Node { native, entry, parent: None, revision: 0, full, loose: full, kind };
                let node = self.state.tree.add(session, node);
                return self.tell_answer(session, node, response, at, sink);
            }
        };
        let Some(node) = tree.get_mut(at_node).filter(|node| node.full != full) else { return Ok(()) };
        node.revision += 1;
        node.full = full;
        self.tell_answer(session, at_node, response, at, sink)
    }

    fn tell_answer(
        &self,
        session: &SessionId,
        node: usize,
        response: crate::parts::Response,
        timestamp: i64,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        let Some(mut place) = self.at(node, timestamp) else { return Ok(()) };
        place.origin =
            response.kept.map(|kept| Object::from_iter([(ID.to_owned(), json!({"result": kept}))]).into());
        let message = AgentMessage::FunctionResult(FunctionResultMessage {
            function_call_id: response.call,
            function_id: response.name,
            content: response.content,
            details: Json::null(),
            is_error: response.is_error,
            timestamp,
        });
        Ok(sink.entry(session, place.message(&message)?)?)
    }

    /// A record that is no message, kept as it is.
    pub(super) fn beside(
        &mut self,
        session: &SessionId,
        native: &str,
        custom_type: &str,
        record: &Object,
        sink: &mut dyn Sink,
    ) -> Result<(), Problem> {
        match self.state.tree.find(native, self.state.tree.tail) {
            Found::Passed(_) => return Ok(()),
            Found::Next(at) => {
                self.state.tree.tail = Some(at);
                return Ok(());
            }
            Found::No => {}
        }
        let entry = entry_id(session, native);
        let kind = Kind::Beside;
        let node = Node { native: native.to_owned(), entry, parent: None, revision: 0, full: 0, loose: 0, kind };
        let at = self.state.tree.add(session, node);
        let time = super::message::time(record).or(self.state.head.as_ref().map(|head| head.updated_at));
        let Some(place) = self.at(at, time.unwrap_or_default()) else { return Ok(()) };
        Ok(sink.entry(session, place.custom(custom_type, Json::of(record)?))?)
    }

    fn at(&self, at: usize, time: i64) -> Option<Place> {
        let node = self.state.tree.get(at)?;
        let parent = node.parent.and_then(|parent| self.state.tree.get(parent)).map(|parent| parent.entry.clone());
        Some(Place { id: node.entry.clone(), parent, at: time, revision: node.revision, origin: None })
    }

    fn entry(&self, session: &SessionId, own: Option<&crate::Own>, native: &str) -> EntryId {
        let own = own.filter(|own| own.session == *session).and_then(|own| own.entry.clone());
        own.unwrap_or_else(|| entry_id(session, native))
    }
}
