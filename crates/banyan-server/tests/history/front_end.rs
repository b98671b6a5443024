//! A front end that asks for histories, and shows what a stream of one says by the rules of `docs/history.md`.

use serde_json::{Value, json};
use ureq::Agent;

use crate::listening::*;

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Status and code of a refusal.
    pub(crate) fn refused(&self) -> (u16, String) {
        (self.status, self.json()["code"].as_str().unwrap_or_default().to_owned())
    }

    /// Where a `Link` leads.
    pub(crate) fn link(&self, rel: &str) -> Option<String> {
        let links = self.header("link")?;
        let end = format!(">; rel=\"{rel}\"");
        links.split(", ").find_map(|link| Some(link.strip_prefix('<')?.strip_suffix(&end)?.to_owned()))
    }
}

impl Server {
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let agent: Agent = Agent::config_builder().http_status_as_error(false).build().into();
        let mut request = ureq::http::Request::builder().method(method).uri(format!("http://{}{path}", self.at));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut answer = agent.run(request.body(body.to_owned()).unwrap()).unwrap();
        let text = |value: &ureq::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        Answer {
            status: answer.status().as_u16(),
            headers: answer.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
            text: answer.body_mut().with_config().limit(1 << 30).read_to_string().unwrap(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[("content-type", "application/json")], &body.to_string())
    }

    /// The history of a session, whole.
    pub(crate) fn history(&self, session: &str) -> Vec<Value> {
        let answer = self.get(&format!("/sessions/{session}/history"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json().as_array().unwrap().clone()
    }

    pub(crate) fn say(&self, session: &str, message: Value) -> String {
        let appended = self.call("append", json!({"session_id": session, "message": message}));
        appended["entry_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn set_status(&self, session: &str, status: &str) {
        self.call("set-status", json!({"session_id": session, "status": status}));
    }
}

pub(crate) fn user(text: &str, at: i64) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": at})
}

pub(crate) fn answer(text: &str, at: i64) -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": text}], "timestamp": at, "model": "m",
        "provider": "p", "stop_reason": "end"})
}

/// Questions and answers, so many of each.
pub(crate) fn talk(server: &Server, session: &str, turns: i64) {
    server.session(session);
    for turn in 0..turns {
        server.say(session, user(&format!("question {turn}"), turn * 1000));
        server.say(session, answer(&format!("answer {turn}"), turn * 1000 + 500));
    }
}

/// The text of each message.
pub(crate) fn texts(messages: &[Value]) -> Vec<&str> {
    messages
        .iter()
        .map(|message| message["text_content"].as_str().or(message["response_text_main"].as_str()).unwrap_or(""))
        .collect()
}

/// What is on a front end's screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Screen {
    pub(crate) messages: Vec<Value>,
    pub(crate) ready: bool,
    pub(crate) deleted: bool,
    pub(crate) last_id: Option<String>,
    pub(crate) resets: usize,
    pub(crate) deltas: usize,
}

impl Screen {
    /// Shows what a frame says.
    pub(crate) fn show(&mut self, frame: &Frame) {
        if let Some(id) = &frame.id {
            self.last_id = Some(id.clone());
        }
        let data = frame.json();
        match frame.event.as_str() {
            "history::message" => {
                let same = |known: &&mut Value| {
                    (&known["interaction_id"], &known["role"]) == (&data["interaction_id"], &data["role"])
                };
                match self.messages.iter_mut().find(same) {
                    Some(known) => *known = data,
                    None => self.messages.push(data),
                }
            }
            "history::delta" => self.grow(&data),
            "history::reset" => {
                self.messages.clear();
                self.ready = false;
                self.resets += 1;
            }
            "history::ready" => self.ready = true,
            "history::deleted" => self.deleted = true,
            other => panic!("{other}: {data}"),
        }
    }

    fn grow(&mut self, delta: &Value) {
        self.deltas += 1;
        let its = |known: &&mut Value| {
            (&known["interaction_id"], &known["role"]) == (&delta["interaction_id"], &delta["role"])
        };
        let message = self.messages.iter_mut().find(its).expect("a message to add to");
        let text = delta["text"].as_str().unwrap();
        let at = delta["part"].as_u64().unwrap() as usize;
        let parts = message["parts"].as_array().unwrap();
        if parts[at]["type"] == "activity" {
            let activities = parts[..at].iter().filter(|part| part["type"] == "activity").count();
            add(&mut message["parts"][at]["content"], text);
            add(&mut message["activity_parts"][activities]["content"], text);
        } else {
            add(&mut message["parts"][at]["text"], text);
        }
        if delta["main"] == true {
            add(&mut message["response_text_main"], text);
        }
    }

    /// Shows what comes until something is so.
    pub(crate) fn until(&mut self, stream: &mut Stream, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            let frame = stream.next().unwrap_or_else(|| panic!("more should come after {self:?}"));
            self.show(&frame);
        }
    }

    /// Shows what comes until the past is told.
    pub(crate) fn until_ready(&mut self, stream: &mut Stream) {
        self.ready = false;
        self.until(stream, |screen| screen.ready);
    }

    /// Comes back to a stream.
    pub(crate) fn come_back(&mut self, server: &Server, path: &str) -> Stream {
        let last = self.last_id.clone().unwrap();
        let mut stream = Stream::open(server.at, path, &[("Last-Event-ID", &last)]).unwrap();
        self.until_ready(&mut stream);
        stream
    }
}

fn add(value: &mut Value, text: &str) {
    *value = json!(format!("{}{text}", value.as_str().unwrap()));
}
