//! Where an engine is, and how it is reached.

use std::fmt;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::prompt::Prompt;

/// Where an engine is.
#[derive(Clone)]
pub enum Engine {
    /// At an address, such as `ws://127.0.0.1:49134`.
    Url(String),
    /// In this process: each call of the function gives a stream that leads to it.
    Here(Arc<dyn Fn() -> DuplexStream + Send + Sync>),
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::Here(_) => f.write_str("the bus of this process"),
        }
    }
}

/// Bytes in both directions.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A frame as large as the largest attachment fits, with room for its JSON.
const MOST_BYTES: usize = 128 << 20;

impl Engine {
    /// Connects, and agrees to speak WebSocket.
    pub(super) async fn dial(&self) -> Result<WebSocketStream<Box<dyn Stream>>, Error> {
        let config =
            WebSocketConfig::default().max_message_size(Some(MOST_BYTES)).max_frame_size(Some(MOST_BYTES));
        let (url, stream): (&str, Box<dyn Stream>) = match self {
            Self::Url(url) => (url, tcp(url).await?),
            Self::Here(connect) => ("ws://localhost/", Box::new(connect())),
        };
        let (socket, _) = tokio_tungstenite::client_async_with_config(url, stream, Some(config)).await?;
        Ok(socket)
    }
}

async fn tcp(url: &str) -> Result<Box<dyn Stream>, Error> {
    use tokio_tungstenite::tungstenite::client::IntoClientRequest;
    use tokio_tungstenite::tungstenite::error::UrlError;

    let request = url.into_client_request()?;
    let uri = request.uri();
    if uri.scheme_str() != Some("ws") {
        return Err(Error::Url(UrlError::UnsupportedUrlScheme));
    }
    let host = uri.host().ok_or(Error::Url(UrlError::NoHostName))?.trim_matches(['[', ']']);
    let stream = tokio::net::TcpStream::connect((host, uri.port_u16().unwrap_or(80))).await?;
    Ok(Box::new(Prompt::new(stream)?))
}
