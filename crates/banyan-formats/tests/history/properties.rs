//! What holds for every session.

use banyan_formats::history::*;
use banyan_model::*;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::given;
use crate::store::{Store, has_key, json as json_of, projector, read};

/// A piece of an entry. Each gets a token, so that it can be found again.
#[derive(Clone, Debug)]
enum Piece {
    Text,
    Thinking,
    Call,
    Image,
    File,
    Result,
}

#[derive(Clone, Debug)]
enum Step {
    Ask(Vec<Piece>),
    Say(Vec<Piece>),
    Fail(Vec<Piece>),
    Give(Vec<Piece>),
    Note { shown: bool },
    Data { shown: bool },
    Part(Kind),
}

#[derive(Clone, Debug)]
enum Kind {
    Unknown,
    Options,
    Scalar,
    Custom,
    Thought,
}

fn pieces(of: Vec<Piece>) -> impl Strategy<Value = Vec<Piece>> {
    vec(proptest::sample::select(of), 0..4)
}

fn step() -> impl Strategy<Value = Step> {
    use Piece::*;
    prop_oneof![
        2 => pieces(vec![Text, Image, File]).prop_map(Step::Ask),
        4 => pieces(vec![Text, Thinking, Call, Image, File, Result]).prop_map(Step::Say),
        1 => pieces(vec![Text, Thinking]).prop_map(Step::Fail),
        3 => pieces(vec![Text, Image]).prop_map(Step::Give),
        1 => any::<bool>().prop_map(|shown| Step::Note { shown }),
        1 => any::<bool>().prop_map(|shown| Step::Data { shown }),
        2 => prop_oneof![Just(Kind::Unknown), Just(Kind::Options), Just(Kind::Scalar), Just(Kind::Custom), Just(Kind::Thought)]
            .prop_map(Step::Part),
    ]
}

/// A session, and the tokens that people see of it in their order.
#[derive(Default)]
struct Session {
    store: Store,
    tokens: usize,
    shown: Vec<String>,
}

impl Session {
    fn of(steps: &[Step]) -> Self {
        let mut session = Self::default();
        steps.iter().for_each(|step| session.step(step));
        session
    }

    fn token(&mut self) -> String {
        self.tokens += 1;
        let token = format!("<{}>", self.tokens);
        self.shown.push(token.clone());
        token
    }

    fn step(&mut self, step: &Step) {
        let at = self.store.items.len();
        let (id, time) = (format!("e_{at:032x}"), 1_769_118_449_763 + at as i64 * 10);
        let message = match step {
            Step::Ask(pieces) => given::user(self.blocks(pieces), time),
            Step::Say(pieces) => given::assistant(self.blocks(pieces), StopReason::End, time),
            Step::Fail(pieces) => {
                let blocks = self.blocks(pieces);
                given::failed(blocks, &self.token(), time)
            }
            Step::Give(pieces) => {
                // What is beside the text of a result is shown after it.
                let (texts, others): (Vec<_>, Vec<_>) =
                    pieces.iter().cloned().partition(|p| matches!(p, Piece::Text));
                let content = self.blocks(&[texts, others].concat());
                given::result("c", "f", content, time)
            }
            Step::Note { shown: true } => given::custom("note", vec![], Some(&self.token()), time),
            Step::Note { shown: false } => given::custom("note", vec![given::text("unseen")], Some(""), time),
            Step::Data { shown } => {
                let data = if *shown { json!({"display": self.token()}) } else { json!({"technical_details": 1}) };
                return self.store.append_custom(&id, "data", &data);
            }
            Step::Part(kind) => {
                let part = self.part(kind);
                let message = AgentMessage::Custom(CustomMessage {
                    custom_type: "history.part".into(),
                    content: vec![],
                    display: None,
                    details: Some(Json::of(&part).unwrap()),
                    timestamp: time,
                });
                return self.store.append(id, message, None);
            }
        };
        self.store.append(id, message, None);
    }

    fn part(&mut self, kind: &Kind) -> Value {
        let token = self.token();
        let deep = json!({"a": [{"technical_details": "secret", "b": 1.5}]});
        match kind {
            Kind::Unknown => json!({"type": "hologram", "text": token, "deep": deep}),
            Kind::Options => json!({"type": "options_block", "definition": {"question": token, "options": []}}),
            Kind::Scalar => json!(token),
            Kind::Custom => {
                json!({"type": "activity", "activity_type": "web_fetch", "source": "s", "timestamp": "t",
                "content": token, "technical_details": deep})
            }
            Kind::Thought => json!({"type": "activity", "activity_type": "thought", "source": "s",
                "timestamp": "2026-01-22T21:47:29.763430", "content": token, "own": {"technical_details": 1}}),
        }
    }

