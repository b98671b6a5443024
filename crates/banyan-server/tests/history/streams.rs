//! A history while its session goes on.

use serde_json::json;

use crate::front_end::*;
use crate::listening::*;

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

#[test]
fn given_a_turn_that_grows_when_a_front_end_comes_back_in_the_middle_then_it_has_the_history() {
    for query in ["stream=1", "stream=1&deltas=1", "stream=1&deltas=1&limit=4"] {
        let server = Server::new();
        talk(&server, "s", 3);
        let path = format!("/sessions/s/history?{query}");
        let mut screens = Vec::new();
        let mut live = server.open(&path);
        let mut screen = Screen::default();
        screen.until_ready(&mut live);
        screens.push(screen.clone());
        server.set_status("s", "working");
        server.say("s", user("and now?", 9000));
        let entry = server.say("s", answer("", 9001));
        for n in 0..20 {
            server.extend("s", &entry, &format!("{n} "));
        }
        server.say("s", user("thanks", 9100));
        let end = server.history("s");
        while texts(&screen.messages).last() != Some(&"thanks") {
            let frame = live.next().unwrap();
            screen.show(&frame);
            if frame.id.is_some() {
                screens.push(screen.clone());
            }
        }
        assert!(screens.len() > 3, "{}", screens.len());

        for mut screen in screens {
            let seen = screen.last_id.clone();
            screen.come_back(&server, &path);
            let last = screen.messages.len().min(end.len());
            assert_eq!(screen.messages[screen.messages.len() - last..], end[end.len() - last..], "after {seen:?}");
            assert_eq!(screen.resets, 0);
        }
    }
}

#[test]
fn given_a_front_end_that_comes_back_when_little_has_changed_then_only_that_is_sent() {
    let server = Server::new();
    talk(&server, "s", 30);
    let older =
        server.call("messages", json!({"session_id": "s", "limit": 500}))["messages"][9]["entry_id"].clone();
    let path = "/sessions/s/history?stream=1";
    let mut screen = Screen::default();
    screen.until_ready(&mut server.open(path));

    server.call(
        "update-message",
        json!({"session_id": "s", "entry_id": older, "content": [{"type": "text", "text": "changed"}]}),
    );
    server.say("s", user("one more", 99_000));
    let last = screen.last_id.clone().unwrap();
    let mut stream = Stream::open(server.at, path, &[("Last-Event-ID", &last)]).unwrap();
    let frames = stream.until("history::ready");

    let sent: Vec<_> = frames[..frames.len() - 1].iter().map(Frame::json).collect();
    assert_eq!(texts(&sent), ["changed", "answer 29", "one more"], "what has changed, and what was the newest");
    frames.iter().for_each(|frame| screen.show(frame));
    assert_eq!(screen.messages, server.history("s"));

    // Live, a message that is not the newest comes whole, too.
    server.extend("s", older.as_str().unwrap(), " twice");
    screen.until(&mut stream, |screen| texts(&screen.messages)[9] == "changed twice");
    assert_eq!(screen.messages, server.history("s"));
}

#[test]
fn given_a_stream_of_the_newest_messages_when_an_older_one_changes_then_it_is_not_sent() {
    let server = Server::new();
    talk(&server, "s", 10);
    let entries = server.call("messages", json!({"session_id": "s", "limit": 500}))["messages"].clone();
    let mut stream = server.open("/sessions/s/history?stream=1&limit=4");
    let mut screen = Screen::default();
    screen.until_ready(&mut stream);
    assert_eq!(texts(&screen.messages), ["question 8", "answer 8", "question 9", "answer 9"]);

    for at in [3, 17] {
        server.extend("s", entries[at]["entry_id"].as_str().unwrap(), "!");
    }
    screen.until(&mut stream, |screen| texts(&screen.messages)[1] == "answer 8!");

    assert_eq!(texts(&screen.messages), ["question 8", "answer 8!", "question 9", "answer 9"]);
}

