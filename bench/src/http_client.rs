//! One HTTP/1.1 connection that is kept open: as little work as a client can do.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::workbench::Outcome;

/// See the module.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
}

/// A request as it is sent.
pub(crate) fn request(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Outcome<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: vec![0; 16 << 10], filled: 0 })
    }

    /// Sends a request and takes in the whole answer, which must be 200 or 201. What is returned is its body.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Outcome<&[u8]> {
        self.stream.write_all(request).await?;
        let body = self.head().await?;
        let head = std::str::from_utf8(&self.buffer[..body])?;
        let length = header(head, "content-length").and_then(|value| value.parse::<usize>().ok());
        let length = length.ok_or("an answer without a length")?;
        let whole = body + length;
        if self.buffer.len() < whole {
            self.buffer.resize(whole, 0);
        }
        while self.filled < whole {
            self.filled += some(self.stream.read(&mut self.buffer[self.filled..]).await?)?;
        }
        self.filled = 0;
        Ok(&self.buffer[body..whole])
    }

    /// Sends a request whose answer has no end, and waits for its head.
    pub(crate) async fn subscribe(mut self, path: &str) -> Outcome<Stream> {
        let head = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n\r\n");
        self.stream.write_all(head.as_bytes()).await?;
        let body = self.head().await?;
        let rest = self.buffer[body..self.filled].to_vec();
        let bytes = rest.len();
        Ok(Stream { stream: self.stream, rest, bytes })
    }

    /// Reads a head, and says where the body begins.
    async fn head(&mut self) -> Outcome<usize> {
        self.filled = 0;
        loop {
            self.filled += some(self.stream.read(&mut self.buffer[self.filled..]).await?)?;
            let read = &self.buffer[..self.filled];
            if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
                if !read.starts_with(b"HTTP/1.1 20") {
                    return Err(format!("an answer says {}", String::from_utf8_lossy(read)).into());
                }
                return Ok(end + 4);
            }
        }
    }
}

/// An answer that goes on.
pub(crate) struct Stream {
    stream: TcpStream,
    /// What came with the head, and later the end of what was read last.
    rest: Vec<u8>,
    /// What was read of it so far, framing included.
    pub(crate) bytes: usize,
}

impl Stream {
    /// Reads until a word came, and gives everything that was read.
    pub(crate) async fn until(&mut self, word: &str) -> Outcome<String> {
        let mut read = std::mem::take(&mut self.rest);
        loop {
            // What came before is looked through once.
            let from = read.len().saturating_sub((16 << 10) + word.len());
            let seen = read[from..].windows(word.len()).any(|part| part == word.as_bytes());
            if seen {
                return Ok(String::from_utf8_lossy(&read).into_owned());
            }
            let kept = read.len();
            read.resize(kept + (16 << 10), 0);
            let count = some(self.stream.read(&mut read[kept..]).await?)?;
            read.truncate(kept + count);
            self.bytes += count;
        }
    }

    /// Waits for more, and gives how often `mark` came.
    pub(crate) async fn count(&mut self, mark: &[u8]) -> Outcome<usize> {
        let kept = self.rest.len();
        let mut read = std::mem::take(&mut self.rest);
        read.resize(kept + (16 << 10), 0);
        let count = some(self.stream.read(&mut read[kept..]).await?)?;
        read.truncate(kept + count);
        self.bytes += count;
        // A mark may be cut in two; what could be its first part is looked at again.
        self.rest = read[read.len().saturating_sub(mark.len() - 1)..].to_vec();
        Ok(read.windows(mark.len()).filter(|part| *part == mark).count())
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn some(read: usize) -> Outcome<usize> {
    if read == 0 { Err("the server hung up".into()) } else { Ok(read) }
}