    fn blocks(&mut self, pieces: &[Piece]) -> Vec<ContentBlock> {
        pieces.iter().map(|piece| self.block(piece)).collect()
    }

    fn block(&mut self, piece: &Piece) -> ContentBlock {
        let token = self.token();
        match piece {
            Piece::Text => given::text(&token),
            Piece::Thinking => given::thinking(&token),
            Piece::Call => given::call("c", "f", &json!({"q": token, "technical_details": {"x": "secret"}})),
            Piece::Image => given::image(&token),
            Piece::File => ContentBlock::File(FileBlock {
                attachment_id: "a_1".into(),
                name: token,
                mime: "text/plain".into(),
                size: 3,
            }),
            Piece::Result => ContentBlock::FunctionResult(FunctionResultBlock {
                function_call_id: "c".into(),
                content: vec![given::text(&token)],
                is_error: None,
            }),
        }
    }
}

/// The tokens that a front end shows: those of the parts, or of the text when there are no parts.
fn tokens(history: &[Value]) -> Vec<String> {
    let mut tokens = Vec::new();
    for message in history {
        let parts = message["parts"].as_array().unwrap();
        let text =
            if parts.is_empty() { message["text_content"].to_string() } else { message["parts"].to_string() };
        let mut rest = text.as_str();
        while let Some(start) = rest.find('<') {
            let end = start + rest[start..].find('>').unwrap();
            tokens.push(rest[start..=end].to_owned());
            rest = &rest[end..];
        }
    }
    tokens
}

/// What a front end does with what it is told.
#[derive(Default)]
struct FrontEnd {
    messages: Vec<Value>,
}

impl FrontEnd {
    fn upsert(&mut self, message: Value) {
        let same = |known: &&mut Value| {
            known["interaction_id"] == message["interaction_id"] && known["role"] == message["role"]
        };
        match self.messages.iter_mut().find(same) {
            Some(known) => *known = message,
            None => self.messages.push(message),
        }
    }

    fn add(&mut self, delta: &Value) {
        let message = self.messages.last_mut().unwrap();
        let at = delta["part"].as_u64().unwrap() as usize;
        let text = delta["text"].as_str().unwrap();
        let is_activity = |part: &Value| part["type"] == "activity";
        if is_activity(&message["parts"][at]) {
            let before =
                message["parts"].as_array().unwrap()[..at].iter().filter(|part| is_activity(part)).count();
            append(&mut message["parts"][at]["content"], text);
            append(&mut message["activity_parts"][before]["content"], text);
        } else {
            append(&mut message["parts"][at]["text"], text);
        }
        if delta["main"] == true {
            append(&mut message["response_text_main"], text);
        }
    }
}

fn append(value: &mut Value, text: &str) {
    *value = format!("{}{text}", value.as_str().unwrap()).into();
}

