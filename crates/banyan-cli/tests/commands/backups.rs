//! `banyan backup`, `restore` and `verify`, beside a server that is written to.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::common::served::{DEADLINE, Served};
use crate::common::{Place, Said, assistant, user};
use serde_json::{Value, json};

/// What was acknowledged, by session, in order.
type Acknowledged = Arc<(Mutex<HashMap<String, Vec<String>>>, Condvar)>;

/// Somebody who writes to a server until they are dropped.
struct Writer {
    stop: Arc<AtomicBool>,
    acknowledged: Acknowledged,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Writes to a few sessions, with replies that grow, forks and deletions beside.
    fn begin(place: &Place, served: &Served, name: &str) -> Self {
        let mut child = place
            .asking(&served.url, &["call", "--stream"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Acknowledged::default());
        let (stopped, acked, name) = (Arc::clone(&stop), Arc::clone(&acknowledged), name.to_owned());
        let thread = std::thread::spawn(move || {
            let mut call = |function: &str, request: Value| -> Value {
                writeln!(
                    input,
                    "{}",
                    json!({"id": 1, "function": format!("session::{function}"), "request": request})
                )
                .unwrap();
                let mut line = String::new();
                output.read_line(&mut line).unwrap();
                let answer: Value = serde_json::from_str(&line).unwrap();
                assert!(answer.get("error").is_none(), "{answer}");
                answer
            };
            for round in 0.. {
                if stopped.load(Ordering::Acquire) {
                    break;
                }
                let session = format!("{name}{}", round % 3);
                call("ensure", json!({"session_id": session}));
                let text = format!("{round} {}", "word ".repeat(round % 400));
                call(
                    "append",
                    json!({"session_id": session, "entry_id": format!("e{round}"), "message": user(&text)}),
                );
                {
                    acked.0.lock().unwrap().entry(session.clone()).or_default().push(text);
                    acked.1.notify_all();
                }
                let growing = format!("{name}g");
                call("ensure", json!({"session_id": growing}));
                let reply = assistant(json!([{"type": "text", "text": ""}]));
                call("append", json!({"session_id": growing, "entry_id": format!("r{round}"), "message": reply}));
                for _ in 0..4 {
                    call(
                        "extend-message",
                        json!({"session_id": growing, "entry_id": format!("r{round}"), "text": "and "}),
                    );
                }
                let gone = format!("{name}gone");
                call("ensure", json!({"session_id": gone, "title": "short-lived"}));
                call("delete", json!({"session_id": gone}));
            }
            drop(input);
            child.wait().unwrap();
        });
        Self { stop, acknowledged, thread: Some(thread) }
    }

    /// What was acknowledged so far.
    fn so_far(&self) -> HashMap<String, Vec<String>> {
        self.acknowledged.0.lock().unwrap().clone()
    }

    /// Waits until so many more messages were acknowledged than before.
    fn wait_for_more(&self, more: usize) {
        let count = |sessions: &HashMap<String, Vec<String>>| sessions.values().map(Vec::len).sum::<usize>();
        let sessions = self.acknowledged.0.lock().unwrap();
        let goal = count(&sessions) + more;
        let (_sessions, timeout) =
            self.acknowledged.1.wait_timeout_while(sessions, DEADLINE, |sessions| count(sessions) < goal).unwrap();
        assert!(!timeout.timed_out());
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The command on another data directory.
fn on(place: &Place, data: &Path, args: &[&str]) -> Said {
    let mut command = place.command(args);
    command.env("BANYAN_DATA", data);
    crate::common::said(&mut command)
}

fn texts_in(place: &Place, data: &Path, session: &str) -> Vec<String> {
    let said = on(place, data, &["show", session, "--json"]).ok();
    said.json_lines()
        .iter()
        .map(|item| item["message"]["content"][0]["text"].as_str().unwrap().to_owned())
        .collect()
}

/// A directory has what was acknowledged before, and nothing that was not sent.
fn has(place: &Place, data: &Path, before: &HashMap<String, Vec<String>>, after: &HashMap<String, Vec<String>>) {
    for (session, texts) in before {
        let found = texts_in(place, data, session);
        assert!(found.starts_with(texts), "{session}: {} of {}", found.len(), texts.len());
        // One more may be there than was acknowledged when the backup had ended.
        let all = &after[session];
        let known = found.len().min(all.len());
        assert_eq!(found[..known], all[..known], "{session}");
        assert!(found.len() <= all.len() + 1, "{session}");
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_backup_of_a_server_that_is_written_to_has_all_that_was_acknowledged() {
    let place = Place::new();
    let served = place.serve();
    let root = tempfile::tempdir().unwrap();
    let backup = root.path().join("backup");
    let writer = Writer::begin(&place, &served, "w");
    for round in 0..3 {
        writer.wait_for_more(20);
        let before = writer.so_far();
        // The directory belongs to the server, which is found by its note.
        let said = place.run(&["backup", "--to", path(&backup), "--json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let after = writer.so_far();
        assert_eq!(said.json_lines()[0]["generation"], round + 1);
        assert_eq!(said.json_lines()[0]["damage"], json!([]));
        let restored = root.path().join(format!("restored-{round}"));
        on(&place, &restored, &["restore", path(&backup)]).ok();
        on(&place, &restored, &["verify"]).ok();
        has(&place, &restored, &before, &after);
    }
    drop(writer);
    place.run(&["verify", path(&backup)]).ok();
    // Nothing is kept for the backup any more, once what is unused goes.
    drop(served);
    place.run(&["purge"]).ok();
    let bases = place.dir().join(".banyan/bases");
    assert_eq!(fs::read_dir(bases).unwrap().count(), 0);
}

#[test]
fn a_server_is_backed_up_by_its_address_with_a_key_to_everything() {
    let place = Place::new();
    place.session("s", "", &["one"]);
    let operator = place.run(&["key", "create", "--name", "ops", "--quiet"]).ok().out;
    let scoped = place.run(&["key", "create", "--name", "ada", "--scope", "owner=u", "--quiet"]).ok().out;
    let reader = place.run(&["key", "create", "--name", "eye", "--read-only", "--quiet"]).ok().out;
    let served = place.serve();
    let root = tempfile::tempdir().unwrap();
    let backup = root.path().join("backup");
    let run = |key: &str, args: &[&str]| {
        let to = ["backup", &served.url, "--to", path(&backup), "--json", "--key", key.trim()];
        let mut command = place.command(&[&to, args].concat());
        crate::common::said(command.env("BANYAN_DATA", root.path().join("nowhere")))
    };
    for key in [&scoped, &reader] {
        assert_eq!(run(key, &[]).refusal(), (Some(1), "auth/forbidden".into()));
    }
    assert_eq!(run("banyan_none_none", &[]).refusal(), (Some(1), "auth/unauthenticated".into()));
    assert_eq!(place.run(&["verify", path(&backup), "--json"]).refusal(), (Some(1), "backup/refused".into()));
    run(&operator, &[]).ok();
    let restored = root.path().join("restored");
    let refused = on(&place, &restored, &["restore", path(&backup), "--with-keys", "--json"]).refusal();
    assert_eq!(refused, (Some(1), "backup/refused".into()));
    run(&operator, &["--with-keys"]).ok();
    on(&place, &restored, &["restore", path(&backup), "--with-keys"]).ok();
    let keys = |data: &Path| fs::read(data.join(".banyan/keys.json")).unwrap();
    assert_eq!(keys(&restored), keys(&place.dir()));
    #[cfg(unix)]
    for private in [&backup, &restored] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(private).unwrap().permissions().mode() & 0o777, 0o700, "{}", private.display());
    }
    let verified = |key: &str| {
        let mut command = place.command(&["verify", "--json", "--url", &served.url, "--key", key.trim()]);
        crate::common::said(&mut command)
    };
    assert_eq!(verified(&reader).refusal(), (Some(1), "auth/forbidden".into()));
    assert_eq!(verified(&operator).ok().json_lines()[0]["sound"], true);
}

#[test]
fn a_backup_that_is_killed_leaves_the_one_before() {
    let place = Place::new();
    place.session("s", "", &["one"]);
    let served = place.serve();
    let root = tempfile::tempdir().unwrap();
    let backup = root.path().join("backup");
    place.run(&["backup", "--to", path(&backup)]).ok();
    for round in 0..40 {
        let request = json!({"session_id": format!("more{round}"), "message": user(&"words ".repeat(3_000))});
        place
            .ask(&served, &["call", "session::ensure", &json!({"session_id": format!("more{round}")}).to_string()])
            .ok();
        place.ask(&served, &["call", "session::append", &request.to_string()]).ok();
    }
    let files = || files_below(&backup.join("records"));
    let before = files();
    let mut child = place
        .command(&["backup", "--to", path(&backup), "--rate", "30k"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while files() == before {
        assert!(child.try_wait().unwrap().is_none() && began.elapsed() < DEADLINE);
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    place.run(&["verify", path(&backup)]).ok();
    let restored = root.path().join("restored");
    let said = on(&place, &restored, &["restore", path(&backup), "--json"]).ok();
    assert_eq!(
        (&said.json_lines()[0]["generation"], &said.json_lines()[0]["report"]["sessions"]),
        (&json!(1), &json!(1))
    );
    let said = place.run(&["backup", "--to", path(&backup), "--json"]).ok();
    assert_eq!((&said.json_lines()[0]["generation"], &said.json_lines()[0]["sessions"]), (&json!(2), &json!(41)));
    place.run(&["verify", path(&backup)]).ok();
}

fn files_below(dir: &Path) -> usize {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    entries.flatten().map(|entry| if entry.path().is_dir() { files_below(&entry.path()) } else { 1 }).sum()
}

/// The first event of a stream that begins after a position.
fn first_event(served: &Served, path: &str, after: &str) -> String {
    let address = served.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    write!(stream, "GET {path}?after={after} HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let event = lines.find(|line| line.starts_with("event: ") || line.starts_with("HTTP/1.1 4")).unwrap();
    event.trim_start_matches("event: ").to_owned()
}

#[test]
fn positions_of_the_other_directory_get_a_resync() {
    let place = Place::new();
    let entries = place.session("s", "", &["one", "two"]);
    assert_eq!(entries.len(), 2);
    let root = tempfile::tempdir().unwrap();
    let backup = root.path().join("backup");
    place.run(&["backup", "--to", path(&backup)]).ok();
    // What the backup has not.
    place.session("s", "", &["three", "four"]);
    let events = place.run(&["tail", "--json", "--once"]).ok().json_lines();
    let positions: Vec<&str> = events.iter().map(|event| event["position"].as_str().unwrap()).collect();
    assert!(positions.len() >= 5, "{events:?}");

    let restored = root.path().join("restored");
    on(&place, &restored, &["restore", path(&backup)]).ok();
    assert_eq!(texts_in(&place, &restored, "s"), ["one", "two"]);
    let mut command = place.command(&["serve", "--json", "--listen", "127.0.0.1:0"]);
    let mut child =
        command.env("BANYAN_DATA", &restored).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    let url = told["url"].as_str().unwrap().to_owned();
    let served = Served { child, url, told };
    let append = json!({"session_id": "s", "message": user("new")}).to_string();
    for _ in 0..2 {
        for position in &positions {
            for path in ["/v1/events", "/v1/sessions/s/events"] {
                assert_eq!(first_event(&served, path, position), "banyan::resync", "{path} after {position}");
            }
        }
        place.ask(&served, &["call", "session::append", &append]).ok();
    }
    // New positions go on as ever, and a snapshot's position can be resumed from.
    let events = place.ask(&served, &["tail", "--json", "--once"]).ok().json_lines();
    let new: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "session::message-added")
        .map(|event| event["position"].as_str().unwrap())
        .collect();
    let first = new[new.len() - 2];
    assert!(first > positions[positions.len() - 1]);
    assert_eq!(first_event(&served, "/v1/events", first), "session::message-added");
    let history = place.ask(&served, &["show", "s", "--json"]).ok();
    assert_eq!(history.json_lines().len(), 4);
}

#[test]
fn a_damaged_backup_is_refused_and_nothing_is_written() {
    let place = Place::new();
    place.session("s", "", &["one", "two"]);
    let root = tempfile::tempdir().unwrap();
    let backup = root.path().join("backup");
    place.run(&["backup", "--to", path(&backup)]).ok();
    let file = first_file(&backup.join("records"));
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"two\"", "\"tw0\"")).unwrap();
    assert_eq!(place.run(&["verify", path(&backup)]).code, Some(1));
    let restored = root.path().join("restored");
    let said = on(&place, &restored, &["restore", path(&backup), "--json"]);
    assert_eq!((said.code, &said.json_lines()[0]["restored"]), (Some(1), &json!(false)), "{said:?}");
    assert!(fs::read_dir(&restored).unwrap().next().is_none());
    // The damaged copy goes, and the next backup writes it again.
    fs::remove_file(&file).unwrap();
    place.run(&["backup", "--to", path(&backup)]).ok();
    place.run(&["verify", path(&backup)]).ok();
    on(&place, &restored, &["restore", path(&backup)]).ok();
    let refused = on(&place, &restored, &["restore", path(&backup), "--json"]).refusal();
    assert_eq!(refused, (Some(1), "backup/refused".into()));
}

fn first_file(dir: &Path) -> std::path::PathBuf {
    let entry = fs::read_dir(dir).unwrap().next().unwrap().unwrap().path();
    if entry.is_dir() { first_file(&entry) } else { entry }
}

#[test]
fn damage_in_the_source_is_named_and_ends_with_1() {
    let place = Place::new();
    place.session("s", "", &["one", "two"]);
    place.session("t", "", &["three"]);
    let root = tempfile::tempdir().unwrap();
    let backup = root.path().join("backup");
    place.run(&["backup", "--to", path(&backup)]).ok();
    let file = place.dir().join("s.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"two\"", "\"tw0\"")).unwrap();
    place.session("t", "", &["four"]);
    // Whatever was written to a session is compared with what the backup has of it.
    let append = json!({"session_id": "s", "message": user("five")}).to_string();
    assert_eq!(place.run(&["call", "session::append", &append]).code, Some(0));
    let said = place.run(&["backup", "--to", path(&backup)]);
    assert_eq!((said.code, said.out.starts_with("s.jsonl at byte ")), (Some(1), true), "{said:?}");
    let restored = root.path().join("restored");
    let said = on(&place, &restored, &["restore", path(&backup)]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(texts_in(&place, &restored, "s"), ["one", "two", "five"]);
    assert_eq!(texts_in(&place, &restored, "t"), ["three", "four"]);
}

#[test]
fn a_state_of_the_past_and_single_sessions_are_restored() {
    let place = Place::new();
    let entries = place.session("source", "", &["one", "two"]);
    let fork = place.call("session::fork", &json!({"session_id": "source", "entry_id": entries[0]}));
    let fork = fork["session_id"].as_str().unwrap().to_owned();
    let root = tempfile::tempdir().unwrap();
    let backup = root.path().join("backup");
    let commit = place.run(&["backup", "--to", path(&backup), "--json"]).ok().json_lines()[0]["commit"].clone();
    place.session("source", "", &["three"]);
    let said = place.run(&["backup", "--to", path(&backup), "--keep", "2"]).ok();
    assert!(said.out.starts_with("Backup 2 in "), "{said:?}");
    let past = root.path().join("past");
    on(&place, &past, &["restore", path(&backup), "--at", &commit.to_string()]).ok();
    assert_eq!(texts_in(&place, &past, "source"), ["one", "two"]);
    let one = root.path().join("one");
    on(&place, &one, &["restore", path(&backup), "--session", &fork]).ok();
    assert_eq!(texts_in(&place, &one, &fork), ["one"]);
    assert_eq!(on(&place, &one, &["ls", "--json"]).ok().ids(), [fork]);
    assert_eq!(place.run(&["backup", "--to", path(&place.dir().join("within")), "--json"]).refusal().0, Some(2));
    assert_eq!(place.run(&["backup", "--to", path(root.path()), "--json"]).refusal().0, Some(1));
}

#[test]
fn a_directory_that_is_written_to_is_found_sound() {
    let place = Place::new();
    let served = place.serve();
    let writer = Writer::begin(&place, &served, "w");
    for _ in 0..5 {
        writer.wait_for_more(10);
        let beside = place.run(&["verify", "--json"]);
        assert_eq!((beside.code, &beside.json_lines()[0]["findings"]), (Some(0), &json!([])), "{beside:?}");
        let through = place.ask(&served, &["verify", "--json"]);
        assert_eq!((through.code, &through.json_lines()[0]["findings"]), (Some(0), &json!([])), "{through:?}");
    }
    drop(writer);
    let file = place.dir().join("w0.jsonl");
    // The file has everything once the server has stopped.
    assert_eq!(served.stop("TERM"), Some(0));
    let served = place.serve();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("word", "w0rd", 1)).unwrap();
    let said = place.run(&["verify", "--json"]);
    assert_eq!(
        (said.code, &said.json_lines()[0]["findings"][0]["file"]),
        (Some(1), &json!("w0.jsonl")),
        "{said:?}"
    );
    drop(served);
}

#[test]
fn a_copy_of_a_directory_that_is_written_to_has_all_that_was_acknowledged_before() {
    let place = Place::new();
    let served = place.serve();
    let root = tempfile::tempdir().unwrap();
    let writer = Writer::begin(&place, &served, "w");
    for round in 0..6 {
        writer.wait_for_more(15);
        let before = writer.so_far();
        let copy = root.path().join(format!("copy-{round}"));
        let copied = Command::new("cp").args(["-r", path(&place.dir()), path(&copy)]).output().unwrap();
        // A file that was removed while it was copied is complained about, and no harm.
        assert!(copied.status.success() || copied.status.code() == Some(1), "{copied:?}");
        for (session, texts) in &before {
            let found = texts_in(&place, &copy, session);
            assert!(found.starts_with(texts), "{session}: {} of {}", found.len(), texts.len());
        }
    }
}
