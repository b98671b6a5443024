//! Messages that grow, sent as what was added.

use std::cell::Cell;
use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::listening::*;

/// A client that knows messages by the rule in the documentation, and nothing else.
#[derive(Default)]
pub(crate) struct Screen {
    pub(crate) messages: HashMap<(String, String), (u64, Value)>,
    /// What the last delta was about.
    about: (String, String, usize),
    pub(crate) deltas: usize,
}

impl Screen {
    /// Takes a frame in. Says which message is known by it, and at which revision.
    pub(crate) fn take(&mut self, event: &str, data: &Value) -> Option<((String, String), u64)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        if event == "banyan::delta" {
            self.deltas += 1;
            for (field, known) in [("session_id", &mut self.about.0), ("entry_id", &mut self.about.1)] {
                if let Some(value) = data.get(field) {
                    *known = text(value);
                }
            }
            if let Some(block) = data.get("block") {
                self.about.2 = block.as_u64().unwrap() as usize;
            }
            let key = (self.about.0.clone(), self.about.1.clone());
            let (revision, message) = self.messages.get_mut(&key).expect("a message to add to");
            let grown = &mut message["content"][self.about.2]["text"];
            *grown = json!(text(grown) + data["text"].as_str().unwrap());
            *revision = data["revision"].as_u64().unwrap();
            return Some((key, *revision));
        }
        let message = data.get("message")?.clone();
        let revision = data.get("revision").map_or(0, |revision| revision.as_u64().unwrap());
        let key = (text(&data["session_id"]), text(&data["entry_id"]));
        self.messages.insert(key.clone(), (revision, message));
        Some((key, revision))
    }
}

/// What a writer does next.
#[derive(Clone, Debug)]
enum Step {
    Append {
        session: usize,
    },
    Extend {
        entry: usize,
        block: usize,
        text: String,
    },
    /// Sends the whole message again, with more text in a block.
    Grow {
        entry: usize,
        block: usize,
        text: String,
    },
    Replace {
        entry: usize,
        text: String,
    },
    Remark {
        session: usize,
    },
    /// A subscriber comes in with a snapshot.
    Enter {
        session: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let text = "[a-zé\"\\\\\n🌳]{1,6}";
    let step = prop_oneof![
        1 => (0..2_usize).prop_map(|session| Step::Append { session }),
        8 => (0..8_usize, 0..2_usize, text).prop_map(|(entry, block, text)| Step::Extend { entry, block, text }),
        3 => (0..8_usize, 0..2_usize, text).prop_map(|(entry, block, text)| Step::Grow { entry, block, text }),
        1 => (0..8_usize, text).prop_map(|(entry, text)| Step::Replace { entry, text }),
        1 => (0..2_usize).prop_map(|session| Step::Remark { session }),
        1 => (0..2_usize).prop_map(|session| Step::Enter { session }),
    ];
    // A run of one kind of step is what streaming looks like.
    proptest::collection::vec((step, 1..6_usize), 5..20)
        .prop_map(|runs| runs.into_iter().flat_map(|(step, times)| vec![step; times]).collect())
}

fn blocks(first: &str, second: &str) -> Value {
    json!([{"type": "thinking", "text": first}, {"type": "text", "text": second}])
}

/// Does the steps; gives the subscribers that came in on the way.
fn act(server: &Server, steps: &[Step]) -> Vec<Stream> {
    let mut entries: Vec<(usize, String, [String; 2])> = Vec::new();
    let mut came_in = Vec::new();
    for step in steps {
        let count = entries.len();
        match step {
            Step::Append { session } => {
                let message = json!({"role": "assistant", "content": blocks("", ""), "timestamp": 2, "model": "m",
                    "provider": "p", "stop_reason": "end"});
                let id = server.call("append", json!({"session_id": format!("s{session}"), "message": message}));
                entries.push((*session, id["entry_id"].as_str().unwrap().to_owned(), Default::default()));
            }
            Step::Remark { session } => {
                server.append(&format!("s{session}"), "by the way");
            }
            Step::Enter { session } => {
                came_in.push(server.open(&format!("/v1/events?session_id=s{session}&snapshot=1&deltas=1")));
            }
            _ if entries.is_empty() => {}
            Step::Extend { entry, block, text } => {
                let (session, id, texts) = &mut entries[entry % count];
                texts[*block].push_str(text);
                server.call(
                    "extend-message",
                    json!({"session_id": format!("s{session}"), "entry_id": id,
                    "block": block, "text": text}),
                );
            }
            Step::Grow { entry, block, text } => {
                let (session, id, texts) = &mut entries[entry % count];
                texts[*block].push_str(text);
                server.call(
                    "update-message",
                    json!({"session_id": format!("s{session}"), "entry_id": id,
                    "content": blocks(&texts[0], &texts[1])}),
                );
            }
            Step::Replace { entry, text } => {
                let (session, id, texts) = &mut entries[entry % count];
                *texts = [text.clone(), String::new()];
                server.call(
                    "update-message",
                    json!({"session_id": format!("s{session}"), "entry_id": id,
                    "content": blocks(text, "")}),
                );
            }
        }
    }
    came_in
}

#[test]
fn an_addition_to_a_message_of_a_later_session_with_the_same_id_is_not_sent_alone() {
    let server = Server::new();
    let said = |text: &str| json!({"session_id": "s", "entry_id": "a", "message": assistant(text)});
    let mut stream = server.open("/v1/events?deltas=1&metadata=%7B%22o%22%3A1%7D");
    server.call("ensure", json!({"session_id": "s", "metadata": {"o": 1}}));
    server.call("append", said("old"));
    server.call("delete", json!({"session_id": "s"}));
    server.call("ensure", json!({"session_id": "s"}));
    server.call("append", said("new"));
    server.call("set-meta", json!({"session_id": "s", "metadata": {"o": 1}}));
    server.call("extend-message", json!({"session_id": "s", "entry_id": "a", "text": " more"}));
    let frames = stream.until("session::message-updated");
    assert_eq!(frames.last().unwrap().json()["message"]["content"][0]["text"], "new more");
}

#[test]
fn a_client_that_applies_deltas_has_the_messages_of_one_that_is_sent_them_whole() {
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() });
    let deltas = Cell::new(0);
    let cuts = proptest::collection::vec(0..40_usize, 1..6);
    runner
        .run(&(steps(), cuts), |(steps, cuts)| {
            deltas.set(deltas.get() + check(&steps, &cuts));
            Ok(())
        })
        .unwrap();
    assert!(deltas.get() > 100, "only {} deltas were seen", deltas.get());
}

