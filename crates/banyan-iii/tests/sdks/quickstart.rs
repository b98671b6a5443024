//! The quickstart of session-manager, with nothing but Banyan: the command serves, and each SDK runs it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::install;

/// `banyan serve --iii-listen`.
struct Served {
    child: Child,
    bus: String,
    _dir: tempfile::TempDir,
}

impl Served {
    fn start() -> Option<Self> {
        let Some(binary) = std::env::var_os("BANYAN_BIN") else {
            install::skip(
                "the quickstart",
                "BANYAN_BIN does not name the banyan command; `make test` says where it is",
            );
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new(binary)
            .args([
                "serve",
                "--json",
                "--listen",
                "127.0.0.1:0",
                "--iii-listen",
                "127.0.0.1:0",
                "--log",
                "warn",
                "--data",
            ])
            .arg(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        Some(Self { child, bus: told["iii"].as_str().unwrap().to_owned(), _dir: dir })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn expected() -> Value {
    json!({
        "texts": ["What's the weather?", "It will rain."],
        "revisions": [1, 2, 3],
        "last": "It will rain.",
        "refused": true,
    })
}

fn run(script: Result<Command, String>, what: &str) {
    let mut script = match script {
        Ok(script) => script,
        Err(why) => return install::skip(what, &why),
    };
    let Some(served) = Served::start() else { return };
    let output = script.arg(&served.bus).env_remove("III_URL").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let last = said.lines().last().unwrap_or_default();
    let told: Value = serde_json::from_str(last)
        .unwrap_or_else(|error| panic!("{error}: {said}\n{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(told, expected());
}

#[test]
fn on_the_sdk_for_node() {
    run(install::node("quickstart.js"), "the quickstart on the SDK for Node.js");
}

#[test]
fn on_the_sdk_for_python() {
    run(install::python("quickstart.py"), "the quickstart on the SDK for Python");
}

/// The calls and bindings are as they stand in the specification.
#[tokio::test(flavor = "multi_thread")]
async fn on_the_sdk_for_rust() {
    use iii_sdk::{
        IIIError, InitOptions, RegisterFunction, RegisterTriggerInput, TriggerRequest, register_worker,
    };
    let Some(served) = Served::start() else { return };
    let iii = register_worker(&served.bus, InitOptions::default());
    let call = async |function_id: &str, payload: Value| {
        iii.trigger(TriggerRequest {
            function_id: function_id.into(),
            payload,
            action: None,
            timeout_ms: Some(20_000),
        })
        .await
    };
    let created =
        call("session::create", json!({ "title": "Weather question", "metadata": { "owner": "u_1" } })).await;
    let session_id = created.unwrap()["session_id"].as_str().unwrap().to_string();
    let question = json!({
        "session_id": session_id,
        "message": {
            "role": "user",
            "content": [{ "type": "text", "text": "What's the weather?" }],
            "timestamp": 1717800000000_i64
        }
    });
    call("session::append", question).await.unwrap();

    let (heard, mut events) = tokio::sync::mpsc::unbounded_channel();
    iii.register_function(
        "my-ui::on-message-updated",
        RegisterFunction::new_async(move |event: Value| {
            let _ = heard.send(event);
            async { Ok::<_, IIIError>(json!({ "ok": true })) }
        }),
    );
    iii.register_trigger(RegisterTriggerInput {
        trigger_type: "session::message-updated".into(),
        function_id: "my-ui::on-message-updated".into(),
        config: json!({ "session_id": session_id, "roles": ["assistant"] }),
        metadata: None,
    })
    .unwrap();

    let reply = json!({"role": "assistant", "content": [{"type": "text", "text": ""}], "model": "m", "provider": "p",
        "stop_reason": "end", "timestamp": 1717800000001_i64});
    let appended = call("session::append", json!({"session_id": session_id, "message": reply})).await.unwrap();
    let mut text = String::new();
    for token in ["It ", "will ", "rain."] {
        text.push_str(token);
        let content = json!([{"type": "text", "text": text}]);
        let update = json!({"session_id": session_id, "entry_id": appended["entry_id"], "content": content});
        call("session::update-message", update).await.unwrap();
    }
    let (mut revisions, mut last) = (Vec::new(), Value::Null);
    while revisions.last() != Some(&3) {
        let event = tokio::time::timeout(Duration::from_secs(60), events.recv()).await.unwrap().unwrap();
        revisions.push(event["revision"].as_u64().unwrap());
        last = event["message"]["content"][0]["text"].clone();
    }
    let page = call("session::messages", json!({ "session_id": session_id })).await.unwrap();
    let texts: Vec<&Value> =
        page["messages"].as_array().unwrap().iter().map(|it| &it["message"]["content"][0]["text"]).collect();
    let refused = call("session::append", json!({"session_id": "nobody", "message": reply})).await.unwrap_err();
    let refused = refused.to_string().contains("session/not_found: ");
    assert_eq!(json!({"texts": texts, "revisions": revisions, "last": last, "refused": refused}), expected());
    iii.shutdown_async().await;
}
