//! A history while its session goes on.

use serde_json::json;

use super::front_end::*;
use crate::support::*;

#[test]
fn given_a_stream_when_a_turn_grows_then_the_screen_is_the_history_at_every_step() {
    for query in ["stream=1", "stream=1&deltas=1", "stream=1&limit=500", "stream=1&deltas=1&limit=500"] {
        let server = Server::new();
        talk(&server, "s", 3);
        let mut stream = server.open(&format!("/sessions/s/history?{query}"));
        let mut screen = Screen::default();
        screen.until_ready(&mut stream);
        assert_eq!(screen.messages, server.history("s"));

        server.set_status("s", "working");
        server.say("s", user("and now?", 9000));
        let entry = server.say("s", answer("", 9001));
        for word in ["One", " two", " three"] {
            server.extend("s", &entry, word);
            screen
                .until(&mut stream, |screen| texts(&screen.messages).last().is_some_and(|it| it.ends_with(word)));
            assert_eq!(screen.messages, server.history("s"));
        }
        server.set_status("s", "done");
        screen.until(&mut stream, |screen| screen.messages.last().unwrap()["status"] == "complete");
        assert_eq!(screen.messages, server.history("s"));
        assert_eq!(screen.deltas > 0, query.contains("deltas"));
        server.call("delete", json!({"session_id": "s"}));
        screen.until(&mut stream, |screen| screen.deleted);
        assert_eq!(stream.next(), None);
    }
}
