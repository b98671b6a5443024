//! Following a server's events through lost connections: nothing is lost, and nothing told twice.

use std::collections::VecDeque;
use std::io::BufReader;
use std::thread;
use std::time::Duration;

use banyan::Start;
use ureq::BodyReader;

use super::server::Server;
use super::sse::{self, Block};
use super::{Frame, Until};
use crate::failure::{Failure, complain};

/// How long to wait before a lost connection is made again: at first, and at most.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// An open stream.
pub(super) struct Stream(BufReader<BodyReader<'static>>);

impl Stream {
    pub(super) fn new(body: BodyReader<'static>) -> Self {
        Self(BufReader::new(body))
    }
}

/// Events of a server, over as many connections as it takes.
pub(super) struct Follow {
    server: Server,
    path: String,
    until: Until,
    stream: Option<Stream>,
    /// Where to come back to.
    last: Option<String>,
    /// Where the last event was that is told. What another instance published lies before a position that says how far
    /// the past goes.
    told: Option<String>,
    /// Parts of a snapshot. Half of one cannot be resumed, so they are handed on once it is whole.
    snapshot: Option<Vec<Frame>>,
    ready: VecDeque<Frame>,
    wait: Duration,
    /// All of the past has been told.
    live: bool,
    /// The last frame has been handed on.
    over: bool,
}

impl Follow {
    /// Connects. The first connection is made at once or not at all: a wrong address does not get better by waiting.
    pub(super) fn begin(server: Server, path: String, until: Until, start: Start) -> Result<Self, Failure> {
        let stream = Some(server.open(&path, None)?);
        let snapshot = matches!(start, Start::Snapshot(_)).then(Vec::new);
        let (ready, wait) = (VecDeque::new(), FIRST_WAIT);
        let (last, told, live, over) = (None, None, false, false);
        Ok(Self { server, path, until, stream, last, told, snapshot, ready, wait, live, over })
    }

    fn step(&mut self) -> Result<(), Failure> {
        let Some(stream) = &mut self.stream else { return self.connect_again() };
        match sse::read(&mut stream.0) {
            // The server had too much for a slow reader, who comes back for the rest.
            Ok(Some(block)) if block.event == "banyan::lagged" => self.stream = None,
            Ok(Some(block)) => {
                self.wait = FIRST_WAIT;
                self.take(block);
            }
            Ok(None) => self.lost("it ended the stream"),
            Err(error) => self.lost(&error.to_string()),
        }
        Ok(())
    }

    fn take(&mut self, block: Block) {
        // Positions sort as strings. An event that is not newer was told before.
        let is_event = block.data.is_some() && block.event != "banyan::snapshot-end";
        if let (Some(id), Some(told), true) = (&block.id, &self.told, is_event)
            && id <= told
        {
            return;
        }
        if block.id.is_some() {
            self.last.clone_from(&block.id);
            if is_event {
                self.told.clone_from(&block.id);
            }
        }
        // A position alone says that the past has been told up to there.
        let Some(data) = block.data else {
            if block.id.is_some() {
                self.past_is_told();
            }
            return;
        };
        let frame = Frame { position: block.id, event: block.event.into(), data };
        match (&*frame.event, &mut self.snapshot) {
            ("banyan::resync", _) => {
                self.over = true;
                self.ready.push_back(frame);
            }
            ("banyan::snapshot-end", parts) => {
                self.ready.extend(parts.take().into_iter().flatten());
                self.ready.push_back(frame);
                self.past_is_told();
            }
            (_, Some(parts)) => parts.push(frame),
            (_, None) => self.ready.push_back(frame),
        }
    }

    fn past_is_told(&mut self) {
        match self.until {
            Until::Now => self.over = true,
            Until::Stopped if !self.live => complain(&format!("banyan: following {}", self.server.url())),
            Until::Stopped => {}
        }
        self.live = true;
    }

    fn lost(&mut self, why: &str) {
        self.stream = None;
        if let Some(parts) = &mut self.snapshot {
            parts.clear();
        }
        complain(&format!("banyan: the connection to {} is lost ({why}); trying again", self.server.url()));
    }

    fn connect_again(&mut self) -> Result<(), Failure> {
        thread::sleep(self.wait);
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        match self.server.open(&self.path, self.last.as_deref()) {
            Ok(stream) => {
                complain(&format!("banyan: connected to {} again", self.server.url()));
                self.stream = Some(stream);
                Ok(())
            }
            // What the server is in trouble with may pass; what it refuses stays refused.
            Err(Failure::Storage(_)) => Ok(()),
            Err(failure) if failure.refusal().is_some_and(|refusal| refusal.code == "rate/limited") => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}

impl Iterator for Follow {
    type Item = Result<Frame, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(Ok(frame));
            }
            if self.over {
                return None;
            }
            if let Err(failure) = self.step() {
                self.over = true;
                return Some(Err(failure));
            }
        }
    }
}
