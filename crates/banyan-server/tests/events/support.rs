//! A server on a socket, and a reader of event streams that knows nothing of the server's code.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use banyan::{Banyan, Options};
use banyan_server::{Running, Settings, start};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// How long a test waits for something before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server on a data directory.
pub(crate) struct Server {
    pub(crate) store: Banyan,
    pub(crate) at: SocketAddr,
    pub(crate) dir: TempDir,
    runtime: Runtime,
    running: Option<Running>,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::with(Options::default(), settings())
    }

    pub(crate) fn with(options: Options, settings: Settings) -> Self {
        Self::on(tempfile::tempdir().unwrap(), options, settings)
    }

    pub(crate) fn on(dir: TempDir, options: Options, settings: Settings) -> Self {
        let store = Banyan::open(dir.path(), options).unwrap();
        Self::of(store, dir, settings)
    }

    pub(crate) fn of(store: Banyan, dir: TempDir, settings: Settings) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let running = runtime.block_on(start(store.clone(), dir.path(), settings)).unwrap();
        Self { store, at: running.address(), dir, runtime, running: Some(running) }
    }

    /// Stops the server and closes the store.
    pub(crate) fn stop(mut self) -> TempDir {
        let running = self.running.take().unwrap();
        self.runtime.block_on(running.stop());
        self.store.close().unwrap();
        self.dir
    }

    /// Stops the server while the test goes on; the handle tells when it has stopped.
    pub(crate) fn begin_to_stop(&mut self) -> tokio::task::JoinHandle<()> {
        self.runtime.spawn(self.running.take().unwrap().stop())
    }

    pub(crate) fn wait<T>(&self, until: impl Future<Output = T>) -> T {
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, until).await.expect("in time") })
    }

    /// Stops, and starts again on the same directory and port.
    pub(crate) fn restarted(self, options: Options) -> Self {
        let listen = self.at;
        Self::on(self.stop(), options, Settings { listen, ..settings() })
    }

    /// Calls a function of a session, without a connection.
    pub(crate) fn call(&self, function: &str, request: Value) -> Value {
        let id = format!("session::{function}");
        let answer = banyan::block_on(self.store.call(&id, request.to_string().as_bytes()));
        serde_json::from_str(&answer.unwrap_or_else(|error| panic!("{id} {request}: {error}"))).unwrap()
    }

    pub(crate) fn session(&self, id: &str) {
        self.call("ensure", json!({"session_id": id}));
    }

    pub(crate) fn append(&self, session: &str, text: &str) -> String {
        let appended = self.call("append", json!({"session_id": session, "message": assistant(text)}));
        appended["entry_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn extend(&self, session: &str, entry: &str, text: &str) {
        self.call("extend-message", json!({"session_id": session, "entry_id": entry, "text": text}));
    }

    pub(crate) fn open(&self, path: &str) -> Stream {
        Stream::open(self.at, path, &[]).unwrap_or_else(|refusal| panic!("{path}: {refusal:?}"))
    }

    /// The frames after a position, up to and with the one that is known to be the last.
    pub(crate) fn after(&self, path: &str, position: &str, last: &str) -> Vec<Frame> {
        let headers = [("Last-Event-ID", position)];
        let mut stream = Stream::open(self.at, path, &headers).unwrap_or_else(|refusal| panic!("{refusal:?}"));
        if position == last { Vec::new() } else { stream.up_to(last) }
    }

    pub(crate) fn refused(&self, path: &str) -> (u16, String) {
        match Stream::open(self.at, path, &[]) {
            Ok(_) => panic!("{path} should be refused"),
            Err(refusal) => (refusal.status, refusal.problem["code"].as_str().unwrap().to_owned()),
        }
    }
}

pub(crate) fn settings() -> Settings {
    Settings { listen: "127.0.0.1:0".parse().unwrap(), ..Settings::default() }
}

pub(crate) fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": text}], "timestamp": 2, "model": "m",
        "provider": "p", "stop_reason": "end"})
}

/// What a stream was refused with.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) problem: Value,
}

/// A frame of an event stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) id: Option<String>,
    pub(crate) event: String,
    pub(crate) data: String,
}

impl Frame {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    pub(crate) fn position(&self) -> &str {
        self.id.as_deref().unwrap_or_else(|| panic!("{self:?} has no id"))
    }
}

/// The types of frames, without `session::`.
pub(crate) fn types(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.trim_start_matches("session::")).collect()
}

pub(crate) fn ids(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(Frame::position).collect()
}

/// An open event stream.
pub(crate) struct Stream {
    reader: BufReader<TcpStream>,
    pub(crate) headers: Vec<(String, String)>,
    /// What was read and is not a whole line yet, or not asked for.
    text: VecDeque<u8>,
    /// Every byte of the body, without the framing of HTTP.
    pub(crate) body: Vec<u8>,
    pub(crate) comments: usize,
    /// The position that came alone: the past has been told up to there.
    pub(crate) told_upto: Option<String>,
    /// Every byte that came over the socket.
    pub(crate) wire: usize,
    ended: bool,
}

