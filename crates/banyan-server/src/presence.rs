//! How long a stream may stay: until the server stops, or the key that opened it is gone.

use std::sync::Arc;

use tokio::sync::watch;

use crate::app::Shared;
use crate::keys::Key;

/// See the module.
pub(crate) struct Presence {
    app: Shared,
    key: Option<Arc<Key>>,
    stop: watch::Receiver<bool>,
    keys: watch::Receiver<()>,
}

/// Why a stream has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// The server stops.
    Stopping,
    /// Whoever opened it would not be let in any more.
    KeyRemoved,
}

impl Presence {
    pub(crate) fn new(app: &Shared, key: Option<Arc<Key>>) -> Self {
        let mut keys = app.keys.changes();
        // The key may have been removed since it was looked at, so it is looked at once more.
        keys.mark_changed();
        Self { app: Arc::clone(app), key, stop: app.stop_signal(), keys }
    }

    /// Waits until the stream has to end.
    pub(crate) async fn told_to_leave(&mut self) -> Leave {
        loop {
            if *self.stop.borrow() {
                return Leave::Stopping;
            }
            tokio::select! {
                stop = self.stop.changed() => {
                    if stop.is_err() {
                        return Leave::Stopping;
                    }
                }
                _ = self.keys.changed() => {
                    if !self.may_stay() {
                        // Asked again, it says the same again.
                        self.keys.mark_changed();
                        return Leave::KeyRemoved;
                    }
                }
            }
        }
    }

    fn may_stay(&self) -> bool {
        match &self.key {
            Some(key) => self.app.keys.all().contains(key),
            // A server that was open to everyone has closed when it got its first key.
            None => self.app.open(),
        }
    }
}