/// Compares every message at every revision that a subscriber with deltas knows with what another was sent whole.
fn check(steps: &[Step], cuts: &[usize]) -> usize {
    let server = Server::new();
    server.session("s0");
    server.session("s1");
    let mut whole = server.open("/v1/events");
    let mut live = server.open("/v1/events?deltas=1");
    let mut updates_only = server.open("/v1/events?deltas=1&type=session::message-updated&type=session::created");
    let mut came_in = act(&server, steps);
    server.session("the end");
    let mut sent: HashMap<((String, String), u64), Value> = HashMap::new();
    let frames = whole.until("session::created");
    let last = frames.last().unwrap().position().to_owned();
    for frame in &frames {
        let data = frame.json();
        if let Some(message) = data.get("message") {
            let key =
                (data["session_id"].as_str().unwrap().to_owned(), data["entry_id"].as_str().unwrap().to_owned());
            sent.insert((key, data["revision"].as_u64().unwrap_or(0)), message.clone());
        }
    }
    let verify = |screen: &mut Screen, frame: &Frame| {
        if let Some((key, revision)) = screen.take(&frame.event, &frame.json()) {
            // The parts of a snapshot carry the newest message first, and then its revision.
            if frame.id.is_some() || frame.event == "session::message-updated" {
                assert_eq!(screen.messages[&key], (revision, sent[&(key.clone(), revision)].clone()), "{key:?}");
            }
        }
    };
    let mut deltas = 0;
    for stream in [&mut live, &mut updates_only] {
        let mut screen = Screen::default();
        stream.up_to(&last).iter().for_each(|frame| verify(&mut screen, frame));
        deltas += screen.deltas;
    }
    // One that comes and goes keeps what it has on its screen.
    let mut screen = Screen::default();
    let mut at = "0".to_owned();
    for cut in cuts.iter().chain([&usize::MAX]) {
        let mut stream = Stream::open(server.at, "/v1/events?deltas=1", &[("Last-Event-ID", &at)]).unwrap();
        for _ in 0..*cut {
            if at == last {
                break;
            }
            let frame = stream.next().unwrap();
            verify(&mut screen, &frame);
            frame.position().clone_into(&mut at);
        }
    }
    deltas += screen.deltas;
    let newest = |session: &str| -> Vec<((String, String), (u64, Value))> {
        let mut newest: HashMap<(String, String), (u64, Value)> = HashMap::new();
        for ((key, revision), message) in &sent {
            if key.0.starts_with(session) && newest.get(key).is_none_or(|(known, _)| known < revision) {
                newest.insert(key.clone(), (*revision, message.clone()));
            }
        }
        newest.into_iter().collect()
    };
    assert_eq!(screen.messages, newest("s").into_iter().collect());
    for stream in &mut came_in {
        let mut screen = Screen::default();
        let snapshot = stream.until("banyan::snapshot-end");
        let session = snapshot[0].json()["session_id"].as_str().unwrap().to_owned();
        snapshot.iter().for_each(|frame| verify(&mut screen, frame));
        server.call("set-status", json!({"session_id": session, "status": "working"}));
        server.call("set-status", json!({"session_id": session, "status": "done"}));
        for frame in stream.until("session::status-changed") {
            verify(&mut screen, &frame);
        }
        assert_eq!(screen.messages, newest(&session).into_iter().collect(), "from a snapshot");
        deltas += screen.deltas;
    }
    deltas
}

