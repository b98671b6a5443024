//! Keeping up with agents that are running.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::trouble::broken_database;
use super::{FIRST, Machine, append, fixtures, session, turn};

/// An import that follows.
struct Following {
    child: Child,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
}

impl Following {
    fn begin(machine: &Machine) -> Self {
        Self::begin_with(machine, "codex")
    }

    fn begin_with(machine: &Machine, agent: &str) -> Self {
        let mut command = machine.command(&["import", agent, "--follow", "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Self { child, out: BufReader::new(out), err: BufReader::new(err) }
    }

    /// Waits for the next line.
    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no report but `{line}`"))
    }

    /// Waits until so many entries of a session were taken.
    fn until_added(&mut self, session: &str, wanted: u64) {
        let mut added = 0;
        while added < wanted {
            let report = self.line();
            for found in report["sessions"].as_array().unwrap_or(&Vec::new()) {
                assert_eq!(found["session_id"], session);
                added += found["added"].as_u64().unwrap();
            }
        }
        assert_eq!(added, wanted);
    }

    fn stop(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn given_a_running_agent_when_it_writes_then_its_lines_and_new_sessions_are_taken_as_they_come() {
    let machine = Machine::new();
    let path = machine.rollout(FIRST, 1);
    let mut following = Following::begin(&machine);
    let mut said = String::new();
    following.err.read_line(&mut said).unwrap();
    assert!(said.starts_with("Following."), "{said}");
    assert_eq!(following.line()["sessions"][0]["created"], true);
    assert!(following.line()["summary"].is_object());
    for number in 1..4 {
        append(&path, &turn(number));
        following.until_added(&session(FIRST), 2);
    }
    // Half a line is left until it is whole.
    let next = turn(4);
    append(&path, &next[..next.len() / 4]);
    append(&path, &next[next.len() / 4..]);
    following.until_added(&session(FIRST), 2);
    let second = "01a1e057-951f-7bf3-ba61-c0d73ab8256f";
    machine.rollout(second, 1);
    let mut report = following.line();
    while report["sessions"][0]["session_id"] != session(second) {
        report = following.line();
    }
    following.stop();
    let whole = machine.meta(&session(FIRST));
    assert_eq!(whole["message_count"], 10);
    assert_eq!(
        machine.import(&["codex"]).iter().filter(|report| report["sessions"][0]["added"] != json!(0)).count(),
        0
    );
}

#[test]
fn given_a_database_that_is_none_when_it_is_followed_then_that_is_told_once_and_what_replaces_it_is_taken() {
    let machine = Machine::new();
    let database = broken_database(&machine);
    let mut following = Following::begin_with(&machine, "goose");
    let told = following.line();
    assert!(told["problem"].is_string(), "{told}");
    assert_eq!(following.line()["summary"]["goose"]["unreadable"], 1);
    let whole = database.with_extension("whole");
    std::fs::copy(fixtures("goose").join("sessions.db"), &whole).unwrap();
    std::fs::rename(whole, &database).unwrap();
    let next = following.line();
    assert!(next["problem"].is_null() && next["sessions"].is_array(), "{next}");
    following.stop();
}
