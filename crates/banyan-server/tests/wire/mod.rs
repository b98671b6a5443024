//! A server to test, and plain sockets to talk to it.

#![allow(dead_code, reason = "each test uses some of it")]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use banyan::{Banyan, Options};
use banyan_server::{Running, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long anything that must happen may take.
pub(crate) const SOON: Duration = Duration::from_secs(30);

pub(crate) struct Server {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) store: Banyan,
    pub(crate) running: Running,
}

/// Settings for a test: any free port.
pub(crate) fn settings() -> Settings {
    Settings { listen: "127.0.0.1:0".parse().unwrap(), ..Settings::default() }
}

impl Server {
    pub(crate) async fn start(settings: Settings) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), settings).await
    }

    pub(crate) async fn start_in(dir: tempfile::TempDir, settings: Settings) -> Self {
        let store = Banyan::open(dir.path(), Options::default()).unwrap();
        let running = banyan_server::start(store.clone(), dir.path(), settings).await.unwrap();
        Self { dir, store, running }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running.address()
    }

    pub(crate) fn data(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address()).await.unwrap()
    }

    /// What is said of something without the thing itself.
    pub(crate) async fn head(&self, path: &str, headers: &str) -> Answer {
        let mut stream = self.connect().await;
        stream.write_all(request("HEAD", path, headers, "").as_bytes()).await.unwrap();
        Answer::read_head(&mut stream).await.expect("an answer")
    }

    /// Sends these bytes on a connection of their own and returns the first answer.
    pub(crate) async fn send(&self, bytes: impl AsRef<[u8]>) -> Answer {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_ref()).await.unwrap();
        Answer::read(&mut stream).await.expect("an answer")
    }

    /// A request with these header lines (each ended by \r\n) and this body.
    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        self.send(request(method, path, headers, body)).await
    }

    pub(crate) async fn get(&self, path: &str, headers: &str) -> Answer {
        self.ask("GET", path, headers, "").await
    }

    /// A session, made by a call.
    pub(crate) async fn assert_serves(&self) {
        let answer = self.ask("POST", "/v1/call/session::create", "", "{}").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.text().contains("session_id"), "{answer:?}");
    }

    pub(crate) async fn stop(self) {
        self.running.stop().await;
        self.store.close().unwrap();
    }
}

pub(crate) fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

/// An answer as it came over the wire.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// The head with its letters as they were sent.
    head_as_sent: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Reads an answer that has no body, whatever length it speaks of.
    pub(crate) async fn read_head<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> Option<Self> {
        tokio::time::timeout(SOON, Self::head_of(stream)).await.expect("an answer in time")
    }

    /// Reads one answer; none when the connection ends without one.
    pub(crate) async fn read<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> Option<Self> {
        tokio::time::timeout(SOON, Self::read_on(stream)).await.expect("an answer in time")
    }

    async fn head_of<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> Option<Self> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.ok()?);
        }
        let head_as_sent = String::from_utf8(head).unwrap();
        let head = head_as_sent.to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Some(Self { status, head, head_as_sent, body: Vec::new() })
    }

    /// A body that comes in chunks, each after its length in hex; the last one is empty.
    async fn chunks_of<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let mut length = Vec::new();
            while !length.ends_with(b"\r\n") {
                length.push(stream.read_u8().await.ok()?);
            }
            let length = usize::from_str_radix(std::str::from_utf8(&length).unwrap().trim(), 16).unwrap();
            let mut chunk = vec![0; length + 2];
            stream.read_exact(&mut chunk).await.ok()?;
            if length == 0 {
                return Some(body);
            }
            body.extend_from_slice(&chunk[..length]);
        }
    }

    async fn read_on<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> Option<Self> {
        let mut answer = Self::head_of(stream).await?;
        if let Some(length) = answer.header("content-length") {
            answer.body = vec![0; length.parse().unwrap()];
            stream.read_exact(&mut answer.body).await.ok()?;
        }
        let is_stream = answer.header("content-type").is_some_and(|of| of.starts_with("text/event-stream"));
        if !is_stream && answer.header("transfer-encoding") == Some("chunked") {
            answer.body = Self::chunks_of(stream).await?;
        }
        Some(answer)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// A header whose value has small and capital letters that matter.
    pub(crate) fn header_as_sent(&self, name: &str) -> Option<&str> {
        let mut lines = self.head_as_sent.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The code of a problem document.
    pub(crate) fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let document = self.json();
        assert_eq!(document["status"], self.status, "{self:?}");
        document["code"].as_str().unwrap().to_owned()
    }
}

/// Whether the other side has ended the connection, without a word or with one.
pub(crate) async fn ended<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> bool {
    let mut rest = Vec::new();
    // A reset is an end, too.
    tokio::time::timeout(SOON, stream.read_to_end(&mut rest)).await.is_ok()
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let soon = tokio::time::Instant::now() + SOON;
    while !so().await {
        assert!(tokio::time::Instant::now() < soon, "in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// How many descriptors this process holds, where that can be known.
pub(crate) fn descriptors() -> Option<usize> {
    std::fs::read_dir("/proc/self/fd").ok().map(Iterator::count)
}

/// The whole log of this process.
pub(crate) fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| {
        let log = Log::default();
        let logs = banyan_server::logs::Logs::at("trace").unwrap();
        let written = log.clone();
        let subscriber = logs.subscriber(false, move || written.clone());
        tracing::subscriber::set_global_default(subscriber).unwrap();
        log
    })
}

#[derive(Clone, Default)]
pub(crate) struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
