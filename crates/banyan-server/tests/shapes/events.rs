//! AG-UI's events: a snapshot, what happens, and coming back.

use serde_json::{Value, json};

use super::sample::{assistant, everything, text};
use crate::front_end::*;
use crate::listening::*;

const PATH: &str = "/v1/sessions/s/events?format=ag-ui";

/// What a front end has heard.
#[derive(Default)]
struct Heard {
    events: Vec<Value>,
    last_id: Option<String>,
}

impl Heard {
    /// Hears events up to and with one of a type.
    fn until(&mut self, stream: &mut Stream, kind: &str) -> Vec<String> {
        let begun = self.events.len();
        while self.events.len() == begun || self.events.last().unwrap()["type"] != kind {
            let frame = stream.next().unwrap_or_else(|| panic!("{kind} should come"));
            assert_eq!(frame.event, "", "AG-UI has no names of events");
            self.last_id = frame.id.clone().or(self.last_id.take());
            self.events.push(frame.json());
        }
        self.events[begun..].iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    fn back(&self, server: &Server) -> Stream {
        Stream::open(server.at, PATH, &[("Last-Event-ID", self.last_id.as_ref().unwrap())]).unwrap()
    }
}

#[test]
fn given_a_session_when_it_is_followed_then_a_snapshot_comes_first_and_equals_the_messages() {
    let server = Server::new();
    everything(&server);
    let mut heard = Heard::default();
    let mut stream = server.open(PATH);
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    assert_eq!(heard.until(&mut stream, "RUN_FINISHED"), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
    assert_eq!(heard.events[1]["messages"], server.get("/v1/sessions/s/messages?format=ag-ui").json());
    assert!(!heard.events[1].to_string().contains("secret"));
}

#[test]
fn given_a_run_when_a_front_end_leaves_in_the_middle_then_it_goes_on_within_the_same_run() {
    let server = Server::new();
    server.session("s");
    server.set_status("s", "working");
    server.say("s", user("Hi", 1));
    let mut heard = Heard::default();
    let mut stream = server.open(PATH);
    heard.until(&mut stream, "MESSAGES_SNAPSHOT");
    let entry = server.say("s", assistant(json!([text("")]), "end"));
    server.extend("s", &entry, "one ");
    assert_eq!(heard.until(&mut stream, "TEXT_MESSAGE_CONTENT"), ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"]);
    drop(stream);

    // Nothing happened: it goes on as if it had not been away. An id alone says so.
    let mut stream = heard.back(&server);
    while !String::from_utf8(stream.some_bytes()).unwrap().contains("id: ") {}
    server.extend("s", &entry, "two");
    assert_eq!(heard.until(&mut stream, "TEXT_MESSAGE_CONTENT"), ["TEXT_MESSAGE_CONTENT"]);
    drop(stream);

    // Something did: what was open is ended, and all is told again, in the same run.
    server.extend("s", &entry, " three");
    let mut stream = heard.back(&server);
    assert_eq!(heard.until(&mut stream, "MESSAGES_SNAPSHOT"), ["TEXT_MESSAGE_END", "MESSAGES_SNAPSHOT"]);
    assert_eq!(heard.events.last().unwrap()["messages"][1]["content"], "one two three");
    server.set_status("s", "done");
    assert_eq!(heard.until(&mut stream, "RUN_FINISHED"), ["RUN_FINISHED"]);
}

#[test]
fn given_another_branch_or_a_change_of_the_past_when_it_happens_then_all_is_told_again() {
    let server = Server::new();
    talk(&server, "s", 2);
    let tree = server.call("tree", json!({"session_id": "s"}));
    let entry = |at: usize| tree["entries"][at]["entry_id"].clone();
    let mut heard = Heard::default();
    let mut stream = server.open(PATH);
    heard.until(&mut stream, "RUN_FINISHED");

    server.call("set-active-leaf", json!({"session_id": "s", "entry_id": entry(1)}));
    assert_eq!(heard.until(&mut stream, "RUN_FINISHED"), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
    server.extend("s", entry(1).as_str().unwrap(), "!");
    heard.until(&mut stream, "RUN_FINISHED");
    server.call(
        "update-message",
        json!({"session_id": "s", "entry_id": entry(0), "content": [text("asked otherwise")]}),
    );
    heard.until(&mut stream, "MESSAGES_SNAPSHOT");
    let messages = server.get("/v1/sessions/s/messages?format=ag-ui").json();
    assert_eq!(heard.events.last().unwrap()["messages"], messages);
    assert_eq!(messages[1]["content"], "answer 0!");
    assert_eq!(messages.as_array().unwrap().len(), 2);
}

#[test]
fn given_a_session_that_is_deleted_when_it_is_followed_then_the_run_ends_and_so_does_the_stream() {
    let server = Server::new();
    talk(&server, "s", 1);
    server.set_status("s", "working");
    let mut heard = Heard::default();
    let mut stream = server.open(PATH);
    heard.until(&mut stream, "MESSAGES_SNAPSHOT");
    server.call("delete", json!({"session_id": "s"}));
    heard.until(&mut stream, "RUN_ERROR");
    assert_eq!(heard.events.last().unwrap()["message"], "The session was deleted.");
    assert_eq!(stream.next(), None);
}
