//! What a subscriber is sent, and how it is written: a frame of an event stream, or a message of a WebSocket.

use std::fmt::Write;
use std::sync::Arc;

use banyan::model::{Event, Position};
use bytes::Bytes;
use serde::Serialize;

use super::deltas::Delta;

/// One thing that a subscriber is sent.
pub(crate) enum Frame {
    /// Something happened.
    Event(Arc<Event>),
    /// A message grew; only what was added is sent.
    Delta(Delta),
    /// A part of a snapshot.
    Part(Box<Event>),
    /// The snapshot is complete.
    SnapshotEnd(Position),
    /// The subscriber was too slow, and this is the end.
    Lagged,
    /// What was missed must be read again; then the stream goes on from here.
    Resync(Position),
}

impl Frame {
    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Event(event) => event.frame().len(),
            Self::Part(event) => event.frame().len(),
            Self::Delta(delta) => 128 + delta.text.len(),
            Self::SnapshotEnd(_) | Self::Lagged | Self::Resync(_) => 64,
        }
    }

    /// The frame as a message about a subscription of a WebSocket.
    pub(crate) fn message(&self, subscription: &str) -> String {
        let mut out = String::with_capacity(self.size() + 64);
        let _ = write!(out, r#"{{"subscription":{subscription}"#);
        if let Some(position) = self.position() {
            let _ = write!(out, r#","position":"{position}""#);
        }
        let _ = write!(out, r#","event":"{}","data":"#, self.event());
        match self {
            Self::Event(event) => out.push_str(event.json()),
            Self::Part(event) => out.push_str(event.json()),
            Self::Delta(delta) => out.push_str(&json(delta)),
            Self::SnapshotEnd(_) | Self::Lagged | Self::Resync(_) => out.push_str("{}"),
        }
        out.push('}');
        out
    }

    pub(crate) fn position(&self) -> Option<Position> {
        match self {
            Self::Event(event) => Some(event.position),
            Self::Delta(delta) => Some(delta.position),
            Self::SnapshotEnd(position) | Self::Resync(position) => Some(*position),
            Self::Part(_) | Self::Lagged => None,
        }
    }

    /// Whether nothing follows it.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self, Self::Lagged | Self::Resync(_))
    }

    fn event(&self) -> &'static str {
        match self {
            Self::Event(event) => event.event_type().as_str(),
            Self::Part(event) => event.event_type().as_str(),
            Self::Delta(_) => "banyan::delta",
            Self::SnapshotEnd(_) => "banyan::snapshot-end",
            Self::Lagged => "banyan::lagged",
            Self::Resync(_) => "banyan::resync",
        }
    }
}

/// The text of one event, which all of its subscribers are sent from.
struct Shared(Arc<Event>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.frame().as_bytes()
    }
}

/// From this size on an event is not copied for each subscriber.
const LARGE: usize = 4096;

/// Frames as one piece of an event stream.
pub(crate) fn stream_bytes(frames: &[Frame]) -> Bytes {
    if let [Frame::Event(event)] = frames
        && event.frame().len() >= LARGE
    {
        return Bytes::from_owner(Shared(Arc::clone(event)));
    }
    let mut out = String::with_capacity(frames.iter().map(Frame::size).sum());
    for frame in frames {
        match frame {
            Frame::Event(event) => out.push_str(event.frame()),
            Frame::Part(event) => out.push_str(event.frame_without_id()),
            Frame::Delta(delta) => {
                // A token is small, so the spaces that a frame may have are left out.
                let _ = write!(out, "id:{}\nevent:banyan::delta\ndata:{}\n\n", delta.position, json(delta));
            }
            Frame::SnapshotEnd(position) | Frame::Resync(position) => {
                let _ = write!(out, "id: {position}\nevent: {}\ndata: {{}}\n\n", frame.event());
            }
            Frame::Lagged => {
                let _ = write!(out, "event: {}\ndata: {{}}\n\n", frame.event());
            }
        }
    }
    out.into()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
