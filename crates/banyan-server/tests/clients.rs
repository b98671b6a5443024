//! Clients of event streams that others wrote resume through restarts of the server, with nothing lost and nothing doubled.

#[path = "clients/install.rs"]
mod install;
#[path = "clients/writer.rs"]
mod writer;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use axum::Router;
use axum::response::Html;
use axum::routing::{get, post};
use banyan::{Banyan, Options};
use banyan_server::{Running, Settings, start_with};
use install::{browser, node, python};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use writer::{END, Writer};

use crate::outside::skip;

const PATIENCE: Duration = Duration::from_secs(120);
const STREAM: &str = "/v1/events?type=session::message-added&after=0";

#[test]
fn npm_eventsource() {
    match node("eventsource.js") {
        Ok(command) => lines_through_restarts(command),
        Err(why) => skip("npm_eventsource", &why),
    }
}

#[test]
fn python_sseclient() {
    match python() {
        Ok(command) => lines_through_restarts(command),
        Err(why) => skip("python_sseclient", &why),
    }
}

#[test]
fn the_browsers_eventsource() {
    let Ok(mut command) = browser().map_err(|why| skip("the_browsers_eventsource", &why)) else { return };
    let profile = tempfile::tempdir().unwrap();
    let (says, said) = channel();
    let (report, progress) = (says.clone(), says);
    let own = Router::new()
        .route("/test/page", get(|| async { Html(std::fs::read_to_string(client("browser.html")).unwrap()) }))
        .route("/test/progress", post(async move |seen: String| progress.send((seen, None)).unwrap()))
        .route("/test/saw", post(async move |seen: String| report.send((String::new(), Some(seen))).unwrap()));
    let (server, writer) = Server::with_writer(own);
    let stream = STREAM.replace('&', "%26");
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    command.arg(format!("http://{}/test/page#{stream}", server.at)).stdout(Stdio::null()).stderr(Stdio::null());
    let browser = Ended(command.spawn().unwrap());
    let hear = || said.recv_timeout(PATIENCE).expect("the page tells what it saw");
    let server = restarts(server, &writer, |count| while hear().0.parse::<usize>().unwrap() < count {});
    let written = writer.finish();
    let seen = std::iter::from_fn(|| Some(hear())).find_map(|(_, seen)| seen).unwrap();
    check(seen.lines(), &written);
    drop((browser, server));
}

#[test]
fn the_client_in_the_documentation_applies_deltas() {
    let mut command = match node("documented.js") {
        Ok(command) => command,
        Err(why) => return skip("the_client_in_the_documentation_applies_deltas", &why),
    };
    let server = Server::start(tempfile::tempdir().unwrap(), "127.0.0.1:0".parse().unwrap(), Router::new());
    let call = |function: &str, request: Value| -> Value {
        let answer = banyan::block_on(server.store.call(function, request.to_string().as_bytes())).unwrap();
        serde_json::from_str(&answer).unwrap()
    };
    call("session::ensure", json!({"session_id": "s_1"}));
    let content = json!([{"type": "thinking", "text": ""}, {"type": "text", "text": "0 "}]);
    for entry in ["e_1", "e_2"] {
        let message = json!({"role": "assistant", "content": content, "timestamp": 1, "model": "m", "provider": "p",
            "stop_reason": "end"});
        call("session::append", json!({"session_id": "s_1", "entry_id": entry, "message": message}));
    }
    command.arg(client("../../docs/events.md")).arg(format!("http://{}", server.at)).stdout(Stdio::piped());
    let mut child = Ended(command.spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "began");
    for n in 1..200 {
        let entry = ["e_1", "e_2"][n / 7 % 2];
        let text = format!("{n} ");
        let block = n / 5 % 2;
        call(
            "session::extend-message",
            json!({"session_id": "s_1", "entry_id": entry, "block": block, "text": text}),
        );
    }
    call("session::set-status", json!({"session_id": "s_1", "status": "done"}));
    let shown: Value = serde_json::from_str(&lines.next().unwrap()).unwrap();
    let stored = ["e_1", "e_2"].map(|entry| {
        let stored = &call("session::get-message", json!({"session_id": "s_1", "entry_id": entry}))["entry"];
        (format!("s_1 {entry}"), json!({"message": stored["message"], "revision": stored["revision"]}))
    });
    assert_eq!(shown, json!(BTreeMap::from(stored)));
}

/// A client that prints what it sees.
fn lines_through_restarts(mut command: Command) {
    let (server, writer) = Server::with_writer(Router::new());
    command.arg(format!("http://{}{STREAM}", server.at)).stdout(Stdio::piped());
    let mut child = Ended(command.spawn().unwrap());
    let (line, lines) = channel();
    let out = BufReader::new(child.0.stdout.take().unwrap());
    let reader = std::thread::spawn(move || out.lines().for_each(|it| line.send(it.unwrap()).unwrap()));
    let mut seen: Vec<String> = Vec::new();
    let server = restarts(server, &writer, |count| take(&lines, &mut seen, count));
    let written = writer.finish();
    take(&lines, &mut seen, written.len());
    assert!(child.0.wait().unwrap().success());
    reader.join().unwrap();
    seen.extend(lines.try_iter());
    check(seen.iter().map(String::as_str), &written);
    drop(server);
}

fn take(lines: &Receiver<String>, seen: &mut Vec<String>, count: usize) {
    while seen.len() < count {
        seen.push(lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{} of {count} were seen", seen.len())));
    }
}

/// Restarts the server twice while the writer goes on, each time when the client has caught up with what was written.
fn restarts(mut server: Server, writer: &Writer, mut seen: impl FnMut(usize)) -> Server {
    seen(writer.wait_for_more(30));
    for _ in 0..2 {
        server = server.restarted();
        seen(writer.wait_for_more(30));
    }
    server
}

/// Each line is a position and an entry.
fn check<'a>(seen: impl Iterator<Item = &'a str>, written: &[String]) {
    let seen: Vec<(&str, &str)> =
        seen.map(|line| line.split_once(' ').unwrap_or_else(|| panic!("{line:?}"))).collect();
    assert!(seen.windows(2).all(|two| two[0].0 < two[1].0), "positions sort as strings");
    let entries: Vec<&str> = seen.iter().map(|(_, entry)| *entry).collect();
    assert_eq!(entries, written, "nothing lost, nothing doubled");
    assert_eq!(written.last().unwrap(), END);
}

fn client(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients").join(file).canonicalize().unwrap()
}

/// A process that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server on a directory, with pages of the test's own.
struct Server {
    at: SocketAddr,
    own: Router,
    dir: TempDir,
    runtime: Runtime,
    store: Banyan,
    running: Running,
}

impl Server {
    fn with_writer(own: Router) -> (Self, Writer) {
        let server = Self::start(tempfile::tempdir().unwrap(), "127.0.0.1:0".parse().unwrap(), own);
        let writer = Writer::start(server.at);
        (server, writer)
    }

    fn start(dir: TempDir, listen: SocketAddr, own: Router) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let store = Banyan::open(dir.path(), Options::default()).unwrap();
        let settings = Settings { listen, ..Settings::default() };
        let starting = start_with(store.clone(), dir.path(), settings, own.clone());
        let running = runtime.block_on(starting).unwrap();
        Self { at: running.address(), own, dir, runtime, store, running }
    }

    fn restarted(self) -> Self {
        self.runtime.block_on(self.running.stop());
        self.store.close().unwrap();
        drop((self.store, self.runtime));
        Self::start(self.dir, self.at, self.own)
    }
}
