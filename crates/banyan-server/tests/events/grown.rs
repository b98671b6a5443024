//! Coming back to a message that grew, by every door: what it costs is counted.

use banyan::{Durability, Options, ReplayCost};
use serde_json::json;

use crate::listening::*;

const GROWTHS: usize = 3000;
const TOKEN: &str = "token";

/// A session whose message is about to grow, and then did.
struct Grown {
    server: Server,
    entry: String,
    /// The text in the end.
    text: String,
}

impl Grown {
    fn new() -> Self {
        let options = Options { durability: Durability::Buffered, ..Options::default() };
        let server = Server::with(options, settings());
        server.session("s");
        server.call("set-status", json!({"session_id": "s", "status": "working"}));
        let entry = server.append("s", "");
        Self { server, entry, text: TOKEN.repeat(GROWTHS) }
    }

    /// Opens a stream, leaves it at an early id, lets the message grow, and comes back. What the return cost.
    fn come_back(&self, path: &str) -> ReplayCost {
        let mut stream = self.server.open(path);
        let mut left_at = None;
        while left_at.is_none() {
            stream.some_bytes();
            let body = String::from_utf8_lossy(&stream.body);
            left_at = body.lines().rev().find_map(|line| line.strip_prefix("id: ")).map(str::to_owned);
        }
        drop(stream);
        for _ in 0..GROWTHS {
            self.server.extend("s", &self.entry, TOKEN);
        }
        let before = self.server.store.replay_cost();
        let headers = [("Last-Event-ID", left_at.unwrap())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        let mut back =
            Stream::open(self.server.at, path, &headers).unwrap_or_else(|refusal| panic!("{refusal:?}"));
        // What is sent in pieces is put together by the end of the text.
        let mut sent = String::new();
        while !sent.contains(&self.text) {
            let data = back.next().unwrap_or_else(|| panic!("{path}: the text should come")).json();
            let whole = data.to_string();
            match data["text"].as_str().filter(|_| data.get("revision").is_some()) {
                Some(added) => sent.push_str(added),
                None => sent = longest_run(&whole).to_owned(),
            }
        }
        let after = self.server.store.replay_cost();
        ReplayCost {
            bytes_read: after.bytes_read - before.bytes_read,
            bytes_of_events: after.bytes_of_events - before.bytes_of_events,
        }
    }
}

/// The longest run of tokens in a text.
fn longest_run(text: &str) -> &str {
    let Some(start) = text.find(TOKEN) else { return "" };
    let rest = &text[start..];
    let len =
        rest.as_bytes().chunks(TOKEN.len()).take_while(|chunk| *chunk == TOKEN.as_bytes()).count() * TOKEN.len();
    &rest[..len]
}

/// Reading the message once is `GROWTHS` additions of about 30 bytes; whole, each time, it is `GROWTHS² / 2` tokens.
const LINE: u64 = (GROWTHS * (TOKEN.len() + 32)) as u64;
const MESSAGE: u64 = (GROWTHS * TOKEN.len()) as u64;

#[test]
fn a_stream_of_additions_a_history_and_a_shape_come_back_at_the_cost_of_reading_once() {
    for path in [
        "/v1/sessions/s/events?deltas=1&after=0",
        "/v1/events?deltas=1&after=0",
        "/v1/sessions/s/events?deltas=1&snapshot=1",
        "/v1/sessions/s/history?stream=1",
        "/v1/sessions/s/history?stream=1&deltas=1",
        "/v1/sessions/s/events?format=ag-ui",
    ] {
        let path = path.replace("/v1/sessions/s/history", "/sessions/s/history");
        let cost = Grown::new().come_back(&path);
        assert!(cost.bytes_read <= 3 * LINE, "{path}: {cost:?}, the line has about {LINE} bytes");
        assert!(cost.bytes_of_events <= 4 * MESSAGE, "{path}: {cost:?}, the message has {MESSAGE} bytes");
    }
}

#[test]
fn a_stream_of_whole_messages_comes_back_without_each_revision_when_that_is_much_more_than_is_read() {
    for path in ["/v1/sessions/s/events?after=0", "/v1/events?after=0"] {
        let cost = Grown::new().come_back(path);
        assert!(cost.bytes_read <= 3 * LINE, "{path}: {cost:?}, the line has about {LINE} bytes");
        assert!(cost.bytes_of_events <= (12 << 20) + 33 * LINE, "{path}: {cost:?}");
        let each = MESSAGE * GROWTHS as u64 / 2;
        assert!(cost.bytes_of_events < each, "{path}: {cost:?}, each revision is {each} bytes");
    }
}
