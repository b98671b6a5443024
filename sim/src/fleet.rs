//! Many workers on one running binary, each with sessions of its own and a ledger of what was acknowledged.

use std::path::Path;

use banyan::{Banyan, Options};
use serde_json::{Value, json};

use crate::binary::Binary;
use crate::check::{Expected, check};
use crate::model::Model;
use crate::predict::Call;
use crate::workload::Workload;

/// See the module.
pub struct Fleet {
    workers: Vec<Worker>,
}

struct Worker {
    name: String,
    workload: Workload,
    expected: Expected,
    /// The call that comes next, when an answer demands one.
    next: Option<Call>,
    refused: bool,
}

/// What a refused call means for what is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It left no trace.
    NothingWritten,
    /// Nobody can know before the store is opened again.
    Uncertain,
}

/// What a run came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Calls that were acknowledged.
    pub acknowledged: u64,
    /// Calls that were refused, with their errors.
    pub refusals: Vec<(&'static str, Value)>,
}

impl Fleet {
    /// Workers without sessions.
    pub fn new(count: usize, seed: u64) -> Self {
        let worker = |at: usize| {
            let name = format!("w{at}");
            let mut workload = Workload::new(&name, seed.wrapping_mul(1000).wrapping_add(at as u64));
            (workload.usual, workload.long) = (200, 6000);
            Worker { name, workload, expected: Expected::default(), next: None, refused: false }
        };
        Self { workers: (0..count).map(worker).collect() }
    }

    /// Makes the texts of all messages longer.
    pub fn with_texts(mut self, usual: usize, long: usize) -> Self {
        for worker in &mut self.workers {
            (worker.workload.usual, worker.workload.long) = (usual, long);
        }
        self
    }

    /// Each worker makes one call after another, all workers at once, until `enough` says so. A worker rests after a
    /// refusal. Then every answer that is on its way is waited for, unless the process is gone.
    pub fn run(
        &mut self,
        binary: &mut Binary,
        refusal: Refusal,
        mut enough: impl FnMut(&mut Binary, &Outcome) -> bool,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let mut waiting = 0;
        for at in 0..self.workers.len() {
            waiting += u64::from(self.send(binary, at));
        }
        let mut stopping = false;
        while waiting > 0 {
            let Some(answer) = binary.answer() else { break };
            waiting -= 1;
            let at = self.take(&answer, refusal, &mut outcome);
            stopping = stopping || enough(binary, &outcome);
            if (!stopping || self.workers[at].next.is_some()) && !self.workers[at].refused {
                waiting += u64::from(self.send(binary, at));
            }
        }
        for worker in &mut self.workers {
            worker.refused = false;
        }
        outcome
    }

    fn send(&mut self, binary: &mut Binary, at: usize) -> bool {
        let worker = &mut self.workers[at];
        let acknowledged = &worker.expected.acknowledged;
        let call = worker.next.take().unwrap_or_else(|| worker.workload.next(acknowledged));
        let sent = binary.send(&at.to_string(), call.function, &call.request);
        let after = call.predict(acknowledged);
        worker.expected.under_way = Some((call, after));
        sent
    }

    fn take(&mut self, answer: &Value, refusal: Refusal, outcome: &mut Outcome) -> usize {
        let at: usize = answer["id"].as_str().and_then(|id| id.parse().ok()).unwrap_or_else(|| panic!("{answer}"));
        let worker = &mut self.workers[at];
        if let Some(ok) = answer.get("ok") {
            let (call, after) =
                worker.expected.under_way.take().unwrap_or_else(|| panic!("answered twice: {answer}"));
            worker.expected.acknowledged = call.learn(after, ok);
            worker.next = call.follow_up(ok);
            outcome.acknowledged += 1;
            return at;
        }
        assert_eq!(answer["error"]["code"], "session/storage", "{answer} to {:?}", worker.expected.under_way);
        let function = worker.expected.under_way.as_ref().map_or("", |(call, _)| call.function);
        outcome.refusals.push((function, answer["error"].clone()));
        worker.refused = true;
        if refusal == Refusal::NothingWritten {
            worker.expected.under_way = None;
        }
        at
    }

    /// Opens the directory through the library, checks it, and holds the workers to what they were told.
    pub fn check(&mut self, data: &Path) {
        let store =
            Banyan::open(data, Options::default()).unwrap_or_else(|error| panic!("does not open: {error}"));
        let found = crate::observe::observe(&store);
        self.compare(&found);
        let after = check(&store, &Expected { acknowledged: found, ..Expected::default() });
        store.close().unwrap();
        self.adopt(&after);
    }

    /// Holds what was found against every ledger.
    pub fn compare(&self, found: &Model) {
        let mut claimed = 0;
        for worker in &self.workers {
            let own = found.of_worker(&worker.name);
            claimed += own.sessions.len();
            worker.expected.allows(&own);
        }
        let others = found.of_worker("-").sessions.len();
        assert_eq!(claimed + others, found.sessions.len(), "every session is somebody's");
    }

    /// What is there now is what the workers go on with.
    fn adopt(&mut self, found: &Model) {
        for worker in &mut self.workers {
            worker.expected = Expected { acknowledged: found.of_worker(&worker.name), ..Expected::default() };
            worker.next = None;
        }
    }
}

/// A call that writes, for finding out whether writing is possible.
pub fn a_write() -> (&'static str, Value) {
    ("session::create", json!({"title": "- probe"}))
}
