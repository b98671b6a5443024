//! AG-UI's events: whoever puts them together has the messages of a snapshot, at every step.

use banyan_formats::shapes::{Told, *};
use banyan_model::*;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::given;
use crate::session::*;

/// What a front end has, and the rules that AG-UI's own client checks.
#[derive(Default)]
struct FrontEnd {
    events: Vec<Value>,
    running: bool,
    open: Vec<Value>,
    left: Left,
}

impl FrontEnd {
    fn hear(&mut self, events: Vec<Value>) {
        for event in events {
            let kind = event["type"].as_str().unwrap();
            assert!(self.running || kind == "RUN_STARTED", "{kind} outside of a run");
            match kind {
                "RUN_STARTED" => assert!(!std::mem::replace(&mut self.running, true), "a run within a run"),
                "RUN_FINISHED" | "RUN_ERROR" => {
                    assert_eq!(self.open, Vec::<Value>::new(), "a run ends with texts open");
                    self.running = false;
                }
                "TOOL_CALL_START" => self.open.push(event["toolCallId"].clone()),
                "TOOL_CALL_END" => {
                    assert!(self.open.contains(&event["toolCallId"]));
                    self.open.retain(|id| *id != event["toolCallId"]);
                }
                "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START" => {
                    assert!(!self.open.contains(&event["messageId"]));
                    self.open.push(event["messageId"].clone());
                }
                "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => {
                    assert!(self.open.contains(&event["messageId"]));
                    assert!(!event["delta"].as_str().unwrap().is_empty());
                }
                "TEXT_MESSAGE_END" | "REASONING_MESSAGE_END" => {
                    assert!(self.open.contains(&event["messageId"]));
                    self.open.retain(|id| *id != event["messageId"]);
                }
                _ => {}
            }
            self.left.hear(&event);
            self.events.push(event);
        }
    }

    /// The entries that the events tell.
    fn entries(&self) -> Vec<NewEntry> {
        let read = find("ag-ui").read(&Value::from(self.events.clone()), 7).unwrap();
        read.messages.into_iter().flat_map(|message| message.entries).collect()
    }
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn events(told: Told) -> Vec<Value> {
    match told {
        Told::Events(events) => events,
        Told::Snapshot => panic!("events tell it"),
    }
}

fn item(id: &str, parent: Option<&str>, message: AgentMessage) -> Item {
    Item::new(id.into(), parent.map(EntryId::from), Body::Message(Box::new(message)), None)
}

#[test]
fn given_a_turn_when_it_is_told_live_then_the_events_are_in_the_order_that_the_client_wants() {
    let mut live = Live::new(Session::default().scene());
    let mut all = live.snapshot(&[], SessionStatus::Idle, "0");
    all.extend(live.status_changed(SessionStatus::Working, None, "1"));
    all.extend(events(live.added(item("e_1", None, given::user(vec![given::text("Hi")], 1)), "2")));
    let answer = given::assistant(vec![given::thinking("hm"), given::text("")], StopReason::FunctionCall, 2);
    all.extend(events(live.added(item("e_2", Some("e_1"), answer), "3")));
    all.extend(events(live.grew(&"e_2".into(), 1, "Let", "4")));
    all.extend(events(live.grew(&"e_2".into(), 1, " me", "5")));
    let call = given::call("c", "look", &json!({"q": 1}));
    let whole = vec![given::thinking("hm"), given::text("Let me"), call];
    all.extend(events(live.updated(&"e_2".into(), given::assistant(whole, StopReason::FunctionCall, 2), "6")));
    all.extend(events(
        live.added(item("e_3", Some("e_2"), given::result("c", "look", vec![given::text("42")], 3)), "7"),
    ));
    all.extend(live.status_changed(SessionStatus::Done, None, "8"));
    assert_eq!(
        kinds(&all),
        [
            "RUN_STARTED",
            "MESSAGES_SNAPSHOT",
            "RUN_FINISHED",
            "RUN_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_END",
            "REASONING_END",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT",
            "RUN_FINISHED",
        ]
    );
    let mut front_end = FrontEnd::default();
    front_end.hear(all);
}

