//! A socket with its place among the connections that a server takes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use prometheus_client::metrics::gauge::Gauge;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;

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
    unread: Unread,
    /// Until when whatever still arrives is taken in before the socket is closed.
    lingers: Option<Pin<Box<Sleep>>>,
    _place: Place,
}

impl<S> Placed<S> {
    pub(crate) fn new(stream: S, place: Place) -> Self {
        Self { stream, unread: Unread::default(), lingers: None, _place: place }
    }

    /// What is not read of its requests.
    pub(crate) fn unread(&self) -> Unread {
        self.unread.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Placed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Placed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
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
