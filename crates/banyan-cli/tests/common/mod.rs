//! Running the real `banyan` in a directory of its own.
#![allow(dead_code, reason = "each test file uses what it needs")]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A data directory, and the command to use it with.
pub struct Place {
    root: TempDir,
}

/// What a command said.
#[derive(Debug, PartialEq, Eq)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    /// Each line of output as JSON.
    pub fn json_lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What was said, when it must have been a success.
    pub fn ok(self) -> Said {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{self:?}");
        self
    }

    /// The exit code, and the code of the error on standard error as JSON.
    pub fn refusal(&self) -> (Option<i32>, String) {
        let error: Value = serde_json::from_str(self.err.trim()).unwrap_or_else(|_| panic!("{self:?}"));
        assert_eq!(error.as_object().unwrap().keys().collect::<Vec<_>>(), ["code", "message"]);
        assert_eq!(self.out, "");
        (self.code, error["code"].as_str().unwrap().to_owned())
    }
}

impl Place {
    pub fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    pub fn dir(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// The command, on the data directory, untouched by the surroundings.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_banyan"));
        command.args(args).env("BANYAN_DATA", self.dir()).env_remove("NO_COLOR").stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Said {
        said(&mut self.command(args))
    }

    /// Runs with text on standard input.
    pub fn feed(&self, args: &[&str], input: &str) -> Said {
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
    pub fn call(&self, function: &str, request: &Value) -> Value {
        serde_json::from_str(&self.run(&["call", function, &request.to_string()]).ok().out).unwrap()
    }

    /// A session of this id with these messages of a user.
    pub fn session(&self, id: &str, title: &str, texts: &[&str]) -> Vec<String> {
        self.call("session::ensure", &json!({"session_id": id, "title": title}));
        let append = |text: &&str| {
            let request = json!({"session_id": id, "message": user(text)});
            self.call("session::append", &request)["entry_id"].as_str().unwrap().to_owned()
        };
        texts.iter().map(append).collect()
    }

    /// Starts a stream of calls that stays open.
    pub fn stream(&self) -> Stream {
        let mut child = self
            .command(&["call", "--stream"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Stream { child, input: Some(input), output }
    }
}

/// A stream of calls under way.
pub struct Stream {
    pub child: Child,
    pub input: Option<ChildStdin>,
    pub output: BufReader<ChildStdout>,
}

impl Stream {
    pub fn send(&mut self, call: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{call}").unwrap();
    }

    pub fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

pub fn said(command: &mut Command) -> Said {
    told(command.output().unwrap())
}

fn told(output: std::process::Output) -> Said {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

pub fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1_717_800_000_000_i64})
}

pub fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content, "model": "m-1", "provider": "p", "stop_reason": "end",
        "timestamp": 1_717_800_000_000_i64})
}
