//! A client that says little: a method, an address, a body.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of this")]

use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::{Method, Request};

use crate::server::Server;

/// A client of a server of its own.
pub struct Client {
    pub server: Server,
    agent: Agent,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub bytes: Vec<u8>,
}

impl Client {
    pub fn new() -> Self {
        Self::of(Server::start())
    }

    pub fn of(server: Server) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .allow_non_standard_methods(true)
            .build();
        Self { server, agent: config.into() }
    }

    pub fn get(&self, address: &str) -> Answer {
        self.send("GET", address, &[], b"")
    }

    pub fn delete(&self, address: &str) -> Answer {
        self.send("DELETE", address, &[], b"")
    }

    pub fn post(&self, address: &str, body: Value) -> Answer {
        self.send("POST", address, &[("content-type", "application/json")], body.to_string().as_bytes())
    }

    pub fn put(&self, address: &str, body: Value) -> Answer {
        self.send("PUT", address, &[("content-type", "application/json")], body.to_string().as_bytes())
    }

    pub fn patch(&self, address: &str, body: Value) -> Answer {
        self.send("PATCH", address, &[("content-type", "application/json")], body.to_string().as_bytes())
    }

    /// Sends a request as it is.
    pub fn send(&self, method: &str, address: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = Request::builder().method(method).uri(format!("{}{address}", self.server.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut response = self.agent.run(request.body(body.to_vec()).unwrap()).unwrap();
        let text = |value: &ureq::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = response.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        let bytes = response.body_mut().with_config().limit(1 << 30).read_to_vec().unwrap();
        Answer { status: response.status().as_u16(), headers, bytes }
    }

    /// A new session's id.
    pub fn session(&self) -> String {
        let made = self.post("/v1/sessions", json!({}));
        made.json()["session_id"].as_str().unwrap().to_owned()
    }

    /// A user says something; the entry's id.
    pub fn say(&self, session: &str, said: &str) -> String {
        let made = self.post(&format!("/v1/sessions/{session}/messages"), json!({"message": user(said)}));
        assert_eq!(made.status, 201, "{made:?}");
        made.json()["entry_id"].as_str().unwrap().to_owned()
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body of an answer that is JSON.
    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.bytes).unwrap()
    }

    /// The status and code of a refusal, whose document must be complete.
    pub fn refused(&self) -> (u16, String) {
        let problem = self.problem();
        (self.status, problem["code"].as_str().unwrap().to_owned())
    }

    /// What a refusal says to the person who reads it.
    pub fn detail(&self) -> String {
        self.problem()["detail"].as_str().unwrap().to_owned()
    }

    fn problem(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem: Value = serde_json::from_slice(&self.bytes).unwrap();
        assert_eq!(problem["status"], self.status);
        assert_eq!(problem["type"], format!("urn:banyan:problem:{}", problem["code"].as_str().unwrap()));
        assert!(problem["title"].is_string());
        problem
    }
}

pub fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

pub fn user(said: &str) -> Value {
    json!({"role": "user", "content": text(said), "timestamp": 1})
}
