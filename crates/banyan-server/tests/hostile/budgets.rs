//! Clients that take more than their part: the server's budgets bound them, and others are served.

use std::time::Duration;

use banyan_server::{KeyStore, Limits, NewKey, Settings};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::wire::{Answer, Server, ended, request, settings, until};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Bodies of up to 1 MiB, two of which are in memory at a time.
fn small() -> Limits {
    Limits {
        body_bytes: MIB,
        request_memory: 2 * MIB,
        body_timeout: Duration::from_secs(600),
        ..Limits::default()
    }
}

/// The head of a call with a body of a mebibyte, and the beginning of it.
async fn half_sent(server: &Server, headers: &str, bytes: usize) -> TcpStream {
    let whole = request("POST", "/v1/call/session::create", headers, &" ".repeat(MIB));
    let mut stream = server.connect().await;
    stream.write_all(&whole.as_bytes()[..whole.len() - MIB + bytes]).await.unwrap();
    stream
}

async fn metric(server: &Server, headers: &str, name: &str) -> usize {
    let page = server.get("/metrics", headers).await;
    let line = page.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned);
    line.unwrap_or_else(|| panic!("{name}\nin\n{}", page.text())).parse().unwrap()
}

async fn used(server: &Server, headers: &str, budget: &str) -> usize {
    metric(server, headers, &format!("banyan_budget_used{{budget=\"{budget}\"}}")).await
}

/// Two keys, as header lines.
async fn two_keys(server: &Server) -> [String; 2] {
    let keys = KeyStore::open(server.data());
    let made = ["greedy", "modest"].map(|name| {
        let (_, key) = keys.create(NewKey { name: name.to_owned(), ..NewKey::default() }, 1).unwrap();
        format!("authorization: Bearer {key}\r\n")
    });
    until("the keys are known", async || server.get("/metrics", "").await.status == 401).await;
    made
}

