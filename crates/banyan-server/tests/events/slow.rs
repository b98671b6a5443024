//! Subscribers that do not keep up.

use banyan::Options;

use crate::listening::*;

fn few() -> Options {
    Options { subscriber_events: 16, ..Options::default() }
}

#[test]
fn a_subscriber_that_is_too_slow_is_told_and_resumes() {
    let server = Server::with(few(), settings());
    server.session("s");
    let mut slow = server.open("/v1/sessions/s/events");
    let large = "x".repeat(1 << 20);
    const WRITES: usize = 40;
    let written: Vec<String> = (0..WRITES).map(|_| server.append("s", &large)).collect();
    let mut frames = slow.rest();
    let last = frames.pop().unwrap();
    assert_eq!(last, Frame { id: None, event: "banyan::lagged".to_owned(), data: "{}".to_owned() });
    assert!((16..WRITES).contains(&frames.len()), "{} were sent before", frames.len());
    while frames.len() < WRITES {
        let seen = frames.last().unwrap().position().to_owned();
        let mut back = Stream::open(server.at, "/v1/sessions/s/events", &[("Last-Event-ID", &seen)]).unwrap();
        while frames.len() < WRITES
            && let Some(frame) = back.next().filter(|frame| frame.event != "banyan::lagged")
        {
            frames.push(frame);
        }
    }
    let told: Vec<String> =
        frames.iter().map(|frame| frame.json()["entry_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(told, written);
}

#[test]
fn a_subscriber_that_stalls_holds_up_neither_the_writer_nor_others() {
    let server = Server::with(few(), settings());
    server.session("s");
    let mut stalled = server.open("/v1/sessions/s/events");
    let mut others: Vec<Stream> = (0..5).map(|_| server.open("/v1/sessions/s/events")).collect();
    let large = "x".repeat(256 << 10);
    const WRITES: usize = 100;
    let mut told = vec![0; others.len()];
    for _ in 0..WRITES {
        // Each write is answered though one subscriber does not read, and all others hear it before the next.
        server.append("s", &large);
        for (other, told) in others.iter_mut().zip(&mut told) {
            *told += types(&other.take(1)).len();
        }
    }
    assert_eq!(told, vec![WRITES; others.len()]);
    let mut frames = stalled.rest();
    assert_eq!(frames.pop().unwrap().event, "banyan::lagged");
    assert!(frames.len() < WRITES, "what it was not sent was not kept for it");
}
