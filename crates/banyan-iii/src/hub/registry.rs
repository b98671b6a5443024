//! Who is connected and what they offer, want and wait for. Every change happens here, under one lock, and what follows from it is queued
//! at once, so that each worker hears of changes in their order.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{json, value::RawValue};
use uuid::Uuid;

use crate::wire::Message;

use super::calls::Call;
use super::functions::Function;
use super::outbox::{Ending, Outbox};
use super::spaces::Spaces;
use super::triggers::{Binding, FUNCTIONS_AVAILABLE, TriggerType, WORKERS_AVAILABLE};
use super::{DEFAULT_NAMESPACE, directory};

/// A connection. Numbers are not used again.
pub(super) type ConnectionId = u64;

#[derive(Default)]
pub(super) struct Registry {
    last: ConnectionId,
    pub(super) connections: BTreeMap<ConnectionId, Connection>,
    pub(super) functions: Spaces<Function>,
    pub(super) calls: HashMap<Uuid, Call>,
    pub(super) types: Spaces<TriggerType>,
    pub(super) bindings: BTreeMap<String, Binding>,
    /// Counts changes to functions.
    pub(super) functions_changes: u64,
    /// The changes that are told, or will be in a moment.
    functions_seen: u64,
    /// Whether somebody will be told of functions in a moment.
    functions_owed: bool,
}

pub(super) struct Connection {
    pub(super) outbox: Outbox,
    pub(super) worker_id: Arc<str>,
    reattach_token: String,
    pub(super) namespace: String,
    pub(super) about: About,
    pub(super) peer: Option<IpAddr>,
    pub(super) connected_at_ms: u64,
}

/// What a worker says of itself.
#[derive(Default)]
pub(super) struct About {
    pub(super) announced: bool,
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) version: Option<String>,
    pub(super) runtime: Option<String>,
    pub(super) os: Option<String>,
    pub(super) isolation: Option<String>,
    pub(super) pid: Option<u32>,
}

impl Registry {
    /// Takes a connection in and greets it.
    pub(super) fn connect(&mut self, outbox: Outbox, peer: Option<IpAddr>) -> (ConnectionId, Arc<str>) {
        self.last += 1;
        let worker_id: Arc<str> = Uuid::new_v4().to_string().into();
        let reattach_token = Uuid::new_v4().to_string();
        outbox.push(
            Message::WorkerRegistered {
                worker_id: (&*worker_id).into(),
                reattach_token: Some(reattach_token.as_str().into()),
            }
            .write(),
        );
        let connection = Connection {
            outbox,
            worker_id: worker_id.clone(),
            reattach_token,
            namespace: DEFAULT_NAMESPACE.to_owned(),
            about: About::default(),
            peer,
            connected_at_ms: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_millis() as u64),
        };
        self.connections.insert(self.last, connection);
        tracing::debug!(worker = &*worker_id, "a worker connected");
        self.tell_workers("worker_connected", &worker_id);
        (self.last, worker_id)
    }

    /// Takes out everything that a connection brought in. Whoever waits for it is told.
    pub(super) fn disconnect(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(&id) else { return };
        tracing::debug!(worker = &*connection.worker_id, "a worker is gone");
        self.functions_changes += self.functions.remove_where(|function| function.owner == id).len() as u64;
        self.forget_calls(id);
        self.forget_bindings(id);
        self.forget_types(id);
        self.tell_workers("worker_disconnected", &connection.worker_id);
    }

    /// A worker came back. Its old connection ends now, if it still stands, so that nothing of it is in the way.
    pub(super) fn reattach(&mut self, by: ConnectionId, previous: &str, token: Option<&str>) {
        let found = self.connections.iter().find(|(_, connection)| &*connection.worker_id == previous);
        let Some((&old, connection)) = found else { return };
        if old == by {
            return;
        }
        if token != Some(connection.reattach_token.as_str()) {
            tracing::warn!(worker = previous, "somebody else wanted to take a worker's place");
            return;
        }
        connection.outbox.end(Ending::Replaced);
        self.disconnect(old);
    }

    /// A worker says what it is.
    pub(super) fn announce(&mut self, id: ConnectionId, about: About, namespace: Option<String>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if !connection.about.announced {
            connection.namespace = namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
        }
        connection.about = About { announced: true, ..about };
        let worker_id = connection.worker_id.clone();
        tracing::info!(worker = &*worker_id, name = connection.about.name.as_deref(), "a worker is on the bus");
        self.tell_workers("worker_metadata_updated", &worker_id);
    }

    pub(super) fn outbox(&self, id: ConnectionId) -> Option<&Outbox> {
        self.connections.get(&id).map(|connection| &connection.outbox)
    }

    pub(super) fn namespace(&self, id: ConnectionId) -> &str {
        self.connections.get(&id).map_or(DEFAULT_NAMESPACE, |connection| &connection.namespace)
    }

    /// Whether functions changed since this was asked last, somebody wants to know, and will not be told anyway.
    pub(super) fn owes_functions(&mut self) -> bool {
        let changed =
            std::mem::replace(&mut self.functions_seen, self.functions_changes) != self.functions_changes;
        let owes = changed && !self.functions_owed && self.has_own_bindings(FUNCTIONS_AVAILABLE);
        self.functions_owed |= owes;
        owes
    }

    pub(super) fn tell_functions(&mut self) {
        self.functions_owed = false;
        let functions = directory::functions(self, &directory::FunctionsInput::everything());
        let event = json!({"event": "functions_changed", "functions": functions});
        self.fire(FUNCTIONS_AVAILABLE, &event.to_string(), |_| true);
    }

    fn tell_workers(&self, event: &str, worker_id: &str) {
        if self.has_own_bindings(WORKERS_AVAILABLE) {
            let event = json!({"event": event, "worker_id": worker_id});
            self.fire(WORKERS_AVAILABLE, &event.to_string(), |_| true);
        }
    }
}

/// Something that is passed on as it came, or not at all.
pub(super) type Raw = Option<Box<RawValue>>;
