//! One connection: a task that reads, and a task that writes.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Bytes, Error, Message as Frame};

use super::admission::Withdrawal;
use super::frames::Reader;
use super::handshake::{self, Accepted, Purpose};
use super::outbox::{Ending, Outbox, Queue, outbox};
use super::{Door, Hub};

/// How many messages are written before they are flushed together.
const BATCH: usize = 256;

/// How long the other side may take to hear that the connection ends.
const FAREWELL: Duration = Duration::from_secs(5);

const WITHDRAWN: &str = "this connection is not admitted any more: the keys of the directory have changed";

/// Why a connection ended.
enum End {
    /// The other side went.
    Gone,
    /// This side ends it, and says why.
    Told(CloseFrame),
    /// A message was too large, and the rest of it is still on its way.
    TooLarge(CloseFrame),
}

pub(super) async fn run<S>(
    hub: &Hub,
    stream: S,
    peer: Option<IpAddr>,
    mut stopped: watch::Receiver<bool>,
    door: Door,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let accepted = tokio::select! {
        accepted = handshake::accept(stream, hub.options().frame_bytes, &door) => accepted,
        () = stop(&mut stopped) => None,
    };
    match accepted {
        Some(Accepted { socket, purpose: Purpose::Worker, withdrawal }) => {
            worker(hub, socket, peer, stopped, withdrawal).await;
        }
        Some(Accepted { socket, purpose: Purpose::Telemetry, withdrawal }) => {
            telemetry(hub, socket, stopped, withdrawal).await;
        }
        None => {}
    }
}

async fn worker<S>(
    hub: &Hub,
    socket: WebSocketStream<S>,
    peer: Option<IpAddr>,
    mut stopped: watch::Receiver<bool>,
    withdrawal: Withdrawal,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sink, mut frames) = socket.split();
    let (outbox, queue) = outbox(hub.options().queue_bytes);
    let mut writer = tokio::spawn(write(sink, queue, hub.options().silence));
    let mut reader = Reader::connect(hub, outbox.clone(), peer);
    let end = tokio::select! {
        end = read(hub, &mut reader, &mut frames, &outbox) => end,
        () = stop(&mut stopped) => Told::restart(),
        () = withdrawal => Told::withdrawn(&reader),
        why = outbox.ended() => match why {
            Ending::Behind => Told::behind(hub, &reader),
            Ending::Replaced => Told::replaced(),
        },
        // A write failed or took too long.
        _ = &mut writer => End::Gone,
    };
    reader.disconnect();
    let (frame, in_the_middle) = match end {
        End::Gone => return writer.abort(),
        End::Told(frame) => (frame, false),
        End::TooLarge(frame) => (frame, true),
    };
    outbox.control(Frame::Close(Some(frame)));
    // The writer ends after the close that it was given. What the other side still sends is taken, so that it gets to read the close.
    let farewell = async {
        let Ok(Some(sink)) = (&mut writer).await else { return };
        if !in_the_middle {
            while let Some(Ok(_)) = frames.next().await {}
        } else if let Ok(socket) = frames.reunite(sink) {
            drain(socket.into_inner()).await;
        }
    };
    let _ = timeout(FAREWELL, farewell).await;
    writer.abort();
}

async fn read<S>(
    hub: &Hub,
    reader: &mut Reader<'_>,
    frames: &mut SplitStream<WebSocketStream<S>>,
    outbox: &Outbox,
) -> End
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let options = hub.options();
    let mut ping = interval_at(Instant::now() + options.ping_every, options.ping_every);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let announced = tokio::time::sleep(options.announce_within);
    tokio::pin!(announced);
    let mut heard = Instant::now();
    loop {
        tokio::select! {
            frame = frames.next() => {
                heard = Instant::now();
                match frame {
                    Some(Ok(Frame::Text(text))) => reader.take(text).await,
                    Some(Ok(Frame::Binary(bytes))) => reader.take_bytes(bytes).await,
                    None => return End::Gone,
                    // Pings and closes are answered by whatever reads or writes next.
                    Some(Ok(_)) => {}
                    Some(Err(Error::Capacity(error))) => return Told::too_large(hub, reader, &error),
                    Some(Err(error)) => {
                        tracing::debug!(worker = reader.worker_id(), %error, "a connection broke");
                        return End::Gone;
                    }
                }
            }
            () = &mut announced, if reader.waits() => reader.stop_waiting(),
            _ = ping.tick() => {
                if heard.elapsed() >= options.silence {
                    return Told::silent(reader);
                }
                outbox.control(Frame::Ping(Bytes::new()));
            }
        }
    }
}

