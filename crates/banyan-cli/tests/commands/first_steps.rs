//! What a newcomer meets: the tour, the help, the place where data goes.

use std::fs;
use std::process::Command;

use crate::common::{Place, said};

#[test]
fn the_tour_walks_through_a_first_session_and_can_be_repeated() {
    let place = Place::new();
    let dir = place.dir().display().to_string();
    let tour = place.run(&["tour", "--data", &dir]).ok();
    for word in
        ["1. ", "7. ", "Sunny, 24 degrees", "Weather, asked again", ".jsonl (", "\"type\":\"created\"", "show s_"]
    {
        assert!(tour.out.contains(word), "{word}: {}", tour.out);
    }
    assert_eq!(place.run(&["ls", "--json"]).ok().json_lines().len(), 2);
    place.run(&["tour", "--data", &dir]).ok();
    assert_eq!(place.run(&["ls", "--json"]).ok().json_lines().len(), 4);
}

#[test]
fn without_data_the_tour_takes_place_in_a_new_temporary_directory() {
    let place = Place::new();
    let temp = tempfile::tempdir().unwrap();
    said(place.command(&["tour"]).env("TMPDIR", temp.path()).env("TEMP", temp.path()).env("TMP", temp.path()))
        .ok();
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    assert!(!place.dir().exists());
}

#[test]
fn every_command_teaches_by_example() {
    let place = Place::new();
    for command in [
        "tour", "serve", "config", "key", "call", "ls", "show", "tail", "fork", "rm", "verify", "backup",
        "restore",
    ] {
        let help = place.run(&[command, "--help"]).ok().out;
        let example = format!("  banyan {command}");
        assert!(help.contains("Examples:") && help.contains(&example), "{help}");
    }
    assert!(place.run(&["serve", "--help"]).ok().out.contains("SIGTERM and SIGINT stop it"));
    assert!(place.run(&["--help"]).ok().out.contains("Exit codes:"));
    assert_eq!(place.run(&["--version"]).ok().out, format!("banyan {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(place.run(&[]).code, Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn data_goes_where_it_is_told_then_where_the_environment_says_then_home() {
    let home = tempfile::tempdir().unwrap();
    let create = |set: &[(&str, &str)], args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_banyan"));
        command.env_clear().current_dir(home.path());
        command.envs(set.iter().map(|(name, dir)| (name, home.path().join(dir))));
        said(command.args(args).args(["call", "session::create"])).ok();
    };
    let all = [("HOME", "home"), ("XDG_DATA_HOME", "xdg"), ("BANYAN_DATA", "env")];
    create(&all[..1], &[]);
    create(&all[..2], &[]);
    create(&all, &[]);
    create(&all, &["--data", "told"]);
    for dir in ["home/.local/share/banyan", "xdg/banyan", "env", "told"] {
        let sessions = fs::read_dir(home.path().join(dir)).unwrap();
        let files =
            sessions.filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().ends_with(".jsonl"));
        assert_eq!(files.count(), 1, "{dir}");
    }
    let lost = said(Command::new(env!("CARGO_BIN_EXE_banyan")).env_clear().args(["ls", "--json"]));
    assert_eq!(lost.refusal(), (Some(2), "cli/usage".into()));
}

#[test]
fn what_is_not_understood_is_said_in_json_when_that_is_asked_for() {
    let place = Place::new();
    let usage = (Some(2), "cli/usage".to_owned());
    for words in [&["ls", "--bogus", "--json"][..], &["--json", "nonsense"], &["ls", "--json", "--limit", "many"]]
    {
        assert_eq!(place.run(words).refusal(), usage, "{words:?}");
    }
    let said = place.run(&["ls", "--bogus"]);
    assert!(said.code == Some(2) && said.err.contains("--help"), "{said:?}");
    assert!(place.run(&["ls", "--json", "--help"]).ok().out.contains("Usage:"));
}
