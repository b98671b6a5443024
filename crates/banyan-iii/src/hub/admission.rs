//! Who may join a bus, decided by the program that it is part of.

use std::pin::Pin;

use tokio_tungstenite::tungstenite::handshake::server::Request;
use tokio_tungstenite::tungstenite::http::StatusCode;

/// Decides at the handshake whether a connection may join.
pub trait Admission: Send + Sync {
    /// Admits the connection of this request, until the future that is returned resolves, or says why not.
    fn admit(&self, request: &Request) -> Result<Withdrawal, Refusal>;
}

/// Resolves when an admitted connection may not stay.
pub type Withdrawal = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Why a connection may not join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status that the handshake is answered with.
    pub status: StatusCode,
    /// What the client is to read.
    pub reason: String,
}