#[test]
fn given_a_session_that_ends_when_a_front_end_comes_back_then_it_is_told_once() {
    let server = Server::new();
    talk(&server, "s", 1);
    let path = "/sessions/s/history?stream=1";
    let mut screen = Screen::default();
    screen.until_ready(&mut server.open(path));

    server.call("delete", json!({"session_id": "s"}));
    let last = screen.last_id.clone().unwrap();
    let mut stream = Stream::open(server.at, path, &[("Last-Event-ID", &last)]).unwrap();
    screen.until(&mut stream, |screen| screen.deleted);
    assert_eq!(stream.next(), None);

    let last = screen.last_id.clone().unwrap();
    let refused = Stream::open(server.at, path, &[("Last-Event-ID", &last)]).err().unwrap();
    assert_eq!((refused.status, refused.problem["code"].as_str()), (404, Some("session/not_found")));
    assert_eq!(server.refused(path), (404, "session/not_found".to_owned()));

    // A session that gets the same id later is another one.
    talk(&server, "s", 2);
    let mut again = Screen { messages: screen.messages.clone(), last_id: Some(last), ..Screen::default() };
    again.come_back(&server, path);
    assert_eq!(
        texts(&again.messages)[texts(&again.messages).len() - 4..],
        ["question 0", "answer 0", "question 1", "answer 1"]
    );
}

#[test]
fn given_a_session_that_ended_and_began_again_when_a_front_end_comes_back_then_all_is_told_again() {
    let server = Server::new();
    talk(&server, "s", 3);
    let path = "/sessions/s/history?stream=1";
    let mut screen = Screen::default();
    screen.until_ready(&mut server.open(path));

    server.call("delete", json!({"session_id": "s"}));
    talk(&server, "s", 1);
    screen.come_back(&server, path);

    assert_eq!((screen.messages, screen.resets), (server.history("s"), 1));
}

#[test]
fn given_a_position_of_another_stream_when_it_is_given_then_all_is_told_again() {
    let server = Server::new();
    talk(&server, "s", 2);
    let mut screen = Screen::default();

    for query in ["after=0", "after=000000000001-ffffff"] {
        let mut stream = server.open(&format!("/sessions/s/history?stream=1&{query}"));
        screen.until_ready(&mut stream);
        assert_eq!(screen.messages, server.history("s"));
    }

    assert_eq!(screen.resets, 2);
    let unknown = server.refused("/sessions/s/history?stream=1&after=00000000ffff-000000-0000000000000000-0");
    assert_eq!(unknown, (400, "session/invalid_cursor".to_owned()));
}

#[test]
fn given_an_empty_session_when_it_is_followed_then_its_first_message_comes() {
    let server = Server::new();
    server.session("s");
    let path = "/sessions/s/history?stream=1";
    let mut stream = server.open(path);
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    let mut screen = Screen::default();
    screen.until_ready(&mut stream);
    let begun = screen.clone();
    assert_eq!(screen.messages, Vec::<serde_json::Value>::new());

    server.say("s", answer("Welcome", 1));
    screen.until(&mut stream, |screen| screen.messages.len() == 1);

    assert_eq!(screen.messages, server.history("s"));
    let mut late = begun;
    late.come_back(&server, path);
    assert_eq!((late.messages, late.resets), (server.history("s"), 0));
}

#[test]
fn given_a_stream_since_some_moment_when_it_is_followed_then_nothing_older_comes() {
    let server = Server::new();
    talk(&server, "s", 50);
    let entries = server.call("messages", json!({"session_id": "s", "limit": 500}))["messages"].clone();
    for (since, limit, first) in [
        ("1970-01-01T00:00:45.000Z", "", 91),
        ("1970-01-01T00:00:45.000Z", "&limit=4", 96),
        ("2026-01-01T00:00:00Z", "", 100),
    ] {
        let before = server.history("s").len();
        let path = format!("/sessions/s/history?stream=1&since={since}{limit}");
        let mut stream = server.open(&path);
        let mut screen = Screen::default();
        screen.until_ready(&mut stream);
        assert_eq!(screen.messages, server.history("s")[first.min(before)..before], "{path}");
        let begun = screen.clone();

        server.extend("s", entries[21]["entry_id"].as_str().unwrap(), "!");
        server.say("s", user("and so on", 1000));
        screen.until(&mut stream, |screen| texts(&screen.messages).last() == Some(&"and so on"));
        assert_eq!(screen.messages, server.history("s")[first.min(before)..], "{path}");

        let mut away = begun;
        away.come_back(&server, &path);
        let shown = away.messages.len();
        let all = server.history("s");
        assert_eq!(away.messages, all[all.len() - shown..], "{path}");
        let tree = server.call("tree", json!({"session_id": "s"}));
        let leaf = tree["entries"][99]["entry_id"].clone();
        server.call("set-active-leaf", json!({"session_id": "s", "entry_id": leaf}));
    }
}
