//! What another instance puts: in any order, over anything, and the same when it is read again.

use banyan_model::{
    ContentBlock, CustomEntry, EntryId, Json, MessageEntry, Raw, Revision, SessionEntry, SessionMeta,
    SessionStatus,
};
use proptest::prelude::*;

use crate::decide;
use crate::state::SessionState;
use crate::testing::{Session, assistant, load, shape, user};

fn entry(id: &str, parent: Option<&str>, text: &str, revision: u64) -> SessionEntry {
    SessionEntry::Message(MessageEntry {
        id: id.into(),
        parent_id: parent.map(Into::into),
        timestamp: 5,
        revision: Revision(revision),
        origin: None,
        message: Raw::of(&user(text)).unwrap(),
    })
}

fn mark(id: &str, parent: Option<&str>) -> SessionEntry {
    SessionEntry::Custom(CustomEntry {
        id: id.into(),
        parent_id: parent.map(Into::into),
        timestamp: 6,
        revision: Revision(0),
        origin: None,
        custom_type: "mark".into(),
        data: Json::null(),
    })
}

fn meta(session: &Session, title: &str) -> SessionMeta {
    let meta = session.state.meta().as_ref().clone();
    SessionMeta { title: title.into(), status: SessionStatus::Working, message_count: 77, ..meta }
}

impl Session {
    fn put(&mut self, entry: SessionEntry) {
        self.decide(|state, ctx| decide::put_entry(state, entry, ctx)).unwrap();
    }

    fn put_leaf(&mut self, id: Option<&str>) {
        self.decide(|state, ctx| decide::put_leaf(state, id.map(Into::into), ctx)).unwrap();
    }

    fn put_meta(&mut self, title: &str) {
        let meta = meta(self, title);
        self.decide(|state, ctx| decide::put_meta(state, meta, ctx)).unwrap();
    }

    /// The state that the file alone gives is the one in memory, and an image of it gives it again.
    fn is_settled(&self) {
        let (state, faults) = self.reloaded();
        assert_eq!(faults, vec![]);
        assert_eq!(shape(&state), shape(&self.state));
        let mut image = Vec::new();
        state.to_snapshot(&mut image);
        assert_eq!(shape(&SessionState::from_snapshot(&image).unwrap()), shape(&self.state));
    }
}

#[test]
fn there_is_a_session_once_it_has_a_meta() {
    let mut session = Session::none("s");
    session.put(entry("a", None, "one", 0));
    session.put(mark("m", Some("a")));
    session.put_leaf(Some("m"));
    assert!(!session.state.exists());
    let born = session.state.born();
    session.is_settled();
    session.put_meta("T");
    session.is_settled();
    let state = &session.state;
    assert!(state.exists());
    assert_eq!((state.born(), state.meta().message_count), (born, 1));
    assert_eq!((state.meta().title.as_str(), state.meta().status), ("T", SessionStatus::Working));
    assert_eq!(session.path(), [EntryId::from("a"), "m".into()]);
}

#[test]
fn an_entry_that_grew_is_replaced_whole() {
    let mut session = Session::created();
    let grown = session.answer("It");
    session.extend(&grown, " grows");
    let entry = SessionEntry::Message(MessageEntry {
        id: grown.clone(),
        parent_id: None,
        timestamp: 5,
        revision: Revision(9),
        origin: None,
        message: Raw::of(&assistant(vec![ContentBlock::text("It was put")])).unwrap(),
    });
    session.put(entry);
    assert!(session.state.growing().is_none());
    assert_eq!(session.text_of(&grown), "It was put");
    session.extend(&grown, "!");
    assert_eq!(session.text_of(&grown), "It was put!");
    assert_eq!(session.state.node(session.state.find(&grown).unwrap()).revision(), Revision(10));
    session.close();
    session.is_settled();
}

#[test]
fn a_message_is_counted_once_when_it_comes_on_a_path() {
    let mut session = Session::created();
    session.put(entry("a", None, "a", 0));
    session.put(entry("b", Some("a"), "b", 0));
    assert_eq!(session.state.meta().message_count, 0);
    session.put_leaf(Some("b"));
    session.put_leaf(Some("a"));
    session.put_leaf(Some("b"));
    session.put(entry("b", Some("a"), "again", 1));
    assert_eq!(session.state.meta().message_count, 2);
    session.put(mark("b", Some("a")));
    assert_eq!(session.state.meta().message_count, 1, "what is no message is not counted");
    session.is_settled();
}

#[test]
fn a_damaged_put_loses_its_text_and_keeps_its_place() {
    let mut session = Session::created();
    session.put(entry("a", None, "first", 0));
    session.put_leaf(Some("a"));
    session.put(entry("a", None, "second", 1));
    session.put(entry("b", Some("a"), "third", 0));
    let text = String::from_utf8(session.file.clone()).unwrap();
    let damaged = text.replace("second", "sexond").replace("third", "thirx");
    let (state, faults) = load(session.state.session_id().as_str(), damaged.as_bytes());
    assert_eq!(faults.len(), 2);
    let (a, b) = (state.find(&"a".into()).unwrap(), state.find(&"b".into()).unwrap());
    assert!(state.node(a).is_damaged() && state.node(b).is_damaged());
    assert_eq!(state.node(b).parent(), Some(a));
    assert_eq!(state.path(), [a]);
}

#[derive(Clone, Debug)]
enum Put {
    Entry { id: u8, parent: Option<u8>, custom: bool },
    Leaf(Option<u8>),
    Meta(u8),
    Append,
    Extend,
}

fn any_put() -> impl Strategy<Value = Put> {
    prop_oneof![
        5 => (0..6_u8, prop::option::of(0..6_u8), prop::bool::weighted(0.2))
            .prop_map(|(id, parent, custom)| Put::Entry { id, parent, custom }),
        3 => prop::option::of(0..6_u8).prop_map(Put::Leaf),
        1 => (0..3_u8).prop_map(Put::Meta),
        2 => Just(Put::Append),
        2 => Just(Put::Extend),
    ]
}

proptest! {
    #[test]
    fn whatever_is_put_the_file_gives_the_same_state(puts in prop::collection::vec(any_put(), 0..40)) {
        let mut session = Session::none("s");
        let mut newest = None;
        let name = |number: u8| format!("e{number}");
        for put in puts {
            match put {
                Put::Entry { id, parent, custom } => {
                    // A circle is a fault that is told, so none is made here.
                    let parent = parent.filter(|parent| *parent < id).map(name);
                    session.put(match custom {
                        true => mark(&name(id), parent.as_deref()),
                        false => entry(&name(id), parent.as_deref(), "text", 1),
                    });
                }
                Put::Leaf(id) => session.put_leaf(id.map(name).as_deref()),
                Put::Meta(title) => session.put_meta(&name(title)),
                Put::Append if session.state.exists() => newest = Some(session.answer("said")),
                Put::Extend => if let Some(newest) = &newest { session.extend(newest, "!") },
                Put::Append => {}
            }
        }
        session.close();
        session.is_settled();
        let counted = session.state.nodes().iter().filter(|node| node.kind().is_message() && !node.is_uncommitted());
        prop_assert_eq!(counted.count() as u64, session.state.meta().message_count);
    }
}
