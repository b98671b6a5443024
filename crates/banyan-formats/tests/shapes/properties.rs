//! What holds for every session and every shape.

use banyan_formats::shapes::*;
use banyan_model::*;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::session::*;

/// What is told of an entry that holds a message.
fn seen(item: &Item) -> Option<(EntryId, String)> {
    Some((item.id().clone(), text(item.message()?)))
}

fn text(message: &AgentMessage) -> String {
    // By way of a value, whose keys compare in any order.
    let mut value = serde_json::to_value(message).unwrap();
    value.sort_all_objects();
    value.to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn what_is_shown_is_read_as_the_same_entries(steps in vec(step(), 0..24)) {
        let session = session_of(&steps);
        for shape in SHAPES {
            let form = session.shown(shape);
            let read = shape.read(&form, 7).unwrap();
            let items = if shape.extent() == Extent::Tree { session.items() } else { session.path() };
            let mut expected: Vec<_> = items.iter().filter_map(seen).collect();
            let mut found: Vec<(EntryId, String)> = Vec::new();
            let mut customs = 0;
            for entry in read.messages.iter().flat_map(|message| &message.entries) {
                match &entry.body {
                    Body::Message(message) => found.push((entry.id.clone(), text(message))),
                    Body::Custom(_) => customs += 1,
                    Body::Unreadable => {}
                }
            }
            // Branches are told one after another, in an order of their own.
            expected.sort();
            found.sort();
            prop_assert_eq!(found, expected, "{}", shape.name());
            let ids: Vec<&EntryId> = items.iter().map(Item::id).collect();
            let known = session.entries.iter().filter(|entry| ids.contains(&&entry.0));
            prop_assert_eq!(customs, known.filter(|entry| matches!(entry.2, Body::Custom(_))).count());
        }
    }

    #[test]
    fn its_own_form_adds_nothing(steps in vec(step(), 0..24)) {
        for shape in SHAPES {
            let mut session = session_of(&steps);
            let form = session.shown(shape);
            let (before, leaf) = (session.entries.len(), session.leaf.clone());
            // What could not be read is there, and is not written again.
            prop_assert_eq!(session.post(shape, &form), 0, "{}", shape.name());
            prop_assert_eq!((session.entries.len(), session.leaf.clone()), (before, leaf));
        }
    }

    #[test]
    fn another_session_of_the_same_form_looks_the_same(steps in vec(step(), 0..24)) {
        // What could not be read, and what attachments hold, stays where it is.
        let steps: Vec<Step> = steps.into_iter().filter(|step| !matches!(step, Step::Unreadable)).collect();
        let session = session_of(&steps);
        for shape in SHAPES {
            let form = session.shown(shape);
            let mut copy = Session::default();
            copy.post(shape, &form);
            prop_assert_eq!(copy.shown(shape), form.clone(), "{}", shape.name());
            prop_assert_eq!(copy.post(shape, &form), 0);
        }
    }

    #[test]
    fn technical_details_are_never_told(steps in vec(step(), 0..24)) {
        let session = session_of(&steps);
        for shape in SHAPES {
            let form = session.shown(shape).to_string();
            prop_assert!(!form.contains("technical_details") && !form.contains("secret"), "{form}");
        }
    }

    #[test]
    fn every_branch_of_assistant_ui_is_a_path_of_the_session(steps in vec(step(), 1..24)) {
        let session = session_of(&steps);
        let form = session.shown(find("assistant-ui"));
        let messages = form["messages"].as_array().unwrap();
        let entries = |message: &Value| -> Vec<String> {
            let metas = message["message"]["metadata"]["custom"]["banyan"]["entries"].as_array().unwrap();
            metas.iter().map(|meta| meta["id"].as_str().unwrap().to_owned()).collect()
        };
        let parent_of = |id: &str| session.entries.iter().find(|entry| entry.0 == id).unwrap().1.clone();
        for (at, message) in messages.iter().enumerate() {
            let ids = entries(message);
            for two in ids.windows(2) {
                prop_assert_eq!(parent_of(&two[1]), Some(two[0].as_str().into()));
            }
            let before = messages[..at].iter().find(|known| known["message"]["id"] == message["parentId"]);
            prop_assert_eq!(before.is_none(), message["parentId"].is_null());
            let last = before.map(|before| EntryId::from(entries(before).pop().unwrap()));
            prop_assert_eq!(parent_of(&ids[0]), last);
        }
        let head = messages.iter().find(|message| message["message"]["id"] == form["headId"]);
        let head = head.map(|head| EntryId::from(entries(head).pop().unwrap()));
        prop_assert_eq!(head, session.leaf.clone());
    }
}