#[tokio::test(flavor = "multi_thread")]
async fn half_sent_bodies_hold_no_more_than_the_budget() {
    let server = Server::start(Settings { limits: small(), ..settings() }).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(half_sent(&server, "", 500 * KIB).await);
    }
    until("they are accounted", async || used(&server, "", "request_memory").await >= 1_500 * KIB).await;
    let mut refused = half_sent(&server, "", 500 * KIB).await;
    let answer = Answer::read(&mut refused).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (429, "rate/limited"));
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert!(answer.text().contains("`limits.request_memory`"), "{}", answer.text());
    assert!(used(&server, "", "request_memory").await <= 2 * MIB);
    assert_eq!(metric(&server, "", "banyan_budget_limit{budget=\"request_memory\"}").await, 2 * MIB);
    let counted = "banyan_budget_refusals_total{budget=\"request_memory\",reason=\"share\"}";
    assert_eq!(metric(&server, "", counted).await, 1);
    // Small requests are none of its business.
    server.assert_serves().await;
    // One that was let in goes on to its end.
    held.truncate(1);
    until("two are given back", async || used(&server, "", "request_memory").await < MIB).await;
    held[0].write_all(" ".repeat(MIB - 500 * KIB - 2).as_bytes()).await.unwrap();
    held[0].write_all(b"{}").await.unwrap();
    assert_eq!(Answer::read(&mut held[0]).await.unwrap().status, 200);
    drop(held);
    until("all is given back", async || used(&server, "", "request_memory").await == 0).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_imported_is_accounted_while_it_is_in_memory() {
    let server = Server::start(Settings { limits: small(), ..settings() }).await;
    let mut stream = server.connect().await;
    let head = request("POST", "/v1/import", "", "").replace("length: 0", "length: 9000000");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(" ".repeat(MIB - 1).as_bytes()).await.unwrap();
    until("it is in memory", async || used(&server, "", "request_memory").await >= 900 * KIB).await;
    stream.write_all(" ".repeat(10 * KIB).as_bytes()).await.unwrap();
    until("it is on disk", async || {
        used(&server, "", "request_memory").await == 0 && used(&server, "", "imports").await == 1
    })
    .await;
    drop(stream);
    until("it is gone", async || used(&server, "", "imports").await == 0).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_has_more_than_half_makes_room_for_another() {
    let server = Server::start(Settings { limits: small(), ..settings() }).await;
    let [greedy, modest] = two_keys(&server).await;
    let mut held = Vec::new();
    for at in 1..=3 {
        held.push(half_sent(&server, &greedy, 500 * KIB).await);
        until("it is accounted", async || used(&server, &modest, "request_memory").await >= at * 500 * KIB).await;
    }
    let body = format!("{{{}}}", " ".repeat(900 * KIB));
    let answer = server.ask("POST", "/v1/call/session::create", &modest, &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    // The newest had to go, and the others are within the half.
    let answer = Answer::read(&mut held[2]).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (429, "rate/limited"));
    for stream in &mut held[..2] {
        stream.write_all(" ".repeat(MIB - 500 * KIB - 2).as_bytes()).await.unwrap();
        stream.write_all(b"{}").await.unwrap();
        assert_eq!(Answer::read(stream).await.unwrap().status, 200);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_below_the_rate_ends_with_408_however_long_it_goes_on() {
    let limits = Limits { body_timeout: Duration::from_millis(300), body_rate: 1 << 40, ..Limits::default() };
    let server = Server::start(Settings { limits, ..settings() }).await;
    let head = request("POST", "/v1/call/session::create", "", "").replace("length: 0", "length: 60000000");
    let mut stream = server.connect().await;
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reader, mut writer) = stream.split();
    let sends = async {
        while writer.write_all(&[b' '; 100]).await.is_ok() {
            tokio::task::yield_now().await;
        }
        std::future::pending::<()>().await;
    };
    let answer = tokio::select! {
        answer = Answer::read(&mut reader) => answer.unwrap(),
        () = sends => unreachable!(),
    };
    assert_eq!((answer.status, answer.code().as_str()), (408, "http/timeout"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(answer.text().contains("`limits.body_rate`"), "{}", answer.text());
    assert!(ended(&mut stream).await);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_leaves_connections_for_others() {
    let server =
        Server::start(Settings { limits: Limits { connections: 32, ..Limits::default() }, ..settings() }).await;
    let [greedy, modest] = two_keys(&server).await;
    let mut held = Vec::new();
    let refused = loop {
        let mut stream = server.connect().await;
        stream.write_all(request("POST", "/v1/call/session::list", &greedy, "{}").as_bytes()).await.unwrap();
        let answer = Answer::read(&mut stream).await.unwrap();
        if answer.status != 200 {
            assert!(ended(&mut stream).await);
            break answer;
        }
        held.push(stream);
    };
    assert_eq!((refused.status, refused.code().as_str()), (429, "rate/limited"));
    assert!(refused.text().contains("`limits.connections`"), "{}", refused.text());
    assert_eq!(refused.header("connection"), Some("close"));
    assert!((17..=28).contains(&held.len()), "{} of 32", held.len());
    assert_eq!(server.ask("POST", "/v1/call/session::list", &modest, "{}").await.status, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_leaves_subscriptions_for_others() {
    let server =
        Server::start(Settings { limits: Limits { subscriptions: 16, ..Limits::default() }, ..settings() }).await;
    let [greedy, modest] = two_keys(&server).await;
    let mut held = Vec::new();
    let subscribe = async |key: &str| {
        let mut stream = server.connect().await;
        stream.write_all(request("GET", "/v1/events", key, "").as_bytes()).await.unwrap();
        (Answer::read(&mut stream).await.unwrap(), stream)
    };
    let refused = loop {
        let (answer, stream) = subscribe(&greedy).await;
        if answer.status != 200 {
            break answer;
        }
        held.push(stream);
    };
    assert_eq!((refused.status, refused.code().as_str(), held.len()), (429, "rate/limited", 14));
    for _ in 0..2 {
        let (answer, stream) = subscribe(&modest).await;
        assert_eq!(answer.status, 200);
        held.push(stream);
    }
    server.stop().await;
}

/// A connection that takes little in.
async fn deaf(server: &Server) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(server.address()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_do_not_read_hold_no_more_than_the_budget_and_not_for_ever() {
    const LARGE: usize = 12 * MIB;
    let limits = Limits { response_memory: 3 * LARGE, read_timeout: Duration::from_secs(4), ..Limits::default() };
    let server = Server::start(Settings { limits, ..settings() }).await;
    let message =
        json!({"role": "user", "content": [{"type": "text", "text": "x".repeat(LARGE)}], "timestamp": 1});
    let created = server.ask("POST", "/v1/call/session::create", "", "{}").await.json();
    let append = json!({"session_id": created["session_id"], "message": message}).to_string();
    let appended = server.ask("POST", "/v1/call/session::append", "", &append).await;
    assert_eq!(appended.status, 200, "{appended:?}");
    let asks = json!({"session_id": created["session_id"]}).to_string();
    let read = request("POST", "/v1/call/session::messages", "", &asks);
    let mut readers = Vec::new();
    let refused = loop {
        let mut stream = deaf(&server).await;
        stream.write_all(read.as_bytes()).await.unwrap();
        let mut answer = Answer::read_head(&mut stream).await.unwrap();
        if answer.status != 200 {
            answer.body = read_body(&mut stream, &answer).await;
            break answer;
        }
        readers.push(stream);
        assert!(readers.len() < 6, "{} responses are held", readers.len());
    };
    assert_eq!((refused.status, refused.code().as_str()), (503, "http/busy"));
    assert!(refused.text().contains("`limits.response_memory`"), "{}", refused.text());
    // What writes is not held up.
    server.assert_serves().await;
    until("those who read nothing are closed", async || used(&server, "", "response_memory").await == 0).await;
    let answer = server.ask("POST", "/v1/call/session::messages", "", &asks).await;
    assert_eq!((answer.status, answer.body.len() > LARGE), (200, true));
    until("that is sent", async || used(&server, "", "response_memory").await == 0).await;
    server.stop().await;
}

async fn read_body(stream: &mut TcpStream, answer: &Answer) -> Vec<u8> {
    let mut body = vec![0; answer.header("content-length").unwrap().parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    body
}

/// A WebSocket, and a message of it that begins.
async fn half_sent_message(server: &Server, announced: usize, bytes: usize) -> TcpStream {
    let mut stream = server.connect().await;
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    stream.write_all(request("GET", "/v1/ws", upgrade, "").as_bytes()).await.unwrap();
    assert_eq!(Answer::read_head(&mut stream).await.unwrap().status, 101);
    let mut frame = vec![0x81, 0xff];
    frame.extend_from_slice(&(announced as u64).to_be_bytes());
    // Masked with zeros.
    frame.extend_from_slice(&[0; 4]);
    frame.resize(frame.len() + bytes, b' ');
    stream.write_all(&frame).await.unwrap();
    stream
}

/// The code and the reason of the frame that closes a WebSocket.
async fn closed(stream: &mut TcpStream) -> (u16, String) {
    let mut head = [0; 2];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[0], 0x88, "a frame that closes");
    let mut rest = vec![0; usize::from(head[1])];
    stream.read_exact(&mut rest).await.unwrap();
    (u16::from_be_bytes([rest[0], rest[1]]), String::from_utf8(rest[2..].to_vec()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_websocket_that_arrive_in_pieces_are_in_the_budget() {
    let server = Server::start(Settings { limits: small(), ..settings() }).await;
    let mut held = Vec::new();
    for at in 1..=2 {
        held.push(half_sent_message(&server, MIB, 800 * KIB).await);
        until("it is accounted", async || used(&server, "", "request_memory").await >= at * 800 * KIB).await;
    }
    let mut refused = half_sent_message(&server, MIB, 800 * KIB).await;
    let (code, reason) = closed(&mut refused).await;
    assert_eq!(code, 1013, "{reason}");
    assert!(used(&server, "", "request_memory").await <= 2 * MIB);
    drop(held);
    until("all is given back", async || used(&server, "", "request_memory").await == 0).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_a_websocket_that_arrives_too_slowly_ends_the_connection() {
    let limits = Limits { body_timeout: Duration::from_millis(100), ..Limits::default() };
    let server = Server::start(Settings { limits, ..settings() }).await;
    let mut stream = half_sent_message(&server, MIB, 10).await;
    assert_eq!(closed(&mut stream).await, (1008, "the message arrives too slowly".to_owned()));
    server.stop().await;
}
