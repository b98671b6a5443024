//! Who may join the bus of a server, and which directories an engine's bus may reach.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use crate::common::Place;
use crate::common::served::{DEADLINE, Served};

const SERVE: [&str; 4] = ["--listen", "127.0.0.1:0", "--iii-listen", "127.0.0.1:0"];

/// A handshake on the bus of a server. The connection stays open with its stream.
fn handshake(served: &Served, path: &str, headers: &str) -> (String, TcpStream) {
    let address = served.told["iii"].as_str().unwrap().strip_prefix("ws://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    (String::from_utf8(head).unwrap().split(' ').nth(1).unwrap().to_owned(), stream)
}

fn status(served: &Served, path: &str, headers: &str) -> String {
    handshake(served, path, headers).0
}

fn create(place: &Place, args: &[&str]) -> String {
    place.run(&[&["key", "create", "--quiet"], args].concat()).ok().out.trim().to_owned()
}

#[test]
fn with_keys_only_holders_of_a_key_without_scope_that_may_write_join_the_bus() {
    let place = Place::new();
    let operator = create(&place, &["--name", "ops"]);
    let scoped = create(&place, &["--name", "ada", "--scope", "owner=u"]);
    let reader = create(&place, &["--name", "looks", "--read-only"]);
    let served = place.serve_with(&SERVE).unwrap();
    let bearer = |key: &str| format!("Authorization: Bearer {key}\r\n");
    for path in ["/", "/otel"] {
        assert_eq!(status(&served, path, ""), "401", "{path}");
        assert_eq!(status(&served, path, &bearer("banyan_00000000_1")), "401", "{path}");
        assert_eq!(status(&served, path, &bearer(&scoped)), "403", "{path}");
        assert_eq!(status(&served, path, &bearer(&reader)), "403", "{path}");
        assert_eq!(status(&served, path, &bearer(&operator)), "101", "{path}");
        assert_eq!(status(&served, &format!("{path}?access_token={operator}"), ""), "101", "{path}");
        assert_eq!(status(&served, &format!("{path}?access_token={scoped}"), ""), "403", "{path}");
    }
    // A connection ends with its key.
    let (_, mut joined) = handshake(&served, "/", &bearer(&operator));
    create(&place, &["--name", "second"]);
    place.run(&["key", "rm", "ops"]).ok();
    joined.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(status(&served, "/", &bearer(&operator)), "401");
}

#[test]
fn without_keys_the_bus_admits_programs_on_this_machine_until_there_is_a_key() {
    let place = Place::new();
    let served = place.serve_with(&SERVE).unwrap();
    let (answer, mut joined) = handshake(&served, "/", "");
    assert_eq!(answer, "101");
    create(&place, &["--name", "ops"]);
    joined.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(status(&served, "/", ""), "401");
}

#[test]
fn pages_of_other_origins_join_no_bus_unless_they_are_let_in() {
    let place = Place::new();
    let served = place.serve_with(&SERVE).unwrap();
    for origin in ["https://evil.example", "http://localhost:3000", "null"] {
        assert_eq!(status(&served, "/", &format!("Origin: {origin}\r\n")), "403", "{origin}");
    }
    let own = served.told["iii"].as_str().unwrap().replace("ws://", "http://");
    assert_eq!(status(&served, "/", &format!("Origin: {own}\r\n")), "101");
    served.stop("TERM");
    let args = [&SERVE[..], &["--cors-origins", "http://localhost:3000"]].concat();
    let served = place.serve_with(&args).unwrap();
    assert_eq!(status(&served, "/", "Origin: http://localhost:3000\r\n"), "101");
    assert_eq!(status(&served, "/", "Origin: https://evil.example\r\n"), "403");
}

#[test]
fn an_engine_reaches_a_directory_with_keys_only_when_that_is_allowed() {
    let engine = Place::new();
    let bus = engine.serve_with(&SERVE).unwrap();
    let url = bus.told["iii"].as_str().unwrap().to_owned();
    let place = Place::new();
    create(&place, &["--name", "ops"]);
    let serve = ["--listen", "127.0.0.1:0", "--iii", &url];
    let refused = place.serve_with(&serve).map(|served| served.told.clone()).unwrap_err();
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("has keys") && refused.err.contains("--iii-open"), "{refused:?}");
    let served = place.serve_with(&[&serve[..], &["--iii-open"]].concat()).unwrap();
    let reached_by = format!("the holder of 1 key, and to everyone on the bus of {url}");
    assert_eq!(served.told["reached_by"], reached_by);
}

#[test]
fn a_server_leaves_the_engine_when_the_first_key_is_made() {
    let engine = Place::new();
    let bus = engine.serve_with(&SERVE).unwrap();
    let url = bus.told["iii"].as_str().unwrap().to_owned();
    let place = Place::new();
    let mut command = place.command(&["serve", "--json", "--listen", "127.0.0.1:0", "--iii", &url]);
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut log = std::io::BufReader::new(child.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut String::new())
        .unwrap();
    create(&place, &["--name", "ops"]);
    let began = Instant::now();
    let mut line = String::new();
    while !line.contains("the engine's bus is left") {
        line.clear();
        assert_ne!(std::io::BufRead::read_line(&mut log, &mut line).unwrap(), 0, "it goes on");
        assert!(began.elapsed() < DEADLINE);
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
