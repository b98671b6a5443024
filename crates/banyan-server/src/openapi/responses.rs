//! What an answer can be.

use serde_json::{Map, Value, json};

use super::Protection;

/// Answers by status.
pub(super) struct Responses(Map<String, Value>);

impl Responses {
    pub(super) fn new() -> Self {
        Self(Map::new())
    }

    pub(super) fn json(self, status: u16, description: &str, schema: &Value) -> Self {
        self.of_type(status, description, "application/json", json!({"schema": schema}))
    }

    pub(super) fn of_type(mut self, status: u16, description: &str, kind: &str, content: Value) -> Self {
        self.0.insert(status.to_string(), json!({"description": description, "content": {kind: content}}));
        self
    }

    pub(super) fn empty(mut self, status: u16, description: &str) -> Self {
        self.0.insert(status.to_string(), json!({"description": description}));
        self
    }

    pub(super) fn problem(self, status: u16, description: &str) -> Self {
        self.of_type(status, description, "application/problem+json", problem())
    }

    /// Adds a header that an answer always has.
    pub(super) fn header(mut self, status: u16, name: &str, description: &str) -> Self {
        if let Some(response) = self.0.get_mut(&status.to_string()) {
            response["headers"][name] =
                json!({"description": description, "required": true, "schema": {"type": "string"}});
        }
        self
    }

    /// Adds a header that an answer can have.
    pub(super) fn optional_header(mut self, status: u16, name: &str, description: &str) -> Self {
        if let Some(response) = self.0.get_mut(&status.to_string()) {
            response["headers"][name] = json!({"description": description, "schema": {"type": "string"}});
        }
        self
    }

    /// Adds what every address can answer.
    pub(super) fn finish(self, protection: Protection) -> Value {
        let mut all = match protection {
            Protection::Open => self,
            Protection::Keyed => self
                .problem(401, "There is no key, or it is not known.")
                .header(401, "WWW-Authenticate", "How to send a key.")
                .problem(403, "The key may not do this.")
                .problem(429, "The key has made too many requests.")
                .optional_header(429, "Retry-After", "After how many seconds to try again."),
        };
        let default = json!({
            "description": "Something else went wrong: too much at once, a failure of the store, a request from another site.",
            "content": {"application/problem+json": problem()},
        });
        all.0.insert("default".to_owned(), default);
        Value::Object(all.0)
    }
}

fn problem() -> Value {
    json!({"schema": {"$ref": "#/components/schemas/Problem"}})
}
