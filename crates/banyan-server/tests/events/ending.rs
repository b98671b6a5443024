//! How streams end.

use std::time::Duration;

use banyan::Options;
use banyan_server::Settings;

use crate::listening::*;

#[test]
fn streams_end_when_the_server_stops_and_can_be_resumed() {
    let mut server = Server::new();
    server.session("s");
    let mut streams: Vec<Stream> = ["/v1/events", "/v1/sessions/s/events", "/v1/sessions/s/events?deltas=1"]
        .map(|path| server.open(path))
        .into();
    for n in 0..20 {
        server.append("s", &n.to_string());
    }
    let stopped = server.begin_to_stop();
    server.wait(stopped).unwrap();
    let seen: Vec<Vec<Frame>> = streams.iter_mut().map(Stream::rest).collect();
    let refused = std::net::TcpStream::connect(server.at);
    assert!(refused.is_err(), "nobody is let in any more");
    let last = ids(&seen[0])[19].to_owned();
    assert!(seen.iter().all(|each| each.len() == 20 && *each == seen[0]));
    server.store.close().unwrap();
    let server = Server::on(server.dir, Options::default(), settings());
    let next = server.append("s", "next");
    let mut back = Stream::open(server.at, "/v1/events", &[("Last-Event-ID", &last)]).unwrap();
    assert_eq!(back.next().unwrap().json()["entry_id"], next.as_str());
}

#[test]
fn a_subscriber_that_never_reads_does_not_keep_the_server_from_stopping() {
    let short = Settings { drain: Duration::from_millis(300), ..settings() };
    let mut server = Server::with(Options::default(), short);
    server.session("s");
    let _stalled = server.open("/v1/events");
    let large = "x".repeat(1 << 20);
    for _ in 0..12 {
        server.append("s", &large);
    }
    let stopped = server.begin_to_stop();
    server.wait(stopped).unwrap();
}

#[test]
fn a_store_that_is_closed_ends_its_streams() {
    let server = Server::new();
    server.session("s");
    let mut stream = server.open("/v1/events");
    server.append("s", "the last");
    server.store.close().unwrap();
    assert_eq!(types(&stream.rest()), ["message-added"]);
}
