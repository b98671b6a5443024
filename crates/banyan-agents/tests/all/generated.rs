//! The generator of sessions makes trees that have what it promises; and files are known for what they are.

use std::collections::HashSet;

use crate::common::generate::{sessions, told};
use banyan_agents::Story;
use proptest::prelude::*;

proptest! {
    #[test]
    fn every_entry_stands_after_its_parent(session in sessions()) {
        let mut seen = HashSet::new();
        for entry in &session.entries {
            prop_assert!(entry.parent_id().is_none_or(|parent| seen.contains(parent)));
            prop_assert!(seen.insert(entry.id()));
        }
        prop_assert!(seen.contains(session.leaf.as_ref().unwrap()));
    }

    #[test]
    fn a_story_settles_every_call(session in sessions()) {
        let settled = told(&session, true);
        prop_assert!(!settled.is_empty());
        for step in Story::of(&session).steps {
            if let banyan_agents::Step::Assistant { message, calls, .. } = step {
                let made = message.content.iter().filter(|block| matches!(block, banyan_model::ContentBlock::FunctionCall(_)));
                prop_assert_eq!(made.count(), calls.len());
            }
        }
    }
}

/// Every file is known as its own agent's and no other's.
#[test]
fn files_are_told_apart() {
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for (agent, folder) in [("codex", "codex"), ("codex", "codex-0.47"), ("claude", "claude"), ("pi", "pi")] {
        let mut files = 0;
        for source in banyan_agents::agent(agent).unwrap().sources(&fixtures.join(folder)).unwrap() {
            let bytes = std::fs::read(&source.path).unwrap();
            let beginning = &bytes[..bytes.len().min(4096)];
            for other in banyan_agents::AGENTS {
                let wanted = other.id() == agent;
                assert_eq!(
                    other.recognise(&source.path, beginning),
                    wanted,
                    "{} {}",
                    other.id(),
                    source.path.display()
                );
            }
            files += 1;
        }
        assert!(files > 0);
    }
}
