//! A session in memory: entries in a tree, appended as the store does it.

use banyan_formats::shapes::*;
use banyan_model::*;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::given;

pub(crate) fn find(name: &str) -> &'static dyn Shape {
    shape(name).unwrap()
}

/// Entries in the order in which they came, and the active leaf.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    pub(crate) entries: Vec<(EntryId, Option<EntryId>, Body, Option<Object>)>,
    pub(crate) leaf: Option<EntryId>,
}

impl Session {
    pub(crate) fn append(&mut self, id: &str, parent: Option<EntryId>, body: Body, origin: Option<Object>) {
        self.entries.push((id.into(), parent, body, origin));
        self.leaf = Some(id.into());
    }

    /// Appends a message to the leaf.
    pub(crate) fn say(&mut self, id: &str, message: AgentMessage) {
        self.append(id, self.leaf.clone(), Body::Message(Box::new(message)), None);
    }

    pub(crate) fn items(&self) -> Vec<Item> {
        let item = |(id, parent, body, origin): &(EntryId, Option<EntryId>, Body, Option<Object>)| {
            Item::new(id.clone(), parent.clone(), body.clone(), origin.as_ref())
        };
        self.entries.iter().map(item).collect()
    }

    /// The items of the path to the leaf.
    pub(crate) fn path(&self) -> Vec<Item> {
        let (mut path, mut at) = (Vec::new(), self.leaf.clone());
        while let Some(id) = at {
            let entry = self.entries.iter().find(|entry| entry.0 == id).unwrap();
            path.push(Item::new(id, entry.1.clone(), entry.2.clone(), entry.3.as_ref()));
            at = entry.1.clone();
        }
        path.reverse();
        path
    }

    pub(crate) fn scene(&self) -> Scene {
        let (session_id, attachments) = ("s".to_owned(), "/a/".to_owned());
        Scene { session_id, leaf: self.leaf.clone(), attachments, ..Scene::default() }
    }

    pub(crate) fn shown(&self, shape: &dyn Shape) -> Value {
        match shape.extent() {
            Extent::Tree => shape.write(&self.items(), &self.scene()),
            Extent::Path => shape.write(&self.path(), &self.scene()),
        }
    }

    /// Appends what is not there yet; how many entries that is.
    pub(crate) fn post(&mut self, shape: &dyn Shape, form: &Value) -> usize {
        let posted = shape.read(form, 7).unwrap();
        let mut ends: Vec<(String, EntryId)> = Vec::new();
        let mut added = 0;
        for message in posted.messages {
            let mut parent = match &message.follows {
                Follows::Message(id) => Some(ends.iter().rfind(|(known, _)| known == id).unwrap().1.clone()),
                Follows::Nothing => None,
                Follows::Before => ends.last().map(|(_, id)| id.clone()).or_else(|| self.leaf.clone()),
            };
            for entry in message.entries {
                match self.entries.iter().find(|known| known.0 == entry.id) {
                    Some((_, _, known, _)) => {
                        if let (Body::Message(known), Body::Message(new)) = (known, &entry.body) {
                            assert_eq!(compare(known, new), Comparison::Same, "{known:?} {new:?}");
                        }
                    }
                    None if entry.body == Body::Unreadable => continue,
                    None => {
                        added += 1;
                        self.append(entry.id.as_str(), parent, entry.body, entry.origin);
                    }
                }
                parent = Some(entry.id);
            }
            ends.extend(parent.map(|id| (message.id, id)));
        }
        if let Some(head) = posted.head {
            self.leaf = Some(ends.iter().find(|(known, _)| *known == head).unwrap().1.clone());
        }
        added
    }
}

/// A piece of an entry.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Text(String),
    Thinking,
    Sealed,
    Call(u8),
    Image,
    Picture,
    File,
    Result(u8),
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Ask(Vec<Piece>),
    Say(Vec<Piece>, StopReason),
    Give(u8, Vec<Piece>, u8, bool),
    Note(bool),
    Data(bool),
    Unreadable,
    /// The next entry follows one of those before.
    Branch(prop::sample::Index),
}

