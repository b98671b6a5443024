//! Taking connections: how many, how long each may be silent, and how they end.
//!
//! A connection's place belongs to its socket, not to the task that reads requests from it, because a WebSocket outlives
//! that task. Whoever holds the socket holds the place, and the server has drained when every place is free again.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use futures_util::TryFutureExt;
use hyper::body::Incoming;
use hyper::header::CONTENT_LENGTH;
use hyper::server::conn::http1::UpgradeableConnection;
use hyper::server::conn::{http1, http2};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt;

use crate::apart::Apart;
use crate::app::Shared;
use crate::budget::{Holder, Peer};
use crate::problem::Problem;
use crate::socket::{Place, Placed};
use crate::tls::Certificates;

/// How many callers are told at a time that there is no place; more are just hung up on.
const TURNED_AWAY: usize = 256;

/// Takes connections until the server stops, and then waits for their open calls.
pub(crate) async fn accept(
    listener: TcpListener,
    tls: Option<Arc<Certificates>>,
    router: Router,
    app: Shared,
    most: usize,
) {
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    let places = Arc::new(Semaphore::new(most as usize));
    let refusals = Arc::new(Semaphore::new(TURNED_AWAY));
    let (cut, _) = watch::channel(());
    let servers = Arc::new(Servers::new(&app));
    let stopped = app.stopped();
    tokio::pin!(stopped);
    loop {
        let (stream, address) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors, most likely. Connections that end make room.
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut stopped => break,
        };
        let taken = Arc::clone(&places).try_acquire_owned().map_err(|_| too_many()).and_then(|permit| {
            let holder = Holder::Address(address.ip().to_canonical());
            Ok((permit, app.connections.try_take(holder, 1)?))
        });
        let (permit, lease) = match taken {
            Ok(taken) => taken,
            Err(problem) => {
                app.metrics.turned_away.inc();
                // Over TLS nothing can be said before a handshake, which is work.
                if let (None, Ok(permit)) = (&tls, Arc::clone(&refusals).try_acquire_owned()) {
                    tokio::spawn(async move {
                        turn_away(stream, &problem).await;
                        drop(permit);
                    });
                }
                continue;
            }
        };
        prepare(&stream);
        let place = Place::new(permit, app.metrics.connections.clone());
        let peer = Peer::new(address.ip(), lease);
        let read_timeout = app.settings.limits.read_timeout;
        let connection = Connection {
            app: Arc::clone(&app),
            servers: Arc::clone(&servers),
            router: router.clone(),
            cut: cut.subscribe(),
            limit: app.settings.limits.head_timeout,
        };
        let (limit, app) = (app.settings.limits.head_timeout, Arc::clone(&app));
        match &tls {
            None => drop(tokio::spawn(async move {
                if let Some(Ok(Some(version))) = in_time(limit, &app, version_of(&stream)).await {
                    connection.serve(version, Placed::new(stream, place, peer, read_timeout)).await;
                }
            })),
            Some(tls) => {
                let tls = tls.acceptor();
                tokio::spawn(async move {
                    match in_time(limit, &app, tls.accept(stream)).await {
                        Some(Ok(stream)) => {
                            let version = match stream.get_ref().1.alpn_protocol() {
                                Some(b"h2") => Version::Two,
                                _ => Version::One,
                            };
                            connection.serve(version, Placed::new(stream, place, peer, read_timeout)).await;
                        }
                        Some(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                        None => {}
                    }
                });
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(app.settings.drain, places.acquire_many(most)).await.is_err() {
        tracing::warn!("some calls did not finish in time and are cut off");
        let _ = cut.send(());
    }
}

/// Answers leave at once, and a peer that takes nothing in for long is given up.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, 120_000);
}

/// The version of HTTP that a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The version that a connection begins with, before anything is taken from it; `None` when it is closed. A server that finds
/// out by itself needs 8 KiB more for each connection from then on.
async fn version_of(stream: &TcpStream) -> std::io::Result<Option<Version>> {
    const TWO: &[u8] = b"PRI ";
    let mut start = [0; TWO.len()];
    loop {
        match stream.peek(&mut start).await? {
            0 => return Ok(None),
            seen if !TWO.starts_with(&start[..seen]) => return Ok(Some(Version::One)),
            seen if seen == TWO.len() => return Ok(Some(Version::Two)),
            // Part of a word. Nothing tells when there is more of it.
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Whoever does not begin in time is not waited for, and nobody is when the server stops.
async fn in_time<T>(limit: Duration, app: &Shared, begun: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        begun = tokio::time::timeout(limit, begun) => match begun {
            Ok(begun) => Some(begun),
            Err(_) => {
                tracing::debug!("a connection asked for nothing");
                None
            }
        },
        () = app.stopped() => None,
    }
}

/// How each version is served.
struct Servers {
    one: http1::Builder,
    two: http2::Builder<TokioExecutor>,
}

impl Servers {
    fn new(app: &Shared) -> Self {
        let limits = &app.settings.limits;
        // A head that is over the limit, but not by much, still gets here and is told so (`guard.rs`).
        let head = limits.header_bytes.saturating_mul(2).max(16 << 10);
        let mut one = http1::Builder::new();
        one.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout).max_buf_size(head).half_close(true);
        let mut two = http2::Builder::new(TokioExecutor::new());
        two.timer(TokioTimer::new())
            .max_header_list_size(u32::try_from(head).unwrap_or(u32::MAX))
            .keep_alive_interval(limits.head_timeout)
            // What a connection may hold that nobody has read yet, and what a slow reader of a stream may.
            .initial_connection_window_size(UNREAD_WINDOW)
            .initial_stream_window_size(UNREAD_WINDOW)
            .max_send_buf_size(UNSENT)
            .max_concurrent_streams(256);
        Self { one, two }
    }
}

struct Connection {
    app: Shared,
    servers: Arc<Servers>,
    router: Router,
    cut: watch::Receiver<()>,
    limit: Duration,
}

impl Connection {
    async fn serve<S>(self, version: Version, stream: Placed<S>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let spoken = Arc::new(AtomicBool::new(false));
        let Self { app, servers, router, cut, limit } = self;
        let first = Arc::clone(&spoken);
        let (unread, peer) = (stream.unread(), stream.peer());
        let (io, silent) = (TokioIo::new(stream), silent(&spoken, limit));
        match version {
            Version::One => {
                let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
                    first.store(true, Ordering::Relaxed);
                    request.extensions_mut().insert(peer.clone());
                    let (router, unread) = (router.clone(), unread.clone());
                    Apart::new(async move {
                        unread.answer(request, |request| router.oneshot(request)).await.map(without_length)
                    })
                });
                let connection = Box::pin(servers.one.serve_connection(io, service).with_upgrades());
                until_over(connection, UpgradeableConnection::graceful_shutdown, silent, &app, cut).await;
            }
            Version::Two => {
                let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
                    first.store(true, Ordering::Relaxed);
                    request.extensions_mut().insert(peer.clone());
                    router.clone().oneshot(request.map(axum::body::Body::new)).map_ok(without_length)
                });
                let connection = Box::pin(servers.two.serve_connection(io, service));
                until_over(connection, http2::Connection::graceful_shutdown, silent, &app, cut).await;
            }
        }
    }
}

