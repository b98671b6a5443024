//! Many callers at once.

use std::process::Stdio;

use banyan_server::{Limits, Settings};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::wire::{Answer, Server, descriptors, ended, request, settings, until};

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_too_many_is_told_so() {
    let limits = Limits { connections: 3, ..Limits::default() };
    let server = Server::start(Settings { limits, ..settings() }).await;
    let mut idle = Vec::new();
    for _ in 0..3 {
        let mut stream = server.connect().await;
        stream.write_all(request("GET", "/healthz", "", "").as_bytes()).await.unwrap();
        assert_eq!(Answer::read(&mut stream).await.unwrap().status, 200);
        idle.push(stream);
    }
    let mut one_more = server.connect().await;
    let answer = Answer::read(&mut one_more).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (503, "http/too_many_connections"));
    assert_eq!(answer.header("retry-after"), Some("1"));
    drop(one_more);
    // Those who were let in are served, and whoever leaves makes room.
    idle[0].write_all(request("GET", "/healthz", "", "").as_bytes()).await.unwrap();
    assert_eq!(Answer::read(&mut idle[0]).await.unwrap().status, 200);
    drop(idle);
    until("there is room", async || server.get("/healthz", "").await.status == 200).await;
    server.stop().await;
}

const CHILD: &str = "BANYAN_TEST_SERVE";

/// Runs in a process of its own, for the test below: a server that serves until its standard input ends.
#[tokio::test(flavor = "multi_thread")]
async fn serves_when_asked_to() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let server = Server::start(settings()).await;
    println!("\nserves {} {}", server.address(), descriptors().unwrap_or(0));
    let mut line = String::new();
    let mut asked = BufReader::new(tokio::io::stdin());
    while asked.read_line(&mut line).await.unwrap() > 0 {
        println!("\nholds {}", descriptors().unwrap_or(0));
        line.clear();
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_idle_connections_take_nothing_from_others() {
    const WANTED: usize = 10_000;
    // The server's process and this one each hold one end of every connection.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let hard = limit.maximum.map_or(WANTED * 2, |most| usize::try_from(most).unwrap());
    let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, raised);
    let many = WANTED.min(hard.saturating_sub(2_000));
    if many < WANTED {
        eprintln!("only {many} of {WANTED} connections: the system allows {hard} descriptors");
    }
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["hostile::crowds::serves_when_asked_to", "--exact", "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut ask = child.stdin.take().unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = async |word: &str| loop {
        let line = told.next_line().await.unwrap().expect("the server lives");
        if let Some(rest) = line.strip_prefix(word) {
            return rest.trim().to_owned();
        }
    };
    let started = said("serves ").await;
    let (address, before) = started.split_once(' ').unwrap();
    let before: usize = before.parse().unwrap();

    let mut idle = Vec::with_capacity(many);
    for at in 0..many {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // A third says nothing, a third is in the middle of a head, a third has been served.
        match at % 3 {
            0 => {}
            1 => stream.write_all(b"GET /healthz HTT").await.unwrap(),
            _ => {
                stream.write_all(request("GET", "/healthz", "", "").as_bytes()).await.unwrap();
                assert_eq!(Answer::read(&mut stream).await.unwrap().status, 200);
            }
        }
        idle.push(stream);
        if at % 500 == 0 {
            let mut other = TcpStream::connect(address).await.unwrap();
            other.write_all(request("POST", "/v1/call/session::create", "", "{}").as_bytes()).await.unwrap();
            assert_eq!(Answer::read(&mut other).await.unwrap().status, 200, "after {at}");
        }
    }
    for _ in 0..20 {
        let mut other = TcpStream::connect(address).await.unwrap();
        other.write_all(request("POST", "/v1/call/session::create", "", "{}").as_bytes()).await.unwrap();
        assert_eq!(Answer::read(&mut other).await.unwrap().status, 200);
    }
    let mut holds = async || {
        ask.write_all(b"?\n").await.unwrap();
        said("holds ").await.parse::<usize>().unwrap()
    };
    eprintln!("{many} connections: the server holds {} descriptors", holds().await);
    drop(idle);
    // A few session files may stay open.
    until("the descriptors come back", async || holds().await < before + 100).await;
    drop(ask);
    assert!(child.wait().await.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_come_and_go_leave_nothing_behind() {
    let server = Server::start(settings()).await;
    for round in 0..3_000 {
        let mut stream = server.connect().await;
        match round % 3 {
            0 => {}
            1 => stream
                .write_all(
                    b"POST /v1/call/session::create HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\n{",
                )
                .await
                .unwrap(),
            _ => {
                stream
                    .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                    .await
                    .unwrap();
                assert!(ended(&mut stream).await);
            }
        }
    }
    until("all are free", async || {
        let page = server.get("/metrics", "").await;
        page.text().contains("banyan_connections 1\n") && page.text().contains("banyan_requests_in_flight 1\n")
    })
    .await;
    server.stop().await;
}
