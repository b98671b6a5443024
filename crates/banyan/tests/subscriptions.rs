//! Subscriptions: history and live are one stream, and a subscriber comes back by position.

mod subscriptions {
    mod live;
    mod resumed;
    mod snapshot;
}
