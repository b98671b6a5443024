//! A command and a server, or a directory, of two versions: what cannot be understood is said in a sentence.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use serde_json::json;

use super::common::*;

/// What a server of another version answers, by how the request's path ends.
type Answers = &'static [(&'static str, u16, &'static str)];

/// How a server describes itself.
const OF_VERSION_9: (&str, u16, &str) =
    ("/openapi.json", 200, r#"{"openapi":"3.1.0","info":{"title":"Banyan","version":"9.8.7"}}"#);

/// A server of another version. Gives its address.
fn another_server(answers: Answers) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut first, mut length) = (String::new(), 0);
            reader.read_line(&mut first).unwrap();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            let path = first.split(' ').nth(1).unwrap_or_default();
            let known = answers.iter().find(|(end, ..)| path.ends_with(end));
            let (status, body) = known.map_or((404, "{}"), |(_, status, body)| (*status, *body));
            let head = format!(
                "HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).unwrap();
        }
    });
    url
}

const LISTED: &str = r#"{"sessions":[{"session_id":"s","title":"T","description":"","status":"idle","message_count":3,"created_at":1,"updated_at":2,"owner_of_a_later_version":{"a":1}}],"next_cursor":null,"hint":"later"}"#;

#[test]
fn fields_of_a_later_version_are_no_trouble() {
    let url = another_server(&[("session::list", 200, LISTED), OF_VERSION_9]);
    let said = said(&mut Place::new().asking(&url, &["ls"])).ok();
    assert!(said.out.contains('T'), "{said:?}");
}

