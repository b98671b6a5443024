//! `banyan mcp`, message by message, and judged by a client that others wrote.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Place, assistant};
use serde_json::{Value, json};

fn filled() -> Place {
    let place = Place::new();
    place.session("alpha", "On trees", &["Plant a banyan", "Water it"]);
    let long = assistant(json!([{"type": "text", "text": "leaf ".repeat(2000)}]));
    place.call("session::append", &json!({"session_id": "alpha", "entry_id": "long", "message": long}));
    place
}

/// What is answered to these lines.
fn answers(place: &Place, lines: &[String]) -> Vec<Value> {
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.feed(&["mcp"], &input).ok().json_lines()
}

fn request(id: u64, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// The text of a tool's answer, and whether it is an error.
fn told(answer: &Value) -> (String, bool) {
    let result = &answer["result"];
    (result["content"][0]["text"].as_str().unwrap().to_owned(), result["isError"].as_bool().unwrap())
}

fn tool(place: &Place, name: &str, arguments: Value) -> (String, bool) {
    told(&answers(place, &[request(1, "tools/call", json!({"name": name, "arguments": arguments}))])[0])
}

#[test]
fn the_protocol_is_spoken() {
    let place = filled();
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    let hello = |version: &str| json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let answers = answers(
        &place,
        &[
            request(1, "initialize", hello("2025-06-18")),
            notification,
            request(2, "ping", json!({})),
            request(3, "tools/list", json!({})),
            request(4, "initialize", hello("1999-01-01")),
        ],
    );
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [1, 2, 3, 4]);
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(answers[0]["result"]["capabilities"], json!({"tools": {}}));
    assert_eq!(answers[1]["result"], json!({}));
    let tools = answers[2]["result"]["tools"].as_array().unwrap();
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["search_sessions", "read_session", "list_sessions"]);
    assert_eq!(answers[3]["result"]["protocolVersion"], "2025-06-18");
}

#[test]
fn what_is_wrong_with_a_message_is_said_by_its_number() {
    let place = filled();
    let wrong: [(&str, i64); 7] = [
        ("{", -32_700),
        ("[]", -32_600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#, -32_601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"burn"}}"#, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_sessions"}}"#, -32_602),
    ];
    let lines: Vec<String> = wrong.iter().map(|(line, _)| (*line).to_owned()).collect();
    let codes: Vec<Value> = answers(&place, &lines).iter().map(|answer| answer["error"]["code"].clone()).collect();
    assert_eq!(codes, wrong.map(|(_, code)| json!(code)));
    // Neither a notification nor an answer is answered.
    let silent = [r#"{"jsonrpc":"2.0","method":"nonsense"}"#, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, ""];
    assert_eq!(answers(&place, &silent.map(str::to_owned)), [] as [Value; 0]);
}

#[test]
fn sessions_are_searched_read_and_listed_in_short_answers() {
    let place = filled();
    let (found, failed) = tool(&place, "search_sessions", json!({"query": "banyan"}));
    assert!(!failed && found.contains("On trees") && found.contains("Plant a **banyan**"), "{found}");
    assert!(found.contains("session_id=alpha entry_id="), "{found}");
    let (read, failed) =
        tool(&place, "read_session", json!({"session_id": "alpha", "entry_id": "long", "before": 1}));
    assert!(!failed && read.contains("Water it") && read.contains("more characters"), "{read}");
    assert!(!read.contains("Plant") && read.len() < 4000, "{read}");
    let (whole, _) = tool(
        &place,
        "read_session",
        json!({"session_id": "alpha", "entry_id": "long", "max_chars": 15_000, "before": 0}),
    );
    assert!(!whole.contains("more characters"), "{whole}");
    let (listed, failed) = tool(&place, "list_sessions", json!({}));
    assert!(!failed && listed.contains("On trees (3 messages"), "{listed}");
    let (nothing, failed) = tool(&place, "search_sessions", json!({"query": "nowhere"}));
    assert!(!failed && nothing.starts_with("Nothing was found"), "{nothing}");
    let (refused, failed) = tool(&place, "read_session", json!({"session_id": "nobody"}));
    assert!(failed && refused.contains("nobody"), "{refused}");
}

/// The client of the protocol's own Python package.
#[test]
fn the_python_client_is_served() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "skipped: the_python_client_is_served: {why}");
            return;
        }
    };
    let place = filled();
    let output = Command::new(python)
        .arg(client("mcp_client.py"))
        .args([env!("CARGO_BIN_EXE_banyan"), "mcp", "--data"])
        .arg(place.dir())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let seen: Value = serde_json::from_str(out.trim()).unwrap_or_else(|_| panic!("{out}{err}"));
    assert_eq!(seen["server"], "banyan");
    assert_eq!(seen["tools"], json!(["list_sessions", "read_session", "search_sessions"]));
    assert!(seen["found"].as_str().unwrap().contains("session_id=alpha"), "{seen}");
    assert!(seen["listed"].as_str().unwrap().contains("On trees"), "{seen}");
    assert_eq!(seen["unknown_tool_is_an_error"], true);
}

fn client(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients").join(name)
}

/// A Python that has the package.
fn python() -> Result<PathBuf, String> {
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients/mcp");
    let python = venv.join("bin/python");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    }
    run(Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--requirement"])
        .arg(client("mcp-requirements.txt")))?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
