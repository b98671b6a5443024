//! A small disk fills up under a running server, and gets room again. Needs root, to mount a file system of its own.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Place, user};

/// How long anything may take before a test gives up on it.
const DEADLINE: Duration = Duration::from_secs(120);

/// A tmpfs in a mount namespace of its own, which ends with the process that holds it.
struct SmallDisk {
    holder: Child,
    place: Place,
}

impl SmallDisk {
    /// Mounts one of this size, or says why that is not possible here.
    fn mount(size: &str) -> Result<Self, String> {
        let place = Place::new();
        std::fs::create_dir(place.dir()).map_err(|error| error.to_string())?;
        let script = format!("mount -t tmpfs -o size={size} none \"$0\" && echo mounted && exec cat");
        let holder = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .arg(place.dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("unshare: {error}"))?;
        let mut disk = Self { holder, place };
        let mut line = String::new();
        let output = disk.holder.stdout.as_mut().ok_or("no output")?;
        BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
        if line == "mounted\n" { Ok(disk) } else { Err("a file system cannot be mounted here".to_owned()) }
    }

    fn path(&self) -> PathBuf {
        let mounted = self.place.dir();
        let inside = mounted.strip_prefix("/").unwrap();
        Path::new("/proc").join(self.holder.id().to_string()).join("root").join(inside)
    }

    fn serve(&self) -> Server {
        let log = self.place.dir().with_extension("log");
        let data = self.path().join("data");
        let mut serve = self.place.command(&["serve", "--json", "--listen", "127.0.0.1:0"]);
        serve.env("BANYAN_DATA", self.place.dir().join("data"));
        let mut inside = Command::new("nsenter");
        inside.arg(format!("--mount=/proc/{}/ns/mnt", self.holder.id())).arg(serve.get_program());
        for (name, value) in serve.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        let mut child = inside
            .args(serve.get_args())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let first: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        let agent = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().new_agent();
        Server { child, url: first["url"].as_str().unwrap().to_owned(), log, data, agent }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// A server whose log is kept.
struct Server {
    child: Child,
    url: String,
    log: PathBuf,
    data: PathBuf,
    agent: ureq::Agent,
}

impl Server {
    fn call(&self, function: &str, request: &Value) -> (u16, Value) {
        let address = format!("{}/v1/call/{function}", self.url);
        let mut response = self.agent.post(&address).send(request.to_string()).unwrap();
        let body = response.body_mut().read_to_string().unwrap();
        (response.status().as_u16(), serde_json::from_str(&body).unwrap_or_else(|_| panic!("{body}")))
    }

    fn get(&self, path: &str) -> (u16, String) {
        let mut response = self.agent.get(format!("{}{path}", self.url)).call().unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    }

    fn metric(&self, name: &str) -> f64 {
        let page = self.get("/metrics").1;
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("banyan_{name} ")));
        line.unwrap_or_else(|| panic!("no banyan_{name} in {page}")).parse().unwrap()
    }

    /// Appends a message with this many different words.
    fn append(&self, session: &str, number: usize, words: usize) -> (u16, Value) {
        let text: Vec<String> =
            (0..words).map(|word| format!("w{:x}", (number * words + word) * 0x9e37)).collect();
        let request = json!({"session_id": session, "message": user(&text.join(" "))});
        self.call("session::append", &request)
    }

    /// Appends to session after session until the disk is full. Gives the sessions, and how many messages were kept.
    fn fill(&self) -> (Vec<String>, usize) {
        let mut sessions = Vec::new();
        let mut kept = 0;
        loop {
            let session = format!("s{}", sessions.len());
            let (status, answer) = self.call("session::ensure", &json!({"session_id": session}));
            if status != 200 {
                assert_full(status, &answer);
                return (sessions, kept);
            }
            sessions.push(session.clone());
            for _ in 0..100 {
                let (status, answer) = self.append(&session, kept, 2500);
                if status != 200 {
                    assert_full(status, &answer);
                    return (sessions, kept);
                }
                kept += 1;
            }
        }
    }

    fn lines(&self, with: &str) -> Vec<String> {
        let log = std::fs::read_to_string(&self.log).unwrap();
        log.lines().filter(|line| line.contains(with)).map(str::to_owned).collect()
    }