/// What is not sent has no length: that of nothing would be taken for the file's (RFC 9110, 8.6).
fn without_length<B>(mut response: Response<B>) -> Response<B> {
    if response.status() == StatusCode::NOT_MODIFIED {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    response
}

/// Serves a connection to its end. When the server stops, it is told to `finish` what it has begun.
async fn until_over<C: Future<Output = hyper::Result<()>>>(
    mut connection: Pin<Box<C>>,
    finish: impl Fn(Pin<&mut C>),
    silent: impl Future<Output = ()>,
    app: &Shared,
    mut cut: watch::Receiver<()>,
) {
    let (mut silent, mut stopped) = (pin!(silent), pin!(app.stopped()));
    let mut finishing = false;
    loop {
        tokio::select! {
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended badly");
                }
                return;
            }
            () = &mut stopped, if !finishing => {
                finishing = true;
                finish(connection.as_mut());
            }
            () = &mut silent => return tracing::debug!("a connection asked for nothing"),
            _ = cut.changed() => return,
        }
    }
}

/// Returns when no request has come in time. Later ones have a limit of their own; before the first of HTTP/2 nobody else
/// looks at the clock.
async fn silent(spoken: &AtomicBool, limit: Duration) {
    tokio::time::sleep(limit).await;
    if spoken.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

/// How many bytes of requests an HTTP/2 connection may send before they are read.
const UNREAD_WINDOW: u32 = 256 << 10;

/// How many bytes of a response over HTTP/2 are held for its reader.
const UNSENT: usize = 64 << 10;

/// There is no place left.
fn too_many() -> Problem {
    Problem::busy("http/too_many_connections", "this server has as many connections as it takes")
}

/// Says why a connection is not taken.
async fn turn_away(mut stream: TcpStream, problem: &Problem) {
    let detail = serde_json::to_string(&problem.document()).unwrap_or_default();
    let answer = format!(
        "HTTP/1.1 {}\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\nretry-after: 1\r\nconnection: close\r\n\r\n{detail}",
        problem.status,
        detail.len()
    );
    let said = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // Hanging up on what was sent meanwhile would take the answer back.
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        std::io::Result::Ok(())
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), said).await;
}