#[test]
fn an_answer_that_cannot_be_read_names_both_versions() {
    let url = another_server(&[("session::list", 200, r#"{"pages":[]}"#), OF_VERSION_9]);
    let refused = said(&mut Place::new().asking(&url, &["ls", "--json"]));
    assert_eq!(refused.refusal(), (Some(3), "http/version".into()), "{refused:?}");
    for part in
        ["runs Banyan 9.8.7", "answer of session::list", concat!("this is Banyan ", env!("CARGO_PKG_VERSION"))]
    {
        assert!(refused.err.contains(part), "{refused:?}");
    }
}

#[test]
fn a_function_that_only_this_version_has_names_both_versions() {
    const UNKNOWN: &str = r#"{"type":"about:blank","title":"x","status":404,"code":"call/unknown_function","detail":"there is no function `session::turns`"}"#;
    let url =
        another_server(&[("session::turns", 404, UNKNOWN), ("session::gibberish", 404, UNKNOWN), OF_VERSION_9]);
    let call = |function: &str| {
        said(&mut Place::new().asking(&url, &["call", function, r#"{"session_id":"s"}"#, "--json"]))
    };
    let refused = call("session::turns");
    assert_eq!(refused.refusal(), (Some(3), "http/version".into()), "{refused:?}");
    assert!(refused.err.contains("9.8.7") && refused.err.contains("no function `session::turns`"), "{refused:?}");
    // One that no version has is a slip.
    assert_eq!(call("session::gibberish").refusal(), (Some(2), "call/unknown_function".into()));
}

#[test]
fn a_code_of_a_later_version_is_told_with_its_detail() {
    const PROBLEM: &str = r#"{"type":"about:blank","title":"x","status":409,"code":"session/sealed","detail":"the session is sealed until noon"}"#;
    let url = another_server(&[("session::list", 409, PROBLEM)]);
    let refused = said(&mut Place::new().asking(&url, &["ls", "--json"]));
    assert_eq!(refused.refusal(), (Some(1), "session/sealed".into()));
    assert!(refused.err.contains("sealed until noon"), "{refused:?}");
}

#[test]
fn whatever_a_server_of_another_version_notes_of_itself_a_command_says_where_the_directory_is() {
    let place = Place::new();
    place.session("s", "T", &["one"]);
    let served = place.serve();
    let note = place.dir().join(".banyan/server.json");
    let written: serde_json::Value = serde_json::from_slice(&std::fs::read(&note).unwrap()).unwrap();
    assert_eq!(written["banyan"], env!("CARGO_PKG_VERSION"));
    let (url, pid) = (&written["url"], &written["pid"]);
    let cases = [
        (written.clone(), format!("Banyan {}; ask that one with --url", env!("CARGO_PKG_VERSION"))),
        (json!({"url": url, "pid": pid}), "ask that one with --url".to_owned()),
        (
            json!({"url": url, "pid": pid, "banyan": "9.8.7", "socket": {"path": "x"}}),
            "Banyan 9.8.7; ask that one with --url".to_owned(),
        ),
        (json!({"addresses": [url], "pid": pid}), "stop that one first".to_owned()),
    ];
    for (noted, expected) in cases {
        std::fs::write(&note, noted.to_string()).unwrap();
        let refused = place.run(&["ls", "--json"]);
        assert_eq!(refused.refusal(), (Some(3), "session/storage".into()), "{refused:?}");
        assert!(refused.err.contains(&expected), "{refused:?}");
    }
    drop(served);
}

#[test]
fn a_directory_of_a_newer_format_is_refused_with_both_versions_and_stays_as_it_is() {
    let place = Place::new();
    place.session("s", "T", &["one"]);
    let mut text =
        br#"{"format":7,"read_by":7,"write_by":7,"directory":"00112233445566778899aabbccddeeff","banyan":"9.8.7""#
            .to_vec();
    let crc = crc32c(&text);
    text.extend_from_slice(format!(",\"crc\":\"{crc:08x}\"}}\n").as_bytes());
    for copy in ["format", "format.copy"] {
        std::fs::write(place.dir().join(".banyan").join(copy), &text).unwrap();
    }
    for args in [&["ls"][..], &["verify"], &["call", "session::create"], &["serve", "--listen", "127.0.0.1:0"]] {
        let refused = place.run(args);
        assert_eq!(refused.code, Some(3), "{refused:?}");
        for part in ["9.8.7 or newer", env!("CARGO_PKG_VERSION"), "changed nothing"] {
            assert!(refused.err.contains(part), "{args:?}: {refused:?}");
        }
    }
    assert_eq!(std::fs::read(place.dir().join(".banyan/format")).unwrap(), text);
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (0..8).fold(crc, |crc, _| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg()));
    !bytes.iter().fold(!0, |crc, byte| step(crc ^ u32::from(*byte)))
}

#[test]
fn a_record_of_a_newer_version_is_listed_as_newer_and_a_server_answers_503_for_its_session_only() {
    let place = Place::new();
    for id in ["s", "other"] {
        place.session(id, "T", &["one"]);
    }
    let file = place.dir().join("s.jsonl");
    let mut text = std::fs::read(&file).unwrap();
    let mut line = br#"{"schema_version":1,"seq":2,"time":"2026-11-15T20:30:00.123Z","commit":"00000000ffff","type":"sealed","needs":"9.8.7""#.to_vec();
    let crc = crc32c(&line);
    line.extend_from_slice(format!(",\"crc\":\"{crc:08x}\"}}\n").as_bytes());
    text.extend_from_slice(&line);
    std::fs::write(&file, &text).unwrap();
    let verified = place.run(&["verify"]).ok();
    assert!(verified.out.contains("s.jsonl:3: newer: record type `sealed`"), "{verified:?}");
    assert!(verified.out.contains("No damage. 1 record of a newer Banyan"), "{verified:?}");

    let served = place.serve();
    let append = |id: &str| json!({"session_id": id, "message": user("two")}).to_string();
    let refused = place.ask(&served, &["call", "session::append", &append("s"), "--json"]);
    assert_eq!(refused.refusal(), (Some(3), "session/storage".into()));
    assert!(refused.err.contains("Banyan 9.8.7 or newer"), "{refused:?}");
    place.ask(&served, &["call", "session::append", &append("other")]).ok();
    assert_eq!(place.ask(&served, &["show", "s", "--json"]).ok().json_lines().len(), 1);
    assert_eq!(served.stop("TERM"), Some(0));
    assert_eq!(std::fs::read(&file).unwrap(), text);
}