#[test]
fn a_token_costs_little_on_the_wire() {
    const UPDATES: usize = 2000;
    const TEXT: usize = 16 << 10;
    let options = banyan::Options { durability: banyan::Durability::Buffered, ..banyan::Options::default() };
    let server = Server::with(options, settings());
    server.session("s");
    let entry = server.append("s", "");
    let mut stream = server.open("/v1/sessions/s/events?deltas=1");
    let text = "The quick brown fox said \"well\" and went on.\n".repeat(TEXT / 44 + 1);
    let text = &text[..TEXT];
    let mut screen = Screen::default();
    let mut frames = 0;
    let mut sent = 0;
    for n in 0..UPDATES {
        let upto = TEXT * (n + 1) / UPDATES;
        server.extend("s", &entry, &text[sent..upto]);
        sent = upto;
        // Read one by one, so that nothing is saved by joining.
        let frame = stream.next().unwrap();
        screen.take(&frame.event, &frame.json());
        frames += 1;
    }
    let (revision, message) = screen.messages.values().next().unwrap();
    assert_eq!((*revision, &message["content"][0]["text"]), (UPDATES as u64, &json!(text)));
    assert_eq!(frames, UPDATES);
    let times = stream.wire as f64 / TEXT as f64;
    println!("{UPDATES} updates to {TEXT} bytes: {} bytes on the wire, {times:.2} times the text", stream.wire);
    assert!(stream.wire <= 12 * TEXT, "{} bytes, {times:.2} times the text", stream.wire);
}

#[test]
fn additions_that_are_ready_together_are_sent_together() {
    let server = Server::new();
    server.session("s");
    let entry = server.append("s", "");
    let start = server.open("/v1/sessions/s/events?after=0").take(2)[1].position().to_owned();
    for n in 0..50 {
        server.extend("s", &entry, &format!("{n} "));
    }
    server.call("set-status", json!({"session_id": "s", "status": "done"}));
    let path = format!("/v1/sessions/s/events?deltas=1&after={start}");
    let frames = server.open(&path).until("session::status-changed");
    assert_eq!(types(&frames), ["message-updated", "banyan::delta", "status-changed"]);
    let text: String = (1..50).map(|n| format!("{n} ")).collect();
    assert_eq!(
        frames[1].json(),
        json!({"session_id": "s", "entry_id": entry, "block": 0, "revision": 50, "text": text})
    );
    let all = server.open(&format!("/v1/sessions/s/events?after={start}")).take(50);
    assert_eq!(frames[1].position(), all[49].position(), "it resumes after the last of them");
}