    fn free(&self) -> u64 {
        let at = rustix::fs::statvfs(&self.data).unwrap();
        at.f_bavail * at.f_frsize
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn assert_full(status: u16, answer: &Value) {
    assert_eq!(status, 503, "{answer}");
    assert!(answer.to_string().contains("the disk is full"), "{answer}");
}

/// Repeats something until it says that it is done.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

#[test]
fn a_full_disk_that_gets_room_takes_appends_again_without_a_restart() {
    let disk = match SmallDisk::mount("64m") {
        Ok(disk) => disk,
        Err(why) => return skipped("a_full_disk_that_gets_room_takes_appends_again_without_a_restart", &why),
    };
    let (ballast, rest) = (disk.path().join("ballast"), disk.path().join("rest"));
    std::fs::write(&ballast, vec![7; 24 << 20]).unwrap();
    let server = disk.serve();
    assert_eq!(server.get("/readyz"), (200, "ok\n".to_owned()));
    let (sessions, kept) = server.fill();
    assert!(kept > 300, "{kept} messages were kept before the disk was full");
    // What the search index gives back is taken, too, until nothing is left.
    until("the disk is full to the last byte", || {
        let _ = File::options()
            .append(true)
            .create(true)
            .open(&rest)
            .and_then(|mut file| file.write_all(&[7; 1 << 16]));
        server.metric("disk_level") == 2.0 && server.free() == 0 && !server.lines("the disk is full").is_empty()
    });
    assert_full_and_readable(&server, &sessions);

    std::fs::remove_file(&ballast).unwrap();
    until("an append is taken", || server.append(&sessions[0], 0, 1000).0 == 200);
    // What is derived goes on, too, and stops before it takes what the log needs.
    until("the search index is made again", || {
        let index = server.data.join(".banyan/index/search");
        let files = std::fs::read_dir(index).into_iter().flatten().flatten();
        files.filter_map(|file| Some(file.metadata().ok()?.len())).sum::<u64>() > 512 << 10
    });
    for number in 0..100 {
        let (status, answer) = server.append(&sessions[0], number, 500);
        assert_eq!(status, 200, "{answer}");
    }
    until("the log says that there is room", || !server.lines("the disk has room again").is_empty());
    let (status, ready) = server.get("/readyz");
    assert!(status == 200 && ready.starts_with("ok"), "{status} {ready}");
    assert_eq!(server.lines("begins anew"), [""; 0], "a full disk is no damage");
    assert_eq!(server.lines("made anew"), [""; 0], "a full disk is no damage");
    let lines = server.lines("\"the disk ");
    assert!(lines.len() <= 12, "a line at each change, and not a line a second: {lines:#?}");
}

fn assert_full_and_readable(server: &Server, sessions: &[String]) {
    let (status, answer) = server.append(&sessions[0], 0, 1000);
    assert_full(status, &answer);
    let (status, reason) = server.get("/readyz");
    assert!(status == 503 && reason.contains("the disk is full"), "{status} {reason}");
    let page = server.call("session::messages", &json!({"session_id": sessions[0], "limit": 1}));
    assert_eq!(page.0, 200, "{page:?}");
}

#[test]
fn sessions_are_deleted_on_a_full_disk_and_that_makes_room() {
    let disk = match SmallDisk::mount("64m") {
        Ok(disk) => disk,
        Err(why) => return skipped("sessions_are_deleted_on_a_full_disk_and_that_makes_room", &why),
    };
    let server = disk.serve();
    let (sessions, _) = server.fill();
    let rest = disk.path().join("rest");
    until("the disk is full to the last byte", || {
        let _ = File::options()
            .append(true)
            .create(true)
            .open(&rest)
            .and_then(|mut file| file.write_all(&[7; 1 << 16]));
        server.metric("disk_level") == 2.0 && server.free() == 0
    });
    let reserve = server.data.join(".banyan/reserve");
    assert!(reserve.exists(), "the log has kept its reserve");
    assert_full_and_readable(&server, &sessions);
    let (doomed, kept) = sessions.split_at(sessions.len() / 2);
    for session in doomed {
        let (status, answer) = server.call("session::delete", &json!({"session_id": session}));
        assert_eq!((status, &answer["deleted"]), (200, &json!(true)), "{answer}");
    }
    until("an append is taken", || server.append(&kept[0], 0, 1000).0 == 200);
    until("the reserve is whole again", || reserve.exists());
    let missing = server.call("session::get", &json!({"session_id": doomed[0]}));
    assert_eq!(missing.1["session"], Value::Null, "{missing:?}");
}
