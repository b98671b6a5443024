//! A writer that goes on whatever happens to the server: what was not answered is sent again, under the same id.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The last entry.
pub(crate) const END: &str = "e_end";

pub(crate) struct Writer {
    written: Arc<AtomicUsize>,
    enough: Arc<AtomicBool>,
    thread: JoinHandle<Vec<String>>,
}

impl Writer {
    pub(crate) fn start(at: SocketAddr) -> Self {
        let (written, enough) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, stop) = (Arc::clone(&written), Arc::clone(&enough));
        let thread = std::thread::spawn(move || {
            insist(at, "session::ensure", &json!({"session_id": "s"}));
            let mut ids = Vec::new();
            loop {
                let last = stop.load(Ordering::Acquire);
                let id = if last { END.to_owned() } else { format!("e_{}", ids.len()) };
                let message = json!({"role": "user", "content": [{"type": "text", "text": id}], "timestamp": 1});
                insist(at, "session::append", &json!({"session_id": "s", "entry_id": id, "message": message}));
                ids.push(id);
                count.store(ids.len(), Ordering::Release);
                if last {
                    return ids;
                }
            }
        });
        Self { written, enough, thread }
    }

    /// Waits until so many more were written; how many there are then.
    pub(crate) fn wait_for_more(&self, more: usize) -> usize {
        let goal = self.written.load(Ordering::Acquire) + more;
        let begun = Instant::now();
        while self.written.load(Ordering::Acquire) < goal {
            assert!(begun.elapsed() < Duration::from_secs(60), "the writer goes on");
            std::thread::yield_now();
        }
        goal
    }

    /// Writes the last entry; all that were written, in order.
    pub(crate) fn finish(self) -> Vec<String> {
        self.enough.store(true, Ordering::Release);
        self.thread.join().unwrap()
    }
}

/// Calls until it is answered.
fn insist(at: SocketAddr, function: &str, request: &Value) {
    let begun = Instant::now();
    while !call(at, function, request).unwrap_or(false) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{function} is answered");
        std::thread::yield_now();
    }
}

fn call(at: SocketAddr, function: &str, request: &Value) -> std::io::Result<bool> {
    let mut socket = TcpStream::connect(at)?;
    let body = request.to_string();
    let length = body.len();
    write!(
        socket,
        "POST /v1/call/{function} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    Ok(answer.starts_with("HTTP/1.1 200"))
}