/// Sends what is queued, until there is a close among it or the other side takes nothing any more. Whole batches are flushed at once.
async fn write<S>(
    mut sink: SplitSink<WebSocketStream<S>, Frame>,
    mut queue: Queue,
    patience: Duration,
) -> Option<SplitSink<WebSocketStream<S>, Frame>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut batch = Vec::new();
    while queue.take(&mut batch, BATCH).await > 0 {
        for frame in batch.drain(..) {
            let (bytes, last) = (frame.len(), frame.is_close());
            match timeout(patience, sink.feed(frame)).await {
                Ok(Ok(())) => queue.sent(bytes),
                Ok(Err(_)) => return None,
                Err(_) => return stalled(patience),
            }
            if last {
                return timeout(patience, sink.flush()).await.ok()?.ok().map(|()| sink);
            }
        }
        match timeout(patience, sink.flush()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return None,
            Err(_) => return stalled(patience),
        }
    }
    None
}

fn stalled<T>(patience: Duration) -> Option<T> {
    tracing::warn!(?patience, "a worker took nothing of what was sent to it for too long and is disconnected");
    None
}

/// What SDKs send about themselves is taken, so that they do not complain, and dropped.
async fn telemetry<S>(
    hub: &Hub,
    mut socket: WebSocketStream<S>,
    mut stopped: watch::Receiver<bool>,
    mut withdrawal: Withdrawal,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let silence = hub.options().silence;
    loop {
        tokio::select! {
            frame = timeout(silence, socket.next()) => match frame {
                Ok(Some(Ok(Frame::Close(_)) | Err(_)) | None) => return,
                Ok(Some(Ok(_))) => {}
                // These are silent when there is nothing to tell; a ping finds out whether somebody is there.
                Err(_) => if socket.send(Frame::Ping(Bytes::new())).await.is_err() { return },
            },
            () = stop(&mut stopped) => {
                let _ = timeout(FAREWELL, socket.close(Some(close(CloseCode::Restart, "the bus ends")))).await;
                return;
            }
            () = &mut withdrawal => {
                let _ = timeout(FAREWELL, socket.close(Some(close(CloseCode::Policy, WITHDRAWN)))).await;
                return;
            }
        }
    }
}

/// Takes the rest of a message that nobody wants.
async fn drain<S: AsyncRead + Unpin>(mut stream: S) {
    let mut dropped = vec![0; 16 << 10];
    while stream.read(&mut dropped).await.is_ok_and(|count| count > 0) {}
}

async fn stop(stopped: &mut watch::Receiver<bool>) {
    if stopped.wait_for(|stopped| *stopped).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn close(code: CloseCode, reason: impl Into<String>) -> CloseFrame {
    CloseFrame { code, reason: reason.into().into() }
}

/// What a client is told at the end. Codes 1000 and 1001 are avoided: some SDKs take them to mean that they need not come back.
struct Told;

impl Told {
    fn restart() -> End {
        End::Told(close(CloseCode::Restart, "the bus ends"))
    }

    fn withdrawn(reader: &Reader<'_>) -> End {
        tracing::info!(worker = reader.worker_id(), "a worker is disconnected: {WITHDRAWN}");
        End::Told(close(CloseCode::Policy, WITHDRAWN))
    }

    fn replaced() -> End {
        End::Told(close(CloseCode::Policy, "the worker has a newer connection"))
    }

    fn silent(reader: &Reader<'_>) -> End {
        tracing::warn!(worker = reader.worker_id(), "a worker was not heard of for too long and is disconnected");
        End::Told(close(CloseCode::Again, "nothing was heard of the worker for too long"))
    }

    fn behind(hub: &Hub, reader: &Reader<'_>) -> End {
        let bytes = hub.options().queue_bytes;
        tracing::warn!(worker = reader.worker_id(), bytes, "a worker fell too far behind and is disconnected");
        End::Told(close(CloseCode::Again, format!("more than {bytes} bytes waited for the worker")))
    }

    fn too_large(hub: &Hub, reader: &Reader<'_>, error: &dyn std::error::Error) -> End {
        tracing::warn!(worker = reader.worker_id(), %error, "a worker sent a message that is too large");
        let most = hub.options().frame_bytes;
        End::TooLarge(close(CloseCode::Size, format!("a message may have {most} bytes at most")))
    }
}
