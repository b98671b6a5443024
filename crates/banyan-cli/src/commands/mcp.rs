//! `banyan mcp`: search and reading for agents, over the Model Context Protocol.
//!
//! One JSON-RPC message a line, on standard input and output (revision 2025-06-18, "stdio"). The tools are in `mcp_tools`.

use std::io::{self, BufRead, Write};

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::mcp_tools;
use crate::args::Globals;
use crate::client::{Access, Client, with_client};
use crate::failure::Failure;
use crate::screen::Screen;

/// Let agents search and read sessions (MCP on standard input and output).
///
/// An agent starts this command itself. While it runs it owns the data directory; with --url it asks the server that does.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpArgs {}

const EXAMPLES: &str = r#"Examples:
  banyan mcp --url http://127.0.0.1:7420
  claude mcp add banyan -- banyan mcp --url http://127.0.0.1:7420
  codex mcp add banyan -- banyan mcp --data ~/sessions"#;

/// The revisions that are spoken, newest first.
const REVISIONS: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];
/// The longest message that is read, in bytes.
const LONGEST: u64 = 4 << 20;

/// The protocol's numbers for what is wrong with a message.
const NOT_JSON: i64 = -32_700;
const NOT_A_REQUEST: i64 = -32_600;
const UNKNOWN_METHOD: i64 = -32_601;
pub(super) const WRONG_PARAMS: i64 = -32_602;

/// What is wrong with a message.
pub(super) struct Wrong {
    pub(super) code: i64,
    pub(super) message: String,
}

#[derive(Deserialize)]
struct Message {
    jsonrpc: Option<String>,
    /// Absent in a notification, which is not answered.
    #[serde(default, deserialize_with = "given")]
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
}

/// Tells `null` from nothing.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

pub(crate) fn run(_: &McpArgs, globals: &Globals, _: &mut Screen) -> Result<(), Failure> {
    with_client(globals, Access::Existing, |client| {
        let (mut lines, mut out) = (io::stdin().lock(), io::stdout().lock());
        while let Some(line) = next_line(&mut lines)? {
            let answer = match line {
                Ok(line) => answer(client, &line),
                Err(wrong) => Some(refusal(&Value::Null, &wrong)),
            };
            if let Some(answer) = answer {
                writeln!(out, "{answer}")?;
                out.flush()?;
            }
        }
        Ok(())
    })
}

/// The next line that says something; none at the end. One that is too long is read past.
fn next_line(input: &mut impl BufRead) -> Result<Option<Result<Vec<u8>, Wrong>>, Failure> {
    loop {
        let mut line = Vec::new();
        let read = io::Read::take(&mut *input, LONGEST).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(None);
        }
        if read as u64 == LONGEST && line.last() != Some(&b'\n') {
            input.skip_until(b'\n')?;
            let message = format!("the message has more than {LONGEST} bytes");
            return Ok(Some(Err(Wrong { code: NOT_A_REQUEST, message })));
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(Ok(line)));
        }
    }
}

/// What is said to a message, if anything.
fn answer(client: &dyn Client, line: &[u8]) -> Option<Value> {
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => {
            let message = format!("the message is not JSON: {error}");
            return Some(refusal(&Value::Null, &Wrong { code: NOT_JSON, message }));
        }
    };
    let id = value.get("id").cloned();
    let message: Option<Message> = serde_json::from_value(value).ok();
    let Some(Message { jsonrpc: Some(version), id: known, method, params }) = message else {
        return Some(not_a_request(id));
    };
    let Some(method) = method.filter(|_| version == "2.0") else {
        // An answer to something that was never asked is passed over.
        return (version != "2.0" || known.is_none()).then(|| not_a_request(id));
    };
    // Notifications are not answered, whatever they say.
    let id = known?;
    if !(id.is_string() || id.is_number()) {
        return Some(not_a_request(None));
    }
    let outcome = match method.as_str() {
        "initialize" => Ok(initialize(&params)),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({"tools": mcp_tools::described()})),
        "tools/call" => mcp_tools::call(client, &params),
        _ => Err(Wrong { code: UNKNOWN_METHOD, message: format!("there is no method `{method}`") }),
    };
    Some(match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(wrong) => refusal(&id, &wrong),
    })
}

fn initialize(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let revision = REVISIONS.into_iter().find(|known| *known == asked).unwrap_or(REVISIONS[0]);
    json!({
        "protocolVersion": revision,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "banyan", "title": "Banyan sessions", "version": env!("CARGO_PKG_VERSION")},
        "instructions": "Sessions of agents: what was asked, done and answered before. Search first, then read around a hit.",
    })
}

fn not_a_request(id: Option<Value>) -> Value {
    let message = "the message is not a JSON-RPC 2.0 request".to_owned();
    let id = id.filter(|id| id.is_string() || id.is_number()).unwrap_or_default();
    refusal(&id, &Wrong { code: NOT_A_REQUEST, message })
}

fn refusal(id: &Value, wrong: &Wrong) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": wrong.code, "message": wrong.message}})
}
