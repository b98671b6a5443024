//! The real binary, answering calls over its standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Where the binary is, or why it is not there.
pub fn find() -> Result<PathBuf, String> {
    if let Ok(named) = std::env::var("BANYAN_BIN") {
        let path = PathBuf::from(named);
        return if path.exists() {
            Ok(path)
        } else {
            Err(format!("BANYAN_BIN names {}, which is not there", path.display()))
        };
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(workspace, PathBuf::from);
    let path = target.join("release/banyan");
    let missing = || "there is no target/release/banyan; run `cargo build --release --package banyan-cli` first";
    path.canonicalize().map_err(|_| missing().to_owned())
}

/// A running `banyan call --stream`.
pub struct Binary {
    process: Child,
    input: Option<ChildStdin>,
    answers: Receiver<Value>,
}

/// Longer than any call takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

impl Binary {
    /// Starts it on a data directory. `prefix` is a command that runs it, if any.
    pub fn start(data: &Path, prefix: &[&str]) -> Result<Self, String> {
        let binary = find()?;
        let mut words: Vec<String> = prefix.iter().map(|word| (*word).to_owned()).collect();
        words.push(binary.to_string_lossy().into_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["call", "--stream", "--concurrency", "64", "--data"]).arg(data);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|error| format!("{words:?}: {error}"))?;
        let input = process.stdin.take();
        let output = process.stdout.take().ok_or("no output")?;
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                // A killed process can leave half a line behind, which nobody was answered by.
                let Ok(answer) = line.map_err(drop).and_then(|line| serde_json::from_str(&line).map_err(drop))
                else {
                    return;
                };
                if sender.send(answer).is_err() {
                    return;
                }
            }
        });
        Ok(Self { process, input, answers })
    }

    /// Sends a call. False when the process is gone.
    pub fn send(&mut self, id: &str, function: &str, request: &Value) -> bool {
        let line = json!({"id": id, "function": function, "request": request});
        self.input.as_mut().is_some_and(|input| writeln!(input, "{line}").and_then(|()| input.flush()).is_ok())
    }

    /// The next answer; `None` when there will be no more.
    pub fn answer(&self) -> Option<Value> {
        match self.answers.recv_timeout(PATIENCE) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no answer for {PATIENCE:?}"),
        }
    }

    /// Calls a function and waits; nothing else may be under way.
    pub fn ask(&mut self, function: &str, request: &Value) -> Result<Value, Value> {
        assert!(self.send("ask", function, request), "{function}: the process is gone");
        let answer = self.answer().unwrap_or_else(|| panic!("{function}: the process ended without an answer"));
        assert_eq!(answer["id"], "ask", "{answer}");
        answer.get("ok").cloned().ok_or_else(|| answer["error"].clone())
    }

    /// Ends it as `kill -9` does. Answers that are on their way can still be had.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Lets it finish what it was asked, and says whether it ended well.
    pub fn stop(mut self) -> bool {
        self.input = None;
        self.process.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        self.kill();
        // A process that was started by another one ends when there is nothing more to read.
        self.input = None;
    }
}
