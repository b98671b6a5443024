//! The generator of sessions is itself worth a look: what it makes is a tree, and it has what it promises.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use std::collections::HashSet;

use banyan_agents::Story;
use common::generate::{sessions, told};
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