fn pieces(of: Vec<Piece>) -> impl Strategy<Value = Vec<Piece>> {
    prop::collection::vec(prop::sample::select(of), 0..4)
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    use Piece::*;
    let text = || Text("a \"text\"".to_owned());
    let all =
        vec![text(), Text(String::new()), Thinking, Sealed, Call(0), Call(1), Image, Picture, File, Result(0)];
    let ends = vec![
        StopReason::End,
        StopReason::FunctionCall,
        StopReason::Aborted,
        StopReason::Error,
        StopReason::Length,
    ];
    prop_oneof![
        3 => pieces(vec![text(), Image, Picture, File, Result(1), Text(String::new())]).prop_map(Step::Ask),
        5 => (pieces(all), prop::sample::select(ends)).prop_map(|(pieces, end)| Step::Say(pieces, end)),
        4 => (0..3_u8, pieces(vec![text(), Image, File, Text("{\"a\":1}".to_owned())]), 0..3_u8, any::<bool>())
            .prop_map(|(call, pieces, details, error)| Step::Give(call, pieces, details, error)),
        1 => any::<bool>().prop_map(Step::Note),
        1 => any::<bool>().prop_map(Step::Data),
        1 => Just(Step::Unreadable),
        1 => any::<prop::sample::Index>().prop_map(Step::Branch),
    ]
}

fn block(piece: &Piece) -> ContentBlock {
    let image = |attachment_id| ImageBlock { mime: "image/png".into(), data: "AAAA".into(), attachment_id };
    match piece {
        Piece::Text(text) => given::text(text),
        Piece::Thinking => given::thinking("hm"),
        Piece::Sealed => {
            ContentBlock::Thinking(ThinkingBlock { text: "hm".into(), signature: Some("seal".into()) })
        }
        Piece::Call(id) => given::call(
            &format!("c{id}"),
            "f",
            &json!({"q": 1.5, "technical_details": {"x": "secret"}, "deep": [{"technical_details": "secret"}]}),
        ),
        Piece::Image => ContentBlock::Image(image(None)),
        Piece::Picture => ContentBlock::Image(image(Some("a_1".into()))),
        Piece::File => ContentBlock::File(FileBlock {
            attachment_id: "a_2".into(),
            name: "x.txt".into(),
            mime: "text/plain".into(),
            size: 3,
        }),
        Piece::Result(id) => ContentBlock::FunctionResult(FunctionResultBlock {
            function_call_id: format!("c{id}"),
            content: vec![given::text("given"), given::image("BBBB")],
            is_error: if *id == 0 { Some(false) } else { None },
        }),
    }
}

pub(crate) fn session_of(steps: &[Step]) -> Session {
    let mut session = Session::default();
    for (at, step) in steps.iter().enumerate() {
        let (id, time) = (format!("e_{at}"), 1000 + at as i64);
        let blocks = |pieces: &[Piece]| pieces.iter().map(block).collect::<Vec<_>>();
        match step {
            Step::Ask(pieces) => session.say(&id, given::user(blocks(pieces), time)),
            Step::Say(pieces, StopReason::Error) => session.say(&id, given::failed(blocks(pieces), "no", time)),
            Step::Say(pieces, end) => session.say(&id, given::assistant(blocks(pieces), *end, time)),
            Step::Give(call, pieces, details, is_error) => {
                let details = match details {
                    0 => Json::null(),
                    1 => Json::from_text(r#"{"a":1}"#).unwrap(),
                    _ => Json::from_text(r#"{"b":[1,"x"],"technical_details":"secret"}"#).unwrap(),
                };
                session.say(
                    &id,
                    AgentMessage::FunctionResult(FunctionResultMessage {
                        function_call_id: format!("c{call}"),
                        function_id: "f".into(),
                        content: blocks(pieces),
                        details,
                        is_error: *is_error,
                        timestamp: time,
                    }),
                );
            }
            Step::Note(shown) => {
                let mut message = given::custom("note", vec![given::text("t")], shown.then_some("shown"), time);
                if let (AgentMessage::Custom(message), false) = (&mut message, *shown) {
                    message.details =
                        Some(Json::from_text(r#"{"a":{"technical_details":"secret"},"n":1}"#).unwrap());
                }
                session.say(&id, message);
            }
            Step::Data(object) => {
                let data = if *object { json!({"a": 1, "technical_details": "secret"}) } else { json!([1, "b"]) };
                let custom = CustomPayload { custom_type: "own".into(), data: Json::of(&data).unwrap() };
                session.append(&id, session.leaf.clone(), Body::Custom(custom), None);
            }
            Step::Unreadable => session.append(&id, session.leaf.clone(), Body::Unreadable, None),
            Step::Branch(index) => {
                if !session.entries.is_empty() {
                    session.leaf = Some(index.get(&session.entries).0.clone());
                }
            }
        }
    }
    session
}
