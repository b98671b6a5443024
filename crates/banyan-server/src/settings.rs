//! How a server behaves.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// How a server behaves. `Settings::default()` is what a laptop wants.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens. An address past loopback needs a key.
    pub listen: SocketAddr,
    /// The certificate that it shows, if it speaks TLS.
    pub tls: Option<Tls>,
    /// Web pages from these origins may call it from a browser, `*` being all.
    pub cors_origins: Vec<String>,
    /// Names, besides those of loopback, that it may be called by while it has no key.
    pub hosts: Vec<String>,
    /// How much it takes on.
    pub limits: Limits,
    /// How often a quiet stream is sent a comment, so that proxies keep it open.
    pub keep_alive: Duration,
    /// How long open calls may take once it is told to stop.
    pub drain: Duration,
    /// Whether a session begins when a call names a context of the Open Context Protocol that has none.
    pub create_context_sessions: bool,
    /// Where spans are sent, if anywhere.
    pub traces: Option<Traces>,
}

/// Where spans are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traces {
    /// The collector's address, for example `http://127.0.0.1:4318`.
    pub endpoint: String,
    /// What the server is called in its spans.
    pub service: String,
}

/// The files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The chain, in PEM.
    pub certificate: PathBuf,
    /// The private key, in PEM.
    pub key: PathBuf,
}

/// How much a server takes on.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most bytes that a request's body may have.
    pub body_bytes: usize,
    /// The most bytes that a file may have that is imported.
    pub import_bytes: usize,
    /// The most bytes of request bodies that are in memory at a time, over all connections. One of the largest fits,
    /// whatever this says.
    pub request_memory: usize,
    /// The most bytes of responses that wait to be read at a time, over all connections.
    pub response_memory: usize,
    /// The most bytes that a request's head may have.
    pub header_bytes: usize,
    /// The most connections at a time.
    pub connections: usize,
    /// The most subscriptions at a time, over all connections.
    pub subscriptions: usize,
    /// The most subscriptions of one WebSocket connection.
    pub subscriptions_per_socket: usize,
    /// How long a request's head may take, and how long a connection may be idle.
    pub head_timeout: Duration,
    /// The least bytes a second that a request's body, or a message of a WebSocket, must bring while it is sent.
    pub body_rate: usize,
    /// Over which time that rate is measured.
    pub body_timeout: Duration,
    /// How long a response may wait until its reader takes 4 KiB of it; then the connection is closed.
    pub read_timeout: Duration,
    /// The most requests a second of one key; none is no limit.
    pub requests_per_second: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7420)),
            tls: None,
            cors_origins: Vec::new(),
            hosts: Vec::new(),
            limits: Limits::default(),
            keep_alive: Duration::from_secs(15),
            drain: Duration::from_secs(8),
            create_context_sessions: false,
            traces: None,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 64 << 20,
            import_bytes: 4 << 30,
            request_memory: 80 << 20,
            response_memory: 256 << 20,
            header_bytes: 64 << 10,
            connections: 20_000,
            subscriptions: 20_000,
            subscriptions_per_socket: 100,
            head_timeout: Duration::from_secs(30),
            body_rate: 4 << 10,
            body_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(60),
            requests_per_second: None,
        }
    }
}
