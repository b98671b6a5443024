//! The packages of the front ends judge what the server says: assistant-ui's repository, the AI SDK's validation, AG-UI's client.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::channel;

use serde_json::{Value, json};

use super::sample::{assistant, call, everything, result, text};
use crate::front_end::*;
use crate::listening::*;
use crate::outside::skip;

/// Node.js with a script, among the packages that it judges by; or why there is none.
fn judge(script: &str) -> Result<Command, String> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients/shapes");
    std::fs::create_dir_all(&place).unwrap();
    let from = |file: &str| -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/shapes").join(file)
    };
    // Tests run side by side, and one of them installs.
    static INSTALLED: OnceLock<Result<(), String>> = OnceLock::new();
    let install = || {
        for file in ["package.json", "package-lock.json"] {
            std::fs::copy(from(file), place.join(file)).map_err(|error| error.to_string())?;
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&place).stdin(Stdio::null());
        let output = npm.output().map_err(|error| format!("npm: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("npm ci: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    };
    INSTALLED.get_or_init(install).clone()?;
    std::fs::copy(from(script), place.join(script)).map_err(|error| error.to_string())?;
    let mut command = Command::new("node");
    command.arg(place.join(script));
    Ok(command)
}

/// What a judge prints about an address.
fn judged(mut command: Command, url: &str) -> Value {
    let output = command.arg(url).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&said).unwrap()
}

#[test]
fn assistant_uis_repository_imports_the_tree_and_exports_the_same() {
    let command = match judge("assistant_ui.js") {
        Ok(command) => command,
        Err(why) => return skip("assistant_uis_repository_imports_the_tree_and_exports_the_same", &why),
    };
    let server = Server::new();
    everything(&server);
    let path = "/v1/sessions/s/messages?format=assistant-ui";
    let form = server.get(path).json();
    let said = judged(command, &format!("http://{}{path}", server.at));
    assert_eq!(said["exported"]["headId"], form["headId"]);
    let items = |form: &Value| {
        let mut items: Vec<(String, Value, Value)> = Vec::new();
        for item in form["messages"].as_array().unwrap() {
            let id = item["message"]["id"].as_str().unwrap().to_owned();
            items.push((id, item["parentId"].clone(), item["message"]["content"].clone()));
        }
        items.sort_by(|one, other| one.0.cmp(&other.0));
        items
    };
    assert_eq!(items(&said["exported"]), items(&form));
    let last = said["path"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"], json!([{"type": "text", "text": "Yes."}]));
    assert_eq!(said["branches"][last["id"].as_str().unwrap()].as_array().unwrap().len(), 2);
}

#[test]
fn the_ai_sdk_validates_the_messages_and_makes_a_models_messages_of_them() {
    let command = match judge("ai_sdk.js") {
        Ok(command) => command,
        Err(why) => return skip("the_ai_sdk_validates_the_messages_and_makes_a_models_messages_of_them", &why),
    };
    let server = Server::new();
    everything(&server);
    server.say("s", assistant(json!([call("c9")]), "function_call"));
    let path = "/v1/sessions/s/messages?format=ai-sdk";
    let said = judged(command, &format!("http://{}{path}", server.at));
    assert_eq!(said["valid"], server.get(path).json());
    let roles = ["user", "assistant", "tool", "assistant", "user", "assistant"];
    assert_eq!(said["roles"], json!(roles));
}

/// A judge of events that ends when its session does.
struct Listener(Child);

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets AG-UI's client follow a session with everything in it from before its first run to after its last.
fn followed(mut command: Command, cut_after: Option<usize>) {
    let server = Server::new();
    everything(&server);
    let url = format!("http://{}/v1/sessions/s/events?format=ag-ui", server.at);
    command.arg(url).arg("The end.").args(cut_after.map(|count| count.to_string())).stdout(Stdio::piped());
    let mut listener = Listener(command.spawn().unwrap());
    let (says, said) = channel();
    let out = BufReader::new(listener.0.stdout.take().unwrap());
    std::thread::spawn(move || out.lines().for_each(|line| says.send(line.unwrap()).unwrap()));
    let hear =
        |what: &str| said.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("the client should tell {what}"));
    assert_eq!(hear("that it is ready"), "ready");

    server.say("s", user("Without a status", 1));
    server.say("s", assistant(json!([text("So.")]), "end"));
    server.set_status("s", "working");
    server.say("s", user("With one", 1));
    let entry = server.say("s", assistant(json!([{"type": "thinking", "text": ""}, text("")]), "function_call"));
    let extend = |entry: &str, block: usize, text: &str| {
        server.call("extend-message", json!({"session_id": "s", "entry_id": entry, "block": block, "text": text}));
    };
    for block in [0, 1] {
        (0..20).for_each(|n| extend(&entry, block, &format!("{n} ")));
    }
    let read = server.call("get-message", json!({"session_id": "s", "entry_id": entry}));
    let mut content = read["entry"]["message"]["content"].as_array().unwrap().clone();
    content.extend([call("c1"), call("c1")]);
    server.call("update-message", json!({"session_id": "s", "entry_id": entry, "content": content}));
    server.say("s", result("c1", "1", false));
    server.say("s", result("c1", "2", true));
    server.say("s", json!({"role": "user", "timestamp": 1, "content": [text("See"), {"type": "image", "mime": "image/png", "data": "AAAA"}]}));
    server.call("append", json!({"session_id": "s", "custom": {"custom_type": "state", "data": [1]}}));
    server.call("set-status", json!({"session_id": "s", "status": "error", "reason": "no money"}));
    server.set_status("s", "working");
    let tree = server.call("tree", json!({"session_id": "s"}));
    server.call("set-active-leaf", json!({"session_id": "s", "entry_id": tree["entries"][3]["entry_id"]}));
    let entry = server.say("s", assistant(json!([text("The")]), "end"));
    extend(&entry, 0, " end.");
    server.set_status("s", "done");

    let said: Value = serde_json::from_str(&hear("what it has")).unwrap();
    // Whoever follows sees no difference between results that failed and others, so that is left to snapshots.
    let told = |messages: &Value| -> Vec<Value> {
        let mut messages = messages.as_array().unwrap().clone();
        messages.iter_mut().for_each(|message| {
            message.as_object_mut().unwrap().remove("error");
        });
        messages
    };
    assert_eq!(told(&said["messages"]), told(&server.get("/v1/sessions/s/messages?format=ag-ui").json()));
}

#[test]
fn ag_uis_client_verifies_the_events_and_has_the_messages() {
    match judge("ag_ui.js") {
        Ok(command) => followed(command, None),
        Err(why) => skip("ag_uis_client_verifies_the_events_and_has_the_messages", &why),
    }
}

#[test]
fn ag_uis_client_verifies_the_events_although_the_connection_is_cut_again_and_again() {
    let test = "ag_uis_client_verifies_the_events_although_the_connection_is_cut_again_and_again";
    for cut_after in [1, 2, 3, 7] {
        match judge("ag_ui.js") {
            Ok(command) => followed(command, Some(cut_after)),
            Err(why) => return skip(test, &why),
        }
    }
}
