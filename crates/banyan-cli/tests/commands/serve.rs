//! `banyan serve`: how it starts, what it says, and how it stops.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::common::{Place, said, user};
use serde_json::json;

#[test]
fn a_server_makes_its_directory_and_stops_cleanly_when_asked() {
    for signal in ["TERM", "INT"] {
        let place = Place::new();
        let served = place.serve();
        let created = place.ask(&served, &["call", "session::ensure", r#"{"session_id":"s"}"#]).ok();
        assert_eq!(created.json_lines()[0]["created"], true);
        let request = json!({"session_id": "s", "message": user("kept")}).to_string();
        place.ask(&served, &["call", "session::append", &request]).ok();
        let mut following = place.follow(&served, &[]);
        assert_eq!(following.event()["type"], "session::created");

        assert_eq!(served.stop(signal), Some(0), "{signal}");

        assert!(!place.dir().join(".banyan/server.json").exists());
        assert_eq!(place.texts("s", &[]), ["kept"]);
        place.run(&["verify"]).ok();
    }
}

#[test]
fn the_first_lines_say_where_it_is_and_what_to_try() {
    let place = Place::new();
    let mut child = place
        .command(&["serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines: Vec<String> = {
        use std::io::{BufRead, BufReader};
        BufReader::new(child.stdout.take().unwrap()).lines().take(3).map(Result::unwrap).collect()
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let url = lines[0].split(' ').next().unwrap();
    assert_eq!(lines[0], format!("{url} serves {} to anyone on this machine", place.dir().display()));
    assert_eq!(lines[1], format!("  Try:   curl -s {url}/v1/call/session::create -d '{{\"title\":\"Hello\"}}'"));
    assert_eq!(lines[2], format!("  Docs:  {url}/docs"));
}

#[test]
fn a_server_whose_first_lines_nobody_reads_serves_all_the_same() {
    let place = Place::new();
    let mut child = place
        .command(&["serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let notice = place.dir().join(".banyan/server.json");
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("serves all the same") {
        line.clear();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "it says that it goes on");
    }
    let notice: serde_json::Value = serde_json::from_slice(&std::fs::read(notice).unwrap()).unwrap();
    said(&mut place.asking(notice["url"].as_str().unwrap(), &["call", "session::create"])).ok();
    let stopped = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_limit_may_be_as_large_as_a_number_can_be() {
    let place = Place::new();
    let most = usize::MAX;
    let limits =
        ["subscriptions", "subscriptions_per_socket", "connections"].map(|it| format!("limits.{it}={most}"));
    let mut args = vec!["--listen", "127.0.0.1:0"];
    args.extend(limits.iter().flat_map(|limit| ["--set", limit]));
    let served = place.serve_with(&args).unwrap_or_else(|said| panic!("{said:?}"));
    place.ask(&served, &["tail", "--once"]).ok();
    assert_eq!(served.stop("TERM"), Some(0));
}

#[test]
fn others_who_want_the_directory_are_told_where_it_is_served() {
    let place = Place::new();
    let served = place.serve();
    let pid = served.child.id().to_string();
    for args in [&["ls"][..], &["serve", "--listen", "127.0.0.1:0"], &["call", "--stream"]] {
        let said = place.run(args);
        assert_eq!((said.code, said.out.as_str()), (Some(3), ""), "{said:?}");
        assert!(said.err.contains(&format!("pid {pid}")), "{said:?}");
        assert!(said.err.contains(&format!("--url {}", served.url)), "{said:?}");
    }
    // What can be done while the directory is served is done by its server.
    place.run(&["verify"]).ok();
    // A note that a killed server left behind misleads nobody.
    drop(served);
    assert!(place.dir().join(".banyan/server.json").exists());
    let mut owner = place.stream();
    owner.send(&json!({"id": 1, "function": "session::list"}));
    owner.answer();
    let said = place.run(&["ls"]);
    assert!(said.err.contains("stop that one first") && !said.err.contains("--url"), "{said:?}");
}

#[test]
fn other_machines_can_reach_a_server_only_when_there_is_a_key() {
    let place = Place::new();
    let refused = place.serve_with(&["--listen", "0.0.0.0:0"]).err().unwrap();
    assert_eq!(refused.refusal(), (Some(2), "cli/usage".into()));
    let hint = format!("banyan key create --data {} --name NAME", place.dir().display());
    assert!(refused.err.contains(&hint), "{refused:?}");

    let key = place.run(&["key", "create", "--name", "ops", "--quiet"]).ok().out;
    let served = place.serve_with(&["--listen", "0.0.0.0:0"]).unwrap_or_else(|said| panic!("{said:?}"));
    assert_eq!(place.ask(&served, &["ls", "--json"]).refusal(), (Some(1), "auth/unauthenticated".into()));
    place.ask(&served, &["ls", "--json", "--key", key.trim()]).ok();
    assert_eq!(served.stop("TERM"), Some(0));
}

#[test]
fn what_cannot_be_served_is_said() {
    let place = Place::new();
    let served = place.serve();
    let taken = served.url.strip_prefix("http://").unwrap();
    let other = Place::new();
    let said = other.serve_with(&["--listen", taken]).err().unwrap();
    assert_eq!((said.code, said.err.contains("cannot listen on")), (Some(3), true), "{said:?}");
    assert_eq!(place.run(&["serve", "--url", "http://127.0.0.1:1"]).code, Some(2));
    assert_eq!(place.run(&["serve", "--listen", "somewhere"]).code, Some(2));
}

#[test]
fn a_server_with_a_certificate_is_asked_by_who_trusts_it() {
    let place = Place::new();
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let files = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (cert, key) = (file("cert.pem", cert.pem()), file("key.pem", signing_key.serialize_pem()));
    let args = ["--listen", "127.0.0.1:0", "--tls-certificate", &cert, "--tls-key", &key];
    let served = place.serve_with(&args).unwrap_or_else(|said| panic!("{said:?}"));
    assert!(served.url.starts_with("https://127.0.0.1:"), "{}", served.url);
    place.ask(&served, &["call", "session::create", "--ca", &cert]).ok();
    assert_eq!(place.ask(&served, &["tail", "--once", "--json", "--ca", &cert]).ok().json_lines().len(), 1);
    assert_eq!(place.ask(&served, &["ls", "--json"]).refusal(), (Some(3), "http/unreachable".into()));
    assert_eq!(place.ask(&served, &["ls", "--json", "--ca", &key]).refusal(), (Some(2), "cli/usage".into()));
    assert_eq!(served.stop("TERM"), Some(0));
}

#[test]
fn settings_come_from_a_file_then_the_environment_then_flags() {
    let place = Place::new();
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("banyan.toml");
    std::fs::write(&file, "listen = \"127.0.0.1:1\"\ndrain = \"2s\"\n[limits]\nconnections = 7\n").unwrap();
    let file = file.display().to_string();
    let mut command = place.command(&["config", "--json", "--config", &file, "--set", "limits.body_bytes=1KiB"]);
    let told = said(
        command.env("BANYAN_DRAIN", "3s").env("BANYAN_LISTEN", "127.0.0.1:2").args(["--listen", "127.0.0.1:3"]),
    )
    .ok();
    let lines = told.json_lines();
    let of = |key: &str| {
        let setting = lines.iter().find(|setting| setting["key"] == key).unwrap_or_else(|| panic!("{key}"));
        (setting["value"].as_str().unwrap(), setting["source"].as_str().unwrap())
    };
    assert_eq!(of("listen"), ("127.0.0.1:3", "--listen"));
    assert_eq!(of("drain"), ("3s", "$BANYAN_DRAIN"));
    assert_eq!(of("limits.connections"), ("7", file.as_str()));
    assert_eq!(of("limits.body_bytes"), ("1KiB", "--set"));
    assert_eq!(of("keep_alive"), ("15s", "default"));
    assert_eq!(of("data"), (place.dir().display().to_string().as_str(), "$BANYAN_DATA"));
    let table = place.run(&["config"]).ok().out;
    assert_eq!(table.lines().count(), lines.len() + 1, "{table}");
    for wrong in ["limits.nope=1", "listen=somewhere", "listen"] {
        assert_eq!(place.run(&["config", "--set", wrong]).code, Some(2), "{wrong}");
        assert_eq!(place.run(&["serve", "--set", wrong]).code, Some(2), "{wrong}");
    }
    assert!(!place.dir().exists(), "looking at settings makes no directory");
}

#[test]
fn a_setting_has_its_effect() {
    let place = Place::new();
    let args = ["--listen", "127.0.0.1:0", "--set", "limits.body_bytes=100B"];
    let served = place.serve_with(&args).unwrap_or_else(|said| panic!("{said:?}"));
    let long = json!({"title": "t".repeat(200)}).to_string();
    let said = place.ask(&served, &["call", "session::create", &long, "--json"]);
    assert_eq!(said.refusal(), (Some(1), "session/too_large".into()));
}

#[test]
fn a_worker_says_what_it_is_without_an_engine() {
    let place = Place::new();
    let told = place.run(&["worker", "--manifest"]).ok();
    let manifest: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(
        (manifest["name"].as_str(), manifest["version"].as_str()),
        (Some("session-manager"), Some("1.0.0"))
    );
    assert_eq!(manifest["default_config"]["adapter"]["name"], "fs");
    assert_eq!(manifest["supported_targets"].as_array().unwrap().len(), 1);
}

#[test]
fn an_engine_starts_the_worker_by_its_name() {
    let place = Place::new();
    let link = place.dir().with_extension("link");
    std::fs::create_dir_all(&link).unwrap();
    let link = link.join("session-manager");
    std::fs::copy(env!("CARGO_BIN_EXE_banyan"), &link).unwrap();
    let output = std::process::Command::new(&link).arg("--manifest").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"session-manager\""), "{output:?}");
}

#[test]
fn a_worker_without_an_engine_waits_and_stops_when_asked() {
    let place = Place::new();
    let mut child = place
        .command(&["worker", "--url", "ws://127.0.0.1:1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    {
        use std::io::{BufRead, BufReader};
        let mut said = BufReader::new(child.stderr.take().unwrap());
        while !line.contains("cannot be reached") {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "it says what it waits for");
        }
    }
    let stopped = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_bus_is_only_for_this_machine_and_an_engine_has_a_websocket() {
    let place = Place::new();
    for (args, word) in [
        (&["serve", "--iii-listen", "0.0.0.0:49134"][..], "loopback"),
        (&["serve", "--iii-listen", "here"], "127.0.0.1:49134"),
        (&["serve", "--iii", "http://127.0.0.1:49134"], "ws://"),
        (&["worker", "--url", "http://127.0.0.1:49134"], "ws://"),
    ] {
        let said = place.run(args);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(word), "{said:?}");
    }
}
