//! Files that somebody names are recognised by the agent that wrote them, and by no other.

use std::io::Read;
use std::path::Path;

use banyan_agents::AGENTS;

#[test]
fn every_file_has_one_agent() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let files = [
        ("goose", "goose/sessions.db"),
        ("goose", "goose/export_20261115_1.json"),
        ("goose", "goose/legacy_handmade_20250325_200615.jsonl"),
        ("opencode", "opencode/opencode.db"),
        ("opencode", "opencode/export_ses_e1fa48844ffeNwtqQBjEmGxza0.json"),
        ("cline", "cline/sessions/1794766734784_318s2"),
        ("cline", "cline/sessions/1794766734784_318s2/1794766734784_318s2.json"),
        ("cline", "cline/sessions/1794766734784_318s2/1794766734784_318s2.messages.json"),
        ("cline", "cline/sessions/1794766760878_qfx74/agent_1794766761351_eol2k4.messages.json"),
        ("aider", "aider/.aider.chat.history.md"),
        ("aider", "aider"),
        ("claude", "claude"),
    ];
    for (agent, name) in files {
        let path = fixtures.join(name);
        let mut beginning = Vec::new();
        if path.is_file() {
            std::fs::File::open(&path).unwrap().take(4096).read_to_end(&mut beginning).unwrap();
        }
        let by: Vec<&str> =
            AGENTS.iter().filter(|agent| agent.recognise(&path, &beginning)).map(|agent| agent.id()).collect();
        assert_eq!(by, [agent], "{name}");
        let sources = banyan_agents::agent(agent).unwrap().sources(&path).unwrap();
        assert!(!sources.is_empty() && sources.iter().all(|source| source.agent == agent), "{name}");
    }
}

#[test]
fn a_folder_of_projects_is_not_claudes_because_of_its_name() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("projects/website");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::write(project.join("events.jsonl"), "{\"type\":\"click\",\"at\":1}\n").unwrap();
    let claude = banyan_agents::agent("claude").unwrap();
    assert!(!claude.recognise(home.path(), b""));
    let record =
        r#"{"type":"user","sessionId":"s","uuid":"u","parentUuid":null,"message":{"role":"user","content":"Hi"}}"#;
    std::fs::write(project.join("session.jsonl"), format!("{record}\n")).unwrap();
    assert!(claude.recognise(home.path(), b""));
}