fn standing() -> impl Strategy<Value = Standing> {
    proptest::sample::select(vec![Standing::Over, Standing::Running, Standing::Failed, Standing::Abandoned])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_part_is_there_once_and_in_order(steps in vec(step(), 0..24), standing in standing()) {
        let session = Session::of(&steps);
        let history = session.store.history_as(Disclosure::Public, standing);
        prop_assert_eq!(tokens(&history), session.shown);
        for message in &history {
            prop_assert!(message["parts"].is_array() && message["activity_parts"].is_array());
            prop_assert!(message["timestamp"].as_str().unwrap().contains('T'));
        }
    }

    #[test]
    fn its_own_output_is_the_same(steps in vec(step(), 0..24), standing in standing()) {
        let mut session = Session::of(&steps);
        for known in session.store.projected(Disclosure::Public, standing) {
            prop_assert_eq!(compare(&known, &read(&json_of(&known.message))), Comparison::Same);
        }
        for disclosure in [Disclosure::Public, Disclosure::Operator] {
            for message in session.store.history_as(disclosure, standing) {
                prop_assert_eq!(session.store.post(&read(&message)), Ok(0));
            }
        }
    }

    #[test]
    fn its_own_output_in_another_session_is_the_same_history(steps in vec(step(), 0..24)) {
        let session = Session::of(&steps);
        let history = Value::from(session.store.history());
        let mut copy = Store::default();
        copy.post_all(&history);
        prop_assert_eq!(&Value::from(copy.history()), &history);
        prop_assert_eq!(copy.post_all(&history), 0);
    }

    #[test]
    fn technical_details_are_never_told(steps in vec(step(), 0..24)) {
        let session = Session::of(&steps);
        let history = Value::from(session.store.history());
        prop_assert!(!has_key(&history, "technical_details"));
        prop_assert!(!history.to_string().contains("secret"));
    }

    #[test]
    fn watching_a_session_grow_is_reading_it_at_every_step(
        steps in vec(step(), 1..16),
        growth in vec((0..3_usize, 0..4_usize, "[a-z]{0,3}", any::<bool>()), 0..24),
        standing in standing(),
    ) {
        let session = Session::of(&steps);
        let mut store = Store::default();
        let mut watching = projector(Disclosure::Public);
        watching.set_standing(standing);
        let mut front_end = FrontEnd::default();
        let mut growth = growth.iter().cycle().take(if growth.is_empty() { 0 } else { usize::MAX });
        for item in &session.store.items {
            store.items.push(item.clone());
            if let Some(finished) = watching.push(Entry::from(item)) {
                front_end.upsert(json_of(&finished.message));
            }
            if let Some(open) = watching.open() {
                front_end.upsert(json_of(&open.message));
            }
            prop_assert_eq!(&front_end.messages, &store.history_as(Disclosure::Public, standing));

            // One of the newest entries grows, if it can.
            let Some((back, block, text, replaced)) = growth.next() else { continue };
            let id = store.items[store.items.len().saturating_sub(1 + back)].entry_id.clone();
            let Some(mut grown) = store.find(&id) else { continue };
            match grown.content_mut().get_mut(*block) {
                Some(ContentBlock::Text(block)) => block.text.push_str(text),
                Some(ContentBlock::Thinking(block)) => block.text.push_str(text),
                _ => continue,
            }
            store.set_message(&id, &grown);
            let change =
                if *replaced { watching.update(&id, grown) } else { watching.grow(&id, *block, text) };
            match change {
                Change::Nothing => {}
                Change::Grew(delta) => front_end.add(&json_of(&delta)),
                Change::Whole => front_end.upsert(json_of(&watching.open().unwrap().message)),
                // An older message, which is read again.
                Change::Elsewhere => front_end.messages = store.history_as(Disclosure::Public, standing),
            }
            prop_assert_eq!(&front_end.messages, &store.history_as(Disclosure::Public, standing));
        }
    }

    #[test]
    fn reading_can_begin_wherever_an_entry_says_so(
        own in vec(step(), 0..12),
        posted in vec(step(), 0..12),
        then in vec(step(), 0..12),
        standing in standing(),
    ) {
        let mut session = Session::of(&own);
        for mut message in Session::of(&posted).store.history() {
            message["interaction_id"] = format!("posted-{}", message["interaction_id"]).into();
            session.store.post(&read(&message)).unwrap();
        }
        then.iter().for_each(|step| session.step(step));
        let entries: Vec<Entry> = session.store.items.iter().map(Entry::from).collect();
        let all = session.store.projected(Disclosure::Public, standing);
        let starts = (0..entries.len()).filter(|at| entries[*at].is_start(at.checked_sub(1).map(|at| &entries[at])));
        for start in starts {
            let mut before = projector(Disclosure::Public);
            let mut told: Vec<_> = entries[..start].iter().cloned().filter_map(|it| before.push(it)).collect();
            told.extend(before.close());
            let mut after = projector(Disclosure::Public);
            after.set_standing(standing);
            told.extend(entries[start..].iter().cloned().filter_map(|it| after.push(it)));
            told.extend(after.finish());
            prop_assert_eq!(&told, &all, "begun at {}", start);
        }
    }

    #[test]
    fn a_message_that_is_posted_piece_by_piece_is_the_message(steps in vec(step(), 1..16), cut in 0..40_usize) {
        let session = Session::of(&steps);
        for whole in session.store.history().into_iter().filter(|message| message["role"] == "assistant") {
            let mut beginning = whole.clone();
            let parts = beginning["parts"].as_array_mut().unwrap();
            parts.truncate(cut % (parts.len() + 1));
            if let Some(text) = parts.last_mut().filter(|part| part["type"] == "text_output") {
                text["text"] = text["text"].as_str().unwrap()[..1].into();
            }
            beginning["activity_parts"] = json!([]);
            beginning["response_text_main"] = Value::Null;
            let mut store = Store::default();
            store.post(&read(&beginning)).unwrap();
            store.post(&read(&whole)).unwrap();
            prop_assert_eq!(&store.history(), std::slice::from_ref(&whole));
            prop_assert_eq!(store.post(&read(&whole)), Ok(0));
        }
    }
}
