//! A socket with its place among the connections that a server takes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;

use crate::budget::Peer;
use crate::unread::{PATIENCE, Unread};

/// One of the places; free again when it is dropped.
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
    taken: Gauge,
}

impl Place {
    pub(crate) fn new(permit: OwnedSemaphorePermit, taken: Gauge) -> Self {
        taken.inc();
        Self { _permit: permit, taken }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.taken.dec();
    }
}

/// A socket that holds a place as long as it is open, whoever has it.
pub(crate) struct Placed<S> {
    // The socket is closed before its place is free.
    stream: S,
    peer: Peer,
    stalled: Stalled,
    unread: Unread,
    /// Until when whatever still arrives is taken in before the socket is closed.
    lingers: Option<Pin<Box<Sleep>>>,
    _place: Place,
}

impl<S> Placed<S> {
    pub(crate) fn new(stream: S, place: Place, peer: Peer, read_timeout: Duration) -> Self {
        let stalled = Stalled { timeout: read_timeout, taken: 0, until: None };
        Self { stream, peer, stalled, unread: Unread::default(), lingers: None, _place: place }
    }

    /// The other side.
    pub(crate) fn peer(&self) -> Peer {
        self.peer.clone()
    }

    /// What is not read of its requests.
    pub(crate) fn unread(&self) -> Unread {
        self.unread.clone()
    }
}

/// A reader that does not take what it is sent.
struct Stalled {
    timeout: Duration,
    /// How much it took since the timeout began.
    taken: usize,
    until: Option<Pin<Box<Sleep>>>,
}

/// How much a reader has to take before the timeout ends.
const PROGRESS: usize = 4 << 10;

impl Stalled {
    /// Passes the result of a write on, or an error when the reader has taken too little for too long.
    fn check(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(bytes)) if self.until.is_some() => {
                self.taken += bytes;
                if self.taken >= PROGRESS {
                    self.until = None;
                }
            }
            Poll::Ready(_) => {}
            Poll::Pending => {
                let until = self.until.get_or_insert_with(|| {
                    self.taken = 0;
                    Box::pin(tokio::time::sleep(self.timeout))
                });
                if until.as_mut().poll(cx).is_ready() {
                    tracing::debug!("a connection ends: its reader takes nothing");
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Placed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if let Poll::Ready(Ok(())) = polled {
            self.peer.intake().received(buf.filled().len() - before)?;
        }
        polled
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Placed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.stalled.check(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.stalled.check(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() {
            self.stalled.until = None;
        }
        self.stalled.check(cx, flushed.map_ok(|()| 0)).map_ok(|_| ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, unread, lingers, .. } = &mut *self;
        if lingers.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
            if !unread.cut_short() {
                return Poll::Ready(Ok(()));
            }
        }
        // Hanging up on what is still being sent would take the answer back.
        let until = lingers.get_or_insert_with(|| Box::pin(tokio::time::sleep(PATIENCE)));
        let mut space = [0; 8 << 10];
        loop {
            let mut buf = ReadBuf::new(&mut space);
            if until.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let read = ready!(Pin::new(&mut *stream).poll_read(cx, &mut buf));
            if read.is_err() || buf.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
