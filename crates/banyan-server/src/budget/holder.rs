//! Who the use of a budget is accounted to, and the connection that it came by.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hyper::http::Extensions;

use super::{Lease, Refusal};
use crate::caller::Caller;
use crate::intake::Intake;
use crate::keys::Key;

/// Who the use of a budget is accounted to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// A key, by its id.
    Key(Arc<str>),
    /// A client without a key, by its address.
    Address(IpAddr),
}

impl Holder {
    /// The holder of a request: its key, or the address that it came from.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        match extensions.get::<Caller>() {
            Some(caller) => caller.holder(),
            None => extensions.get::<Peer>().map_or(Self::UNKNOWN, Peer::holder),
        }
    }

    /// The holder of a request with this key, that came by this connection.
    pub(crate) fn of_parts(key: Option<&Key>, peer: Option<&Peer>) -> Self {
        match (key, peer) {
            (Some(key), _) => Self::key(key),
            (None, Some(peer)) => peer.holder(),
            (None, None) => Self::UNKNOWN,
        }
    }

    /// A key as a holder.
    pub(crate) fn key(key: &Key) -> Self {
        Self::Key(key.id.as_str().into())
    }

    /// A request that came by no connection.
    pub(crate) const UNKNOWN: Self = Self::Address(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
}

/// The other side of a connection. Each of its requests carries this.
#[derive(Clone)]
pub(crate) struct Peer(Arc<Inner>);

struct Inner {
    address: IpAddr,
    /// The connection's own lease, and the key that it was moved to.
    place: Mutex<Lease>,
    key: OnceLock<String>,
    intake: Intake,
}

impl Peer {
    pub(crate) fn new(address: IpAddr, place: Lease) -> Self {
        let inner = Inner {
            address: address.to_canonical(),
            place: Mutex::new(place),
            key: OnceLock::new(),
            intake: Intake::default(),
        };
        Self(Arc::new(inner))
    }

    /// Its address as a holder.
    pub(crate) fn holder(&self) -> Holder {
        Holder::Address(self.0.address)
    }

    /// What arrives on the connection once it is a WebSocket.
    pub(crate) fn intake(&self) -> &Intake {
        &self.0.intake
    }

    /// Accounts the connection to the first key that it is used with, in place of its address.
    pub(crate) fn charge_to(&self, key: &Key) -> Result<(), Refusal> {
        if self.0.key.get().is_some() {
            return Ok(());
        }
        let mut place = self.0.place.lock().unwrap_or_else(PoisonError::into_inner);
        if self.0.key.get().is_none() {
            place.move_to(Holder::key(key))?;
            let _ = self.0.key.set(key.id.clone());
        }
        Ok(())
    }
}
