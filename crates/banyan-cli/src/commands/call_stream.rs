//! `banyan call --stream`: many calls in one process, each answered as it is done.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use banyan::model::Error;
use serde_json::json;
use serde_json::value::RawValue;

use crate::client::Client;
use crate::failure::{Failure, Refusal};
use crate::signals::on_stop;

/// Answers the calls on standard input, so many at a time.
pub(super) fn run(client: &dyn Client, concurrency: usize) -> Result<(), Failure> {
    let lines = Arc::new(Lines::new(concurrency));
    let on_signal = Arc::clone(&lines);
    on_stop(move || on_signal.end())?;
    let reader = Arc::clone(&lines);
    // Not joined: after a signal it may wait for a line that never comes.
    thread::Builder::new()
        .name("banyan-reader".into())
        .spawn(move || read(&reader))
        .map_err(|error| Failure::storage(format!("no thread to read with: {error}")))?;
    thread::scope(|scope| {
        let work = || {
            while let Some(line) = lines.take() {
                if let Err(error) = say(&answer(client, &line)) {
                    lines.abandon(lost(&error));
                }
            }
        };
        for _ in 1..concurrency {
            // Fewer threads than asked for answer the same calls, later.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    lines.failure().map_or(Ok(()), Err)
}

fn read(lines: &Lines) {
    let mut input = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        match input.read_until(b'\n', &mut line) {
            Ok(0) => return lines.end(),
            Ok(_) if line.trim_ascii().is_empty() => {}
            Ok(_) => {
                if !lines.put(line) {
                    return;
                }
            }
            Err(error) => return lines.fail(Failure::usage(format!("standard input could not be read: {error}"))),
        }
    }
}

/// The answer to a line, as a line.
fn answer(client: &dyn Client, line: &[u8]) -> String {
    let (id, answer) = match serde_json::from_slice::<BTreeMap<String, Box<RawValue>>>(line) {
        Ok(call) => (call.get("id").map_or("null", |id| id.get()).to_owned(), perform(client, &call)),
        Err(error) => ("null".to_owned(), Err(malformed(format!("the line is not a JSON object: {error}")))),
    };
    match answer {
        Ok(response) => format!("{{\"id\":{id},\"ok\":{response}}}\n"),
        Err(failure) => {
            let told =
                failure.refusal().map(|Refusal { code, message, .. }| json!({"code": code, "message": message}));
            format!("{{\"id\":{id},\"error\":{}}}\n", told.unwrap_or_default())
        }
    }
}

fn perform(client: &dyn Client, call: &BTreeMap<String, Box<RawValue>>) -> Result<String, Failure> {
    let function = call.get("function").and_then(|id| serde_json::from_str::<String>(id.get()).ok());
    let function = function.ok_or_else(|| {
        malformed("`function` is missing; name the function to call, for example session::append")
    })?;
    client.call(&function, call.get("request").map_or("{}", |request| request.get()).as_bytes())
}

fn malformed(message: impl Into<String>) -> Failure {
    Error::invalid_request(message).into()
}

/// Writes a line whole and at once: who reads it knows that what it answers is durable.
fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()
}

fn lost(error: &io::Error) -> Failure {
    Failure::storage(format!("answers could not be written, so no more lines were read: {error}"))
}

/// Lines on their way from the reader to those who answer; as many wait as can be under way.
struct Lines {
    queue: Mutex<Queue>,
    arrived: Condvar,
    taken: Condvar,
    room: usize,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    ended: bool,
    failure: Option<Failure>,
}

impl Lines {
    fn new(room: usize) -> Self {
        Self { queue: Mutex::default(), arrived: Condvar::new(), taken: Condvar::new(), room }
    }

    /// Waits for room, and puts a line in; false when no more are wanted.
    fn put(&self, line: Vec<u8>) -> bool {
        let full = |queue: &mut Queue| !queue.ended && queue.lines.len() >= self.room;
        let mut queue = self.taken.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
        if queue.ended {
            return false;
        }
        queue.lines.push_back(line);
        self.arrived.notify_one();
        true
    }

    /// Waits for a line; none when all are taken and no more will come.
    fn take(&self) -> Option<Vec<u8>> {
        let nothing = |queue: &mut Queue| !queue.ended && queue.lines.is_empty();
        let mut queue = self.arrived.wait_while(self.lock(), nothing).unwrap_or_else(PoisonError::into_inner);
        let line = queue.lines.pop_front();
        self.taken.notify_one();
        line
    }

    /// No more lines are read; those that wait are still answered.
    fn end(&self) {
        self.lock().ended = true;
        self.arrived.notify_all();
        self.taken.notify_all();
    }

    /// No more lines are read, because of this.
    fn fail(&self, failure: Failure) {
        self.lock().failure = Some(failure);
        self.end();
    }

    /// Nobody hears the answers, so that nothing more is done.
    fn abandon(&self, failure: Failure) {
        self.lock().lines.clear();
        self.fail(failure);
    }

    fn failure(&self) -> Option<Failure> {
        self.lock().failure.take()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
