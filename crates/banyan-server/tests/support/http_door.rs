//! A store as its callers see it, reached over HTTP: calls by POST, events by SSE.
//!
//! A stream does not say that it has nothing more to tell. What it was told by now is known for certain when it ends, and it
//! ends after the frames that it has when the server stops. So that is how a listener is asked: the server is stopped,
//! every stream is read to its end, and all are opened again on a server that goes on with the same store.

#![allow(unreachable_pub, reason = "each test program uses a part of this")]

use std::cell::RefCell;
use std::io::Read;
use std::rc::{Rc, Weak};
use std::time::Duration;

use banyan::model::EventFilter;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use ureq::http::Response;
use ureq::{Agent, Body};

use crate::server::Server;
use crate::support::{Door, Heard, Listener, Refusal, filter};

/// A server and whoever listens to it.
pub struct HttpDoor(Rc<Inner>);

struct Inner {
    server: RefCell<Server>,
    agent: Agent,
    streams: RefCell<Vec<Weak<Stream>>>,
}

impl HttpDoor {
    pub fn new(server: Server) -> Self {
        // Only a test that fails waits for so long.
        let patience = Some(Duration::from_secs(60));
        let agent = Agent::config_builder().http_status_as_error(false).timeout_global(patience).build().into();
        Self(Rc::new(Inner { server: RefCell::new(server), agent, streams: RefCell::default() }))
    }
}

impl Door for HttpDoor {
    fn call_text(&self, function: &str, request: &str) -> Result<Value, Refusal> {
        let address = format!("{}/v1/call/{}", self.0.server.borrow().url, encoded(function));
        let post = self.0.agent.post(address).header("content-type", "application/json");
        let answer = post.send(request).expect("an answer");
        let (status, kind) = (answer.status().as_u16(), content_type(&answer));
        let body = body_of(answer);
        if status == 200 {
            assert_eq!(kind, "application/json");
            return Ok(body);
        }
        Err(refusal(status, &kind, &body))
    }

    fn listen(&self, wanted: &[(&str, Value)]) -> Result<Box<dyn Listener>, Refusal> {
        // A config has its own form, which is checked where configs are taken. Over HTTP a filter is a query.
        let filters = wanted.iter().map(|(event_type, config)| filter(event_type, config));
        let queries = queries(&filters.collect::<Result<Vec<_>, _>>()?);
        let open = |query: String| {
            let reader = self.0.open(&query)?;
            Ok(Rc::new(Stream { query, reader: RefCell::new(reader), heard: RefCell::default() }))
        };
        let streams = queries.into_iter().map(open).collect::<Result<Vec<_>, Refusal>>()?;
        self.0.streams.borrow_mut().extend(streams.iter().map(Rc::downgrade));
        Ok(Box::new(Subscribed { streams, door: Rc::clone(&self.0) }))
    }
}

impl Inner {
    fn open(&self, query: &str) -> Result<Box<dyn Read>, Refusal> {
        let answer =
            self.agent.get(format!("{}/v1/events?{query}", self.server.borrow().url)).call().expect("an answer");
        let (status, kind) = (answer.status().as_u16(), content_type(&answer));
        if status == 200 {
            assert_eq!(kind, "text/event-stream");
            return Ok(Box::new(answer.into_body().into_reader()));
        }
        Err(refusal(status, &kind, &body_of(answer)))
    }

    /// Lets every stream hear all that it is told about calls that have been answered by now.
    fn settle(&self) {
        let streams: Vec<Rc<Stream>> = self.streams.borrow().iter().filter_map(Weak::upgrade).collect();
        self.server.borrow_mut().pause();
        for stream in &streams {
            let mut text = String::new();
            stream.reader.borrow_mut().read_to_string(&mut text).expect("a stream that ends well");
            stream.heard.borrow_mut().extend(frames(&text));
        }
        self.server.borrow_mut().resume();
        for stream in &streams {
            *stream.reader.borrow_mut() = self.open(&stream.query).expect("a stream that was open before");
        }
    }
}

/// An open stream.
struct Stream {
    query: String,
    reader: RefCell<Box<dyn Read>>,
    heard: RefCell<Vec<Heard>>,
}

/// The streams of one listener: one for each filter that differs from the others.
struct Subscribed {
    streams: Vec<Rc<Stream>>,
    door: Rc<Inner>,
}

impl Listener for Subscribed {
    fn heard(&mut self) -> Vec<Heard> {
        self.door.settle();
        let mut heard: Vec<Heard> = self.streams.iter().flat_map(|stream| stream.heard.take()).collect();
        // Streams are told of the same event at the same position.
        heard.sort_by_key(|heard| heard.position);
        heard.dedup_by_key(|heard| heard.position);
        heard
    }
}

/// The queries that ask for what the filters ask for.
fn queries(filters: &[EventFilter]) -> Vec<String> {
    let mut queries: Vec<(String, String)> = Vec::new();
    for filter in filters {
        let mut narrowed = String::new();
        if let Some(id) = &filter.session_id {
            narrowed.push_str(&format!("&session_id={}", encoded(id.as_str())));
        }
        if let Some(roles) = &filter.roles {
            let roles: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
            narrowed.push_str(&format!("&roles={}", roles.join(",")));
        }
        if let Some(metadata) = &filter.metadata {
            narrowed.push_str(&format!("&metadata={}", encoded(&json!(metadata).to_string())));
        }
        let event_type = format!("&type={}", encoded(filter.event_type.as_str()));
        match queries.iter_mut().find(|(known, _)| *known == narrowed) {
            Some((_, types)) => types.push_str(&event_type),
            None => queries.push((narrowed, event_type)),
        }
    }
    queries.into_iter().map(|(narrowed, types)| format!("{}{narrowed}", types.trim_start_matches('&'))).collect()
}

/// The events in the text of a stream.
fn frames(text: &str) -> Vec<Heard> {
    let field = |frame: &str, name: &str| {
        let line = frame.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|value| value.strip_prefix(' ').unwrap_or(value).to_owned())
    };
    let event = |frame: &str| {
        Some(Heard {
            event_type: field(frame, "event")?,
            position: field(frame, "id")?.parse().expect("a position"),
            payload: serde_json::from_str(&field(frame, "data")?).expect("a payload"),
        })
    };
    text.split("\n\n").filter_map(event).collect()
}

fn refusal(status: u16, kind: &str, problem: &Value) -> Refusal {
    assert_eq!(kind, "application/problem+json", "{problem}");
    assert_eq!(problem["status"], status, "{problem}");
    let text = |field: &str| problem[field].as_str().expect("a text").to_owned();
    Refusal { code: text("code"), message: text("detail") }
}

fn content_type(answer: &Response<Body>) -> String {
    answer.headers()["content-type"].to_str().expect("a content type").to_owned()
}

fn body_of(answer: Response<Body>) -> Value {
    let text = answer.into_body().with_config().limit(1 << 30).read_to_string().expect("a body");
    serde_json::from_str(&text).expect("every answer is JSON")
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
