//! What waits to be sent on a connection: bounded in bytes, and never waited for by whoever puts something in.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::{Notify, mpsc};
use tokio_tungstenite::tungstenite::{Message as Frame, Utf8Bytes};

/// What a frame costs besides its text.
const OVERHEAD: usize = 64;

/// Where others put what is to be sent.
#[derive(Clone)]
pub(super) struct Outbox(Arc<Shared>);

struct Shared {
    queue: mpsc::UnboundedSender<Frame>,
    bytes: AtomicUsize,
    limit: usize,
    over: AtomicBool,
    ending: OnceLock<Ending>,
    end: Notify,
}

/// Why somebody else ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Something had no room.
    Behind,
    /// The worker came back on another connection.
    Replaced,
}

/// Where the writer takes it from.
pub(super) struct Queue {
    frames: mpsc::UnboundedReceiver<Frame>,
    shared: Arc<Shared>,
}

pub(super) fn outbox(limit: usize) -> (Outbox, Queue) {
    let (queue, frames) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        queue,
        bytes: AtomicUsize::new(0),
        limit,
        over: AtomicBool::new(false),
        ending: OnceLock::new(),
        end: Notify::new(),
    });
    (Outbox(shared.clone()), Queue { frames, shared })
}

impl Outbox {
    /// Queues a message. When there is no room for it, the connection is at its end, and its reader hears of that.
    pub(super) fn push(&self, text: impl Into<Utf8Bytes>) {
        let frame = Frame::Text(text.into());
        if !self.has_room(frame.len()) {
            return self.end(Ending::Behind);
        }
        self.put(frame);
    }

    /// Whether so many bytes would still fit. A message always fits in an empty queue.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let waiting = self.0.bytes.load(Ordering::Relaxed);
        !self.0.over.load(Ordering::Relaxed) && (waiting == 0 || waiting + bytes + OVERHEAD <= self.0.limit)
    }

    /// Queues a ping or a close, which there is always room for.
    pub(super) fn control(&self, frame: Frame) {
        self.put(frame);
    }

    /// Ends the connection: its reader hears of it, and nothing is queued any more.
    pub(super) fn end(&self, why: Ending) {
        self.0.over.store(true, Ordering::Relaxed);
        if self.0.ending.set(why).is_ok() {
            self.0.end.notify_one();
        }
    }

    /// Returns once somebody ended the connection.
    pub(super) async fn ended(&self) -> Ending {
        self.0.end.notified().await;
        self.0.ending.get().copied().unwrap_or(Ending::Behind)
    }

    fn put(&self, frame: Frame) {
        self.0.bytes.fetch_add(frame.len() + OVERHEAD, Ordering::Relaxed);
        // Nobody takes anything any more when the connection is gone.
        let _ = self.0.queue.send(frame);
    }
}

impl Queue {
    /// Waits for something, and takes what there is, up to `most`. Nothing when every outbox is gone.
    pub(super) async fn take(&mut self, taken: &mut Vec<Frame>, most: usize) -> usize {
        self.frames.recv_many(taken, most).await
    }

    /// A frame is on its way.
    pub(super) fn sent(&self, bytes: usize) {
        self.shared.bytes.fetch_sub(bytes + OVERHEAD, Ordering::Relaxed);
    }
}
