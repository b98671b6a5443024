//! Taking connections: how many, how long each may be silent, and how they end.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::app::Shared;

/// Takes connections until the server stops, and then waits for their open calls.
pub(crate) async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, router: Router, app: Shared) {
    let places = Arc::new(Semaphore::new(app.settings.limits.connections));
    let draining = GracefulShutdown::new();
    let server = Arc::new(builder(&app));
    let stopped = app.stopped();
    tokio::pin!(stopped);
    loop {
        let (stream, _) = tokio::select! {
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
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tokio::spawn(turn_away(stream));
            continue;
        };
        let _ = stream.set_nodelay(true);
        let connection = Connection { server: Arc::clone(&server), router: router.clone(), place };
        match &tls {
            None => connection.spawn(stream, &draining),
            Some(tls) => {
                let (tls, limit, watcher) = (tls.clone(), app.settings.limits.head_timeout, draining.watcher());
                tokio::spawn(async move {
                    // Whoever does not finish a handshake in time is not waited for.
                    if let Ok(Ok(stream)) = tokio::time::timeout(limit, tls.accept(stream)).await {
                        connection.serve(stream, watcher).await;
                    }
                });
            }
        }
    }
    drop(listener);
    let closed = async {
        draining.shutdown().await;
        app.sockets_closed().await;
    };
    if tokio::time::timeout(app.settings.drain, closed).await.is_err() {
        tracing::warn!("some calls did not finish in time and were cut off");
    }
}

fn builder(app: &Shared) -> Builder<TokioExecutor> {
    let limits = &app.settings.limits;
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(limits.header_bytes.max(8 << 10))
        .half_close(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(limits.head_timeout)
        .max_concurrent_streams(256);
    builder
}

struct Connection {
    server: Arc<Builder<TokioExecutor>>,
    router: Router,
    place: OwnedSemaphorePermit,
}

impl Connection {
    fn spawn(self, stream: TcpStream, draining: &GracefulShutdown) {
        let watcher = draining.watcher();
        tokio::spawn(async move { self.serve(stream, watcher).await });
    }

    async fn serve<S>(self, stream: S, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let router = self.router;
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let router = router.clone();
            async move { router.oneshot(request.map(axum::body::Body::new)).await }
        });
        let connection = self.server.serve_connection_with_upgrades(TokioIo::new(stream), service);
        if let Err(error) = watcher.watch(connection.into_owned()).await {
            tracing::debug!(%error, "a connection ended badly");
        }
        drop(self.place);
    }
}

/// Says that there is no place left.
async fn turn_away(mut stream: TcpStream) {
    let detail = r#"{"type":"urn:banyan:problem:http/too_many_connections","title":"Service Unavailable","status":503,"detail":"this server has as many connections as it takes","code":"http/too_many_connections"}"#;
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\nretry-after: 1\r\nconnection: close\r\n\r\n{detail}",
        detail.len()
    );
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(answer.as_bytes())).await;
}
