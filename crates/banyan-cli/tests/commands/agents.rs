//! Sessions of coding agents: found, taken, taken again, followed, and handed on.

mod follow;
mod grown;
mod interrupted;
mod out;
mod taken;
mod trouble;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Place, Said, said};
use serde_json::{Value, json};

/// The id of the first rollout.
pub(crate) const FIRST: &str = "01a1e056-cb67-7272-a2a2-b98ab2fa24b7";

/// A home of the user's, with rollouts of Codex in it, and a store beside it.
pub(crate) struct Machine {
    pub(crate) place: Place,
    home: tempfile::TempDir,
    url: Option<String>,
}

impl Machine {
    /// A machine on which nobody ever used an agent.
    pub(crate) fn new() -> Self {
        Self { place: Place::new(), home: tempfile::tempdir().unwrap(), url: None }
    }

    /// The same; commands ask a server.
    pub(crate) fn asking(mut self, url: &str) -> Self {
        self.url = Some(url.to_owned());
        self
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The command in this home, with no other agent's settings.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.place.command(args);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.ends_with("_HOME") || name.ends_with("_DIR") || name.contains("GOOSE") {
                command.env_remove(name);
            }
        }
        command.env("HOME", self.home()).current_dir(self.home());
        if let Some(url) = &self.url {
            command.env("BANYAN_URL", url);
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        said(&mut self.command(args))
    }

    /// Imports, which must succeed, and gives the report of each source.
    pub(crate) fn import(&self, args: &[&str]) -> Vec<Value> {
        let mut lines = self.run(&[&["import", "--json"], args].concat()).ok().json_lines();
        assert!(lines.pop().unwrap()["summary"].is_object());
        lines
    }

    /// Calls a function, which must succeed.
    pub(crate) fn call(&self, function: &str, request: &Value) -> Value {
        serde_json::from_str(&self.run(&["call", function, &request.to_string()]).ok().out).unwrap()
    }

    /// Everything that is to be seen of a session.
    pub(crate) fn all_of(&self, session: &str) -> Value {
        let tree = self.call("session::tree", &json!({"session_id": session}));
        let log = self.run(&["export", session, "--to", "session-log"]).ok().out;
        json!({"tree": tree, "log": log.lines().skip(1).collect::<Vec<_>>(), "meta": self.meta(session)})
    }

    pub(crate) fn meta(&self, session: &str) -> Value {
        self.call("session::get", &json!({"session_id": session}))["meta"].clone()
    }

    /// Writes a rollout with so many turns, and gives its path.
    pub(crate) fn rollout(&self, id: &str, turns: usize) -> PathBuf {
        let path = self.home().join(format!(".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-{id}.jsonl"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let meta = json!({"timestamp": "2026-01-02T03:04:05.000Z", "type": "session_meta", "payload": {"id": id,
            "timestamp": "2026-01-02T03:04:05.000Z", "cwd": "/work", "originator": "codex_cli_rs",
            "cli_version": "0.166.0", "source": "cli"}});
        fs::write(&path, format!("{meta}\n{}", (0..turns).map(turn).collect::<String>())).unwrap();
        path
    }
}

/// A turn as Codex writes it.
pub(crate) fn turn(number: usize) -> String {
    let item = |payload: Value| {
        let line = json!({"timestamp": "2026-01-02T03:04:06.000Z", "type": "response_item", "payload": payload});
        format!("{line}\n")
    };
    let user = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": format!("ask {number}")}]});
    let answer = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": format!("answer {number}")}]});
    item(user) + &item(answer)
}

pub(crate) fn session(id: &str) -> String {
    format!("codex_{id}")
}

pub(crate) fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// How many entries a report says are new, over all of its sessions.
pub(crate) fn added(reports: &[Value]) -> u64 {
    let sessions = reports.iter().flat_map(|report| report["sessions"].as_array().unwrap());
    sessions.map(|session| session["added"].as_u64().unwrap()).sum()
}

/// The samples of an agent.
pub(crate) fn fixtures(agent: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../banyan-agents/tests/fixtures").join(agent)
}
