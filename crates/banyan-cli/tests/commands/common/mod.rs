//! Running the real `banyan` in a directory of its own.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of tests, of which each uses what it needs"
)]

pub(crate) mod served;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A data directory, and the command to use it with.
pub(crate) struct Place {
    root: TempDir,
}

/// What a command said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// Each line of output as JSON.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The ids of the sessions in the output.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.json_lines().iter().map(|meta| meta["session_id"].as_str().unwrap().to_owned()).collect()
    }

    /// What was said, when it must have been a success.
    pub(crate) fn ok(self) -> Said {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{self:?}");
        self
    }

    /// The exit code, and the code of the error on standard error as JSON.
    pub(crate) fn refusal(&self) -> (Option<i32>, String) {
        let error: Value = serde_json::from_str(self.err.trim()).unwrap_or_else(|_| panic!("{self:?}"));
        assert_eq!(error.as_object().unwrap().keys().collect::<Vec<_>>(), ["code", "message"]);
        assert_eq!(self.out, "");
        (self.code, error["code"].as_str().unwrap().to_owned())
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// The command, on the data directory, untouched by the surroundings.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_banyan"));
        // No settings of whoever runs the tests.
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("BANYAN_") || name == "NO_COLOR") {
                command.env_remove(name);
            }
        }
        command.args(args).env("BANYAN_DATA", self.dir()).env("TZ", "UTC").stdin(Stdio::null());
        command.env("XDG_CONFIG_HOME", self.root.path());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        said(&mut self.command(args))
    }

    /// Runs with text on standard input.
    pub(crate) fn feed(&self, args: &[&str], input: &str) -> Said {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        let feeder = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap().unwrap();
        told(output)
    }

    /// Calls a function, which must succeed.
    pub(crate) fn call(&self, function: &str, request: &Value) -> Value {
        serde_json::from_str(&self.run(&["call", function, &request.to_string()]).ok().out).unwrap()
    }

    /// A session of this id with these messages of a user.
    pub(crate) fn session(&self, id: &str, title: &str, texts: &[&str]) -> Vec<String> {
        self.call("session::ensure", &json!({"session_id": id, "title": title}));
        let append = |text: &&str| {
            let request = json!({"session_id": id, "message": user(text)});
            self.call("session::append", &request)["entry_id"].as_str().unwrap().to_owned()
        };
        texts.iter().map(append).collect()
    }

    /// The texts of a session's messages.
    pub(crate) fn texts(&self, session: &str, args: &[&str]) -> Vec<String> {
        let items = self.run(&[&["show", session, "--json"], args].concat()).ok().json_lines();
        items.iter().map(|item| item["message"]["content"][0]["text"].as_str().unwrap().to_owned()).collect()
    }

    /// Starts a stream of calls that stays open.
    pub(crate) fn stream(&self) -> Stream {
        let mut child = self
            .command(&["call", "--stream"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Stream { child, input: Some(input), output: Some(output) }
    }
}

/// A stream of calls under way.
pub(crate) struct Stream {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    pub(crate) output: Option<BufReader<ChildStdout>>,
}

impl Stream {
    pub(crate) fn send(&mut self, call: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{call}").unwrap();
    }

    pub(crate) fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

pub(crate) fn said(command: &mut Command) -> Said {
    told(command.output().unwrap())
}

fn told(output: std::process::Output) -> Said {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

pub(crate) fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1_717_800_000_000_i64})
}

pub(crate) fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content, "model": "m-1", "provider": "p", "stop_reason": "end",
        "timestamp": 1_717_800_000_000_i64})
}
