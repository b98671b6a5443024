//! Telling those who follow a session's active path that it ends elsewhere now. Choosing a leaf is not an event of the contract.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use banyan_model::SessionId;
use tokio::sync::watch;

use crate::Banyan;

/// Those who watch, by session.
#[derive(Default)]
pub(crate) struct LeafWatches(Mutex<HashMap<SessionId, watch::Sender<()>>>);

/// Tells when another leaf of a session is chosen. Appending to the leaf is not choosing one.
pub struct LeafWatch {
    watches: Arc<LeafWatches>,
    session_id: SessionId,
    receiver: watch::Receiver<()>,
}

impl Banyan {
    /// Watches a session's leaf from now on.
    pub fn watch_leaf(&self, id: &SessionId) -> LeafWatch {
        let watches = Arc::clone(&self.store.leaf_watches);
        let receiver = watches.lock().entry(id.clone()).or_insert_with(|| watch::channel(()).0).subscribe();
        LeafWatch { watches, session_id: id.clone(), receiver }
    }
}

impl LeafWatches {
    /// Tells those who watch a session.
    pub(crate) fn moved(&self, id: &SessionId) {
        if let Some(sender) = self.lock().get(id) {
            sender.send_replace(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeafWatch {
    /// Waits until another leaf is chosen.
    pub async fn moved(&mut self) {
        if self.receiver.changed().await.is_err() {
            // Whoever could tell is gone, so nothing will ever be told.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for LeafWatch {
    fn drop(&mut self) {
        let mut watches = self.watches.lock();
        // This one still counts.
        if watches.get(&self.session_id).is_some_and(|sender| sender.receiver_count() <= 1) {
            watches.remove(&self.session_id);
        }
    }
}
