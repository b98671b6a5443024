//! The real tools go on with what we write: Codex, Claude Code, pi and Goose, each with sessions of each. `make test-agents` has all ten.

use std::path::Path;
use std::process::Command;

const AGENTS: &str = "codex,claude,pi,goose";

/// What is not here is said on standard error, where whoever runs the tests can see it.
#[test]
fn given_sessions_of_four_agents_when_they_go_on_in_each_other_then_the_whole_history_reaches_the_model() {
    for (program, why) in [
        ("python3", "the driver is written in it"),
        ("npm", "it installs the agents"),
        ("git", "agents work in repositories"),
    ] {
        if Command::new(program).arg("--version").output().is_err() {
            eprintln!("LEFT OUT: the real agents are not tried, because there is no {program}; {why}.");
            return;
        }
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/agents/matrix.py");
    let output = Command::new("python3")
        .arg(script)
        .args(["--banyan", env!("CARGO_BIN_EXE_banyan"), "--from", AGENTS, "--to", AGENTS])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    eprintln!("{said}");
    match output.status.code() {
        Some(0) => assert!(said.contains("holds"), "{said}"),
        Some(3) => eprintln!("LEFT OUT: none of the real agents could be installed here."),
        code => panic!("{code:?}: {said}\n{}", String::from_utf8_lossy(&output.stderr)),
    }
}