#[test]
fn given_a_session_that_fails_or_is_stopped_when_it_is_told_then_the_run_ends_so() {
    let mut live = Live::new(Session::default().scene());
    live.snapshot(&[], SessionStatus::Working, "0");
    let failed = live.status_changed(SessionStatus::Error, Some("no money"), "1");
    assert_eq!(failed, [json!({"type": "RUN_ERROR", "message": "no money"})]);

    live.status_changed(SessionStatus::Working, None, "2");
    let stopped = given::assistant(vec![given::text("So")], StopReason::Aborted, 1);
    events(live.added(item("e_1", None, stopped), "3"));
    let ended = live.status_changed(SessionStatus::Idle, None, "4");
    assert_eq!(kinds(&ended), ["TEXT_MESSAGE_END", "RUN_FINISHED"]);
    assert_eq!(ended[1]["outcome"], json!({"type": "cancelled"}));
}

#[test]
fn given_calls_with_the_same_id_when_they_are_told_then_front_ends_can_tell_them_apart() {
    let mut session = Session::default();
    for (at, question) in ["one", "two"].into_iter().enumerate() {
        session.say(&format!("q{at}"), given::user(vec![given::text(question)], 1));
        let call = given::call("call_0", "f", &json!({"at": at}));
        session.say(&format!("a{at}"), given::assistant(vec![call], StopReason::FunctionCall, 2));
        session.say(&format!("r{at}"), given::result("call_0", "f", vec![given::text(question)], 3));
    }
    let shown = session.shown(find("ag-ui"));
    let ids: Vec<_> = shown.as_array().unwrap().iter().filter(|it| it["role"] == "tool").collect();
    assert_eq!(
        ids.iter().map(|it| it["toolCallId"].as_str().unwrap()).collect::<Vec<_>>(),
        ["call_0", "call_0#2"]
    );
    assert_eq!(shown[4]["toolCalls"][0]["id"], "call_0#2");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn watching_a_session_is_reading_it_at_every_step(
        steps in vec(step(), 0..16),
        growth in vec((any::<bool>(), 0..4_usize, "[a-z]{0,3}"), 1..8),
        statuses in vec(prop::sample::select(vec![SessionStatus::Idle, SessionStatus::Working, SessionStatus::Error]), 1..5),
    ) {
        let full = session_of(&steps.into_iter().filter(|step| !matches!(step, Step::Branch(_))).collect::<Vec<_>>());
        let mut session = Session::default();
        let mut live = Live::new(session.scene());
        let mut front_end = FrontEnd::default();
        let mut status = SessionStatus::Idle;
        front_end.hear(live.snapshot(&[], status, "0"));
        for (at, (id, parent, body, _)) in full.entries.iter().enumerate() {
            let run = at.to_string();
            let next = statuses[at % statuses.len()];
            if next != status {
                front_end.hear(live.status_changed(next, None, &run));
                status = next;
            }
            session.append(id.as_str(), parent.clone(), body.clone(), None);
            let mut told = vec![live.added(session.items().pop().unwrap(), &run)];
            let (whole, block, text) = &growth[at % growth.len()];
            if let Body::Message(message) = &mut session.entries[at].2
                && let Some(grown) = message.content_mut().get_mut(*block)
                && let ContentBlock::Text(TextBlock { text: old }) | ContentBlock::Thinking(ThinkingBlock { text: old, .. }) = grown
            {
                old.push_str(text);
                let message = (**message).clone();
                if told[0] == Told::Snapshot {
                    front_end.hear(live.snapshot(&session.path(), status, &run));
                    told.clear();
                } else {
                    told.push(match whole {
                        true => live.updated(id, message, &run),
                        false => live.grew(id, *block, text, &run),
                    });
                }
            }
            for told in told {
                match told {
                    Told::Events(events) => front_end.hear(events),
                    Told::Snapshot => front_end.hear(live.snapshot(&session.path(), status, &run)),
                }
            }
            // Whoever comes back goes on with what was under way.
            let mut back = Live::new(session.scene()).resumed(&front_end.left);
            back.goes_on(&session.path(), status);
            live = back;
            front_end.hear(live.settle());

            // Wherever in between it left, a snapshot goes on from there.
            for cut in front_end.events.len().saturating_sub(4)..front_end.events.len() {
                let mut half = FrontEnd::default();
                half.hear(front_end.events[..=cut].to_vec());
                let left = serde_json::from_str(&serde_json::to_string(&half.left).unwrap()).unwrap();
                let mut back = Live::new(session.scene()).resumed(&left);
                half.hear(back.snapshot(&session.path(), SessionStatus::Idle, "back"));
                prop_assert!(!half.running && half.open.is_empty());
            }

            let read = find("ag-ui").read(&session.shown(find("ag-ui")), 7).unwrap();
            let expected: Vec<NewEntry> = read.messages.into_iter().flat_map(|message| message.entries).collect();
            prop_assert_eq!(front_end.entries(), expected);
        }
    }
}