impl Stream {
    pub(crate) fn open(at: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<Self, Refusal> {
        let mut socket = TcpStream::connect(at).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        write!(socket, "GET {path} HTTP/1.1\r\nhost: {at}\r\naccept: text/event-stream\r\n{headers}\r\n").unwrap();
        let mut stream = Self {
            reader: BufReader::new(socket),
            headers: Vec::new(),
            text: VecDeque::new(),
            body: Vec::new(),
            comments: 0,
            told_upto: None,
            wire: 0,
            ended: false,
        };
        let status: u16 = stream.http_line().split(' ').nth(1).unwrap().parse().unwrap();
        loop {
            let line = stream.http_line();
            let Some((name, value)) = line.split_once(": ") else { break };
            stream.headers.push((name.to_owned(), value.to_owned()));
        }
        if status == 200 {
            return Ok(stream);
        }
        let length: usize = stream.header("content-length").unwrap().parse().unwrap();
        let mut problem = vec![0; length];
        stream.reader.read_exact(&mut problem).unwrap();
        Err(Refusal { status, problem: serde_json::from_slice(&problem).unwrap() })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn http_line(&mut self) -> String {
        let mut line = String::new();
        self.wire += self.reader.read_line(&mut line).expect("a line in time");
        line.trim_end_matches("\r\n").to_owned()
    }

    /// Reads one chunk of the body. False at its end.
    fn read_chunk(&mut self) -> bool {
        if self.ended {
            return false;
        }
        let size = self.http_line();
        let size = usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("the stream was cut off: {size:?}"));
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).unwrap();
        self.wire += chunk.len();
        chunk.truncate(size);
        self.body.extend_from_slice(&chunk);
        self.text.extend(chunk);
        self.ended = size == 0;
        !self.ended
    }

    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                return Some(String::from_utf8(line).unwrap().trim_end_matches('\n').to_owned());
            }
            if !self.read_chunk() {
                assert!(self.text.is_empty(), "the stream ended within a line");
                return None;
            }
        }
    }

    /// The next frame; `None` when the stream has ended as it should.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        let mut frame = Frame::default();
        loop {
            let line = self.line()?;
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "" if line.is_empty() => {
                    if !frame.data.is_empty() {
                        return Some(frame);
                    }
                    // A position alone says up to where the past has been told; it is no frame of its own.
                    let Frame { id, .. } = std::mem::take(&mut frame);
                    if id.is_some() {
                        self.told_upto = id;
                    }
                }
                "" => self.comments += 1,
                "id" => frame.id = Some(value.to_owned()),
                "event" => frame.event = value.to_owned(),
                "data" => frame.data.push_str(value),
                other => panic!("there is no field {other:?}"),
            }
        }
    }

    /// What came so far, when some more has come.
    pub(crate) fn some_bytes(&mut self) -> Vec<u8> {
        assert!(self.read_chunk(), "the stream should go on");
        self.text.iter().copied().collect()
    }

    pub(crate) fn take(&mut self, count: usize) -> Vec<Frame> {
        (0..count).map(|at| self.next().unwrap_or_else(|| panic!("frame {at} of {count} should come"))).collect()
    }

    /// The frames up to and with the one at a position.
    pub(crate) fn up_to(&mut self, last: &str) -> Vec<Frame> {
        let mut frames = Vec::new();
        while frames.last().is_none_or(|frame: &Frame| frame.id.as_deref() != Some(last)) {
            frames.push(self.next().unwrap_or_else(|| panic!("{last} should come")));
        }
        frames
    }

    /// The frames up to and with one of a type.
    pub(crate) fn until(&mut self, event: &str) -> Vec<Frame> {
        let mut frames = Vec::new();
        while frames.last().is_none_or(|frame: &Frame| frame.event != event) {
            frames.push(self.next().unwrap_or_else(|| panic!("{event} should come")));
        }
        frames
    }

    /// The frames up to the end of the stream.
    pub(crate) fn rest(&mut self) -> Vec<Frame> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

/// Returns when something is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

/// A life of commits: sessions with everything that can happen to them.
pub(crate) fn a_busy_life(server: &Server) {
    for id in ["a", "b"] {
        server.call("ensure", json!({"session_id": id, "metadata": {"owner": id}}));
        server.call("append", json!({"session_id": id,
            "message": {"role": "user", "content": [{"type": "text", "text": "hi\n\u{2028} \"there\""}], "timestamp": 1}}));
        let entry = server.append(id, "");
        for n in 0..5 {
            server.extend(id, &entry, &format!("{n} "));
        }
        server.call(
            "update-message",
            json!({"session_id": id, "entry_id": entry,
            "content": [{"type": "text", "text": "another"}]}),
        );
        server.extend(id, &entry, "!");
        server.call("append-many", json!({"session_id": id, "messages": [assistant("x"), assistant("y")]}));
        server.call("set-status", json!({"session_id": id, "status": "working", "reason": "r"}));
        server.call("set-meta", json!({"session_id": id, "title": "t"}));
        server.call("append", json!({"session_id": id, "custom": {"custom_type": "note", "data": {"n": 1}}}));
    }
    let forked = server.append("a", "the end");
    server.call("fork", json!({"session_id": "a", "entry_id": forked}));
    server.call("delete", json!({"session_id": "b"}));
    server.call("ensure", json!({"session_id": "b"}));
    server.append("b", "born again");
}
