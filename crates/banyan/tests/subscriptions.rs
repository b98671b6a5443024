//! Subscriptions: history and live are one stream, and a subscriber comes back by position.

mod subscriptions {
    mod grown;
    mod live;
    mod resumed;
    mod snapshot;
}
