//! Sessions that go on in an agent, and come back.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{FIRST, Machine, added, append, session, turn};
use crate::common::{said, user};

#[test]
fn given_an_imported_session_when_it_is_exported_to_its_agent_then_the_file_is_read_as_the_same_session() {
    let machine = Machine::new();
    machine.rollout(FIRST, 3);
    machine.import(&["codex"]);
    let before = machine.all_of(&session(FIRST));
    let folder = machine.home().join("elsewhere");
    let said = machine.run(&["export", &session(FIRST), "--to", "codex", "-o", folder.to_str().unwrap()]).ok();
    let path = PathBuf::from(said.out.trim_end());
    assert!(path.starts_with(&folder) && path.is_file(), "{path:?}");
    let again = machine.run(&["export", &session(FIRST), "--to", "codex", "-o", folder.to_str().unwrap()]).ok();
    assert_ne!(again.out, said.out, "no file is written over");
    assert_eq!(added(&machine.import(&[folder.to_str().unwrap()])), 0, "it is known as what it is");
    let after = machine.all_of(&session(FIRST));
    assert_eq!((&after["tree"], &after["log"]), (&before["tree"], &before["log"]));
}

#[test]
fn given_a_session_of_our_own_when_it_goes_on_in_an_agent_then_what_is_said_there_comes_back_to_it() {
    let machine = Machine::new();
    machine.call("session::ensure", &json!({"session_id": "own", "title": "Mine"}));
    for text in ["one", "two"] {
        machine.call("session::append", &json!({"session_id": "own", "message": user(text)}));
    }
    let cwd = machine.home().join("work");
    fs::create_dir(&cwd).unwrap();
    let said = machine.run(&["resume", "own", "--in", "codex", "--cwd", cwd.to_str().unwrap(), "--json"]).ok();
    let resumed: Value = said.json_lines().remove(0);
    let path = PathBuf::from(resumed["paths"][0].as_str().unwrap());
    assert!(path.starts_with(machine.home().join(".codex")), "{resumed}");
    assert_eq!(resumed["command"][0], "codex");
    assert_eq!(resumed["cwd"], fs::canonicalize(&cwd).unwrap().to_str().unwrap());
    append(&path, &turn(7));
    let reports = machine.import(&["codex"]);
    assert_eq!(machine.run(&["ls", "--json"]).ok().ids(), ["own"], "{reports:?}");
    let shown = machine.run(&["show", "own"]).ok().out;
    let places: Vec<usize> =
        ["one", "two", "ask 7", "answer 7"].iter().map(|text| shown.find(text).unwrap_or(usize::MAX)).collect();
    assert!(places.is_sorted() && !places.contains(&usize::MAX), "{shown}");
    assert_eq!(machine.meta("own")["title"], "Mine");
    let printed = machine.run(&["resume", "own", "--in", "codex", "--cwd", cwd.to_str().unwrap()]);
    assert!(printed.out.contains("codex resume ") && printed.out.starts_with("cd "), "{printed:?}");
}

#[test]
fn given_what_cannot_be_done_when_it_is_asked_for_then_it_is_refused_in_words() {
    let machine = Machine::new();
    machine.call("session::ensure", &json!({"session_id": "own"}));
    for (args, word) in [
        (&["resume", "own", "--in", "emacs"][..], "the agents are"),
        (&["export", "own", "--to", "emacs"][..], "the agents are"),
        (&["export", "own", "--to", "codex", "--redact"][..], "for files"),
        (&["export", "own", "--to", "html", "--cwd", "."][..], "for agents"),
        (&["resume", "own", "--in", "codex", "--cwd", "nowhere"][..], "no directory"),
    ] {
        let said = machine.run(args);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(word), "{said:?}");
    }
}

#[test]
fn given_a_server_when_a_session_is_resumed_from_it_then_it_is_written_here() {
    let here = Machine::new();
    let served = here.place.serve();
    let there = here.asking(&served.url);
    there.call("session::ensure", &json!({"session_id": "own"}));
    there.call("session::append", &json!({"session_id": "own", "message": user("over the wire")}));
    let said = there.run(&["resume", "own", "--in", "codex", "--json"]).ok();
    let path = said.json_lines()[0]["paths"][0].as_str().unwrap().to_owned();
    assert!(fs::read_to_string(path).unwrap().contains("over the wire"));
}

#[cfg(unix)]
#[test]
fn given_run_when_a_session_is_resumed_then_the_agent_takes_over_in_its_directory() {
    use std::os::unix::fs::PermissionsExt;

    let machine = Machine::new();
    machine.call("session::ensure", &json!({"session_id": "own"}));
    machine.call("session::append", &json!({"session_id": "own", "message": user("hello")}));
    let (bin, cwd) = (machine.home().join("bin"), machine.home().join("work"));
    fs::create_dir(&bin).unwrap();
    fs::create_dir(&cwd).unwrap();
    let cwd = fs::canonicalize(&cwd).unwrap();
    let run = |path: &str| {
        let args = ["resume", "own", "--in", "codex", "--cwd", cwd.to_str().unwrap(), "--run"];
        said(machine.command(&args).env("PATH", path))
    };
    let missing = run(bin.to_str().unwrap());
    assert_eq!(missing.code, Some(3), "{missing:?}");
    assert!(missing.err.contains("not installed") && missing.err.contains("&& codex resume "), "{missing:?}");
    let codex = bin.join("codex");
    fs::write(&codex, "#!/bin/sh\necho \"$@ in $(pwd)\"; exit 7\n").unwrap();
    fs::set_permissions(&codex, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = run(&format!("{}:/usr/bin:/bin", bin.display()));
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(ran.out.starts_with("resume ") && ran.out.trim_end().ends_with(cwd.to_str().unwrap()), "{ran:?}");
}
