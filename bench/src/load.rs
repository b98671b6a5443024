//! Load over HTTP/1.1 from one thread, with as little work as a client can do: the server is measured, not this.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::workbench::Outcome;
use crate::writers::{WRITERS, While};

/// Requests a second by 64 connections; each sends its own of `requests` again when it was answered.
pub(crate) fn rate(at: SocketAddr, requests: &[Vec<u8>], time: While) -> Outcome<f64> {
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut callers = Vec::with_capacity(WRITERS);
    for number in 0..WRITERS {
        let stream = TcpStream::connect(at)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        epoll::add(&poll, &stream, EventData::new_u64(number as u64), EventFlags::IN)?;
        let request = requests[number % requests.len()].clone();
        callers.push(Caller { stream, request, answer: vec![0; 128 << 10], filled: 0 });
    }
    for caller in &mut callers {
        caller.send()?;
    }
    let begun = Instant::now();
    let (from, until) = (begun + time.before, begun + time.before + time.counted);
    let mut counted = 0_u64;
    let mut events = Vec::with_capacity(WRITERS);
    let patience = rustix::event::Timespec::try_from(Duration::from_secs(10))?;
    loop {
        events.clear();
        if epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), Some(&patience))? == 0 {
            return Err("the server does not answer any more".into());
        }
        let now = Instant::now();
        for event in &events {
            let caller = &mut callers[event.data.u64() as usize];
            if caller.receive()? {
                counted += u64::from(now >= from);
                caller.send()?;
            }
        }
        if now >= until {
            return Ok(counted as f64 / (now - from).as_secs_f64());
        }
    }
}

struct Caller {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
    filled: usize,
}

impl Caller {
    /// A request fits what the system keeps for a connection that waits for nothing.
    fn send(&mut self) -> Outcome<()> {
        self.filled = 0;
        Ok(self.stream.write_all(&self.request)?)
    }

    /// Takes in what is there, and says whether the answer is complete.
    fn receive(&mut self) -> Outcome<bool> {
        loop {
            match self.stream.read(&mut self.answer[self.filled..]) {
                Ok(0) => return Err("the server closed a connection".into()),
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error.into()),
            }
            if let Some(whole) = self.whole()?
                && self.filled >= whole
            {
                return Ok(true);
            }
            if self.filled == self.answer.len() {
                self.answer.resize(self.filled * 2, 0);
            }
        }
    }

    /// How long the answer is, once that is known.
    fn whole(&self) -> Outcome<Option<usize>> {
        let read = &self.answer[..self.filled];
        let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
        if !read.starts_with(b"HTTP/1.1 20") {
            return Err(format!("an answer says {}", String::from_utf8_lossy(read)).into());
        }
        let head = std::str::from_utf8(&read[..end])?;
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        Ok(Some(end + 4 + length.ok_or("an answer without a length")?))
    }
}
