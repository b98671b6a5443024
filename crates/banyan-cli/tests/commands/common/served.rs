//! A server started from the real `banyan`, on a port of its own.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Place, Said, said};

/// How long anything may take before a test gives up on it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A server that runs until it is stopped or dropped.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) url: String,
    /// The first line.
    pub(crate) told: Value,
}

impl Place {
    /// Serves the directory on any free port.
    pub(crate) fn serve(&self) -> Served {
        self.serve_with(&["--listen", "127.0.0.1:0"]).unwrap_or_else(|said| panic!("{said:?}"))
    }

    /// Serves the directory again where it was served before.
    pub(crate) fn serve_again(&self, url: &str) -> Served {
        let address = url.strip_prefix("http://").unwrap();
        let began = Instant::now();
        loop {
            // Somebody's outgoing connection may have the port for a moment.
            match self.serve_with(&["--listen", address]) {
                Ok(served) => return served,
                Err(said) => assert!(said.err.contains("serve/listen") && began.elapsed() < DEADLINE, "{said:?}"),
            }
        }
    }

    /// Serves the directory, or gives what was said instead.
    pub(crate) fn serve_with(&self, args: &[&str]) -> Result<Served, Said> {
        let mut command = self.command(&[&["serve", "--json"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            let output = child.wait_with_output().unwrap();
            return Err(super::told(output));
        }
        // Its log is not to fill the pipe.
        let mut log = child.stderr.take().unwrap();
        std::thread::spawn(move || log.read_to_end(&mut Vec::new()));
        let told: Value = serde_json::from_str(&line).unwrap();
        Ok(Served { child, url: told["url"].as_str().unwrap().to_owned(), told })
    }

    /// Runs a command that asks a server.
    pub(crate) fn ask(&self, served: &Served, args: &[&str]) -> Said {
        said(&mut self.asking(&served.url, args))
    }

    /// A command that asks a server, and would find no directory.
    pub(crate) fn asking(&self, url: &str, args: &[&str]) -> Command {
        let mut command = self.command(args);
        command.env("BANYAN_URL", url).env("BANYAN_DATA", self.dir().join("nowhere"));
        command
    }

    /// Follows the events of a server.
    pub(crate) fn follow(&self, served: &Served, args: &[&str]) -> Following {
        let mut command = self.asking(&served.url, &[&["tail", "--json"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let err = BufReader::new(child.stderr.take().unwrap());
        Following { child, lines, err }
    }
}

impl Served {
    /// Sends a signal and gives the exit code.
    pub(crate) fn stop(mut self, signal: &str) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A `tail` under way.
pub(crate) struct Following {
    child: Child,
    lines: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
}

impl Following {
    /// Waits for the next event.
    pub(crate) fn event(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no event but `{line}`"))
    }

    /// Waits for the next line on standard error.
    pub(crate) fn complaint(&mut self) -> String {
        let mut line = String::new();
        self.err.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Ends it, and gives what else it said on standard error.
    pub(crate) fn end(mut self) -> String {
        self.child.kill().unwrap();
        let mut err = String::new();
        self.err.read_to_string(&mut err).unwrap();
        err
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
