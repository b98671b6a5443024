//! A file alone gives the state that its writer had.

use std::collections::HashMap;

use banyan_model::{ContentBlock, EntryId, SessionStatus, SetActiveLeafRequest, SetMetaRequest, SetStatusRequest};
use proptest::prelude::*;

use crate::decide;
use crate::state::Node;
use crate::testing::{Session, assistant, custom, request, shape, user};

#[derive(Clone, Debug)]
pub(super) enum Step {
    Append(String),
    Answer(String),
    Branch(prop::sample::Index),
    Note,
    Extend(prop::sample::Index, String),
    Update(prop::sample::Index, String),
    MoveLeaf(prop::sample::Index),
    Status(bool),
    Title(String),
}

pub(super) fn any_step() -> impl Strategy<Value = Step> {
    let text = "[a-c\"\\\\\n\u{1}ü]{0,6}";
    prop_oneof![
        text.prop_map(Step::Append),
        text.prop_map(Step::Answer),
        any::<prop::sample::Index>().prop_map(Step::Branch),
        Just(Step::Note),
        (any::<prop::sample::Index>(), text).prop_map(|(at, text)| Step::Extend(at, text)),
        (any::<prop::sample::Index>(), text).prop_map(|(at, text)| Step::Update(at, text)),
        any::<prop::sample::Index>().prop_map(Step::MoveLeaf),
        any::<bool>().prop_map(Step::Status),
        text.prop_map(Step::Title),
    ]
}

/// Does the steps, and keeps what each message should say.
pub(super) fn play(steps: &[Step]) -> (Session, HashMap<EntryId, String>) {
    let mut session = Session::created();
    let texts = play_on(&mut session, steps);
    (session, texts)
}

/// The same in a session that has no messages, or only such as the steps leave alone.
pub(super) fn play_on(session: &mut Session, steps: &[Step]) -> HashMap<EntryId, String> {
    let mut texts: HashMap<EntryId, String> = HashMap::new();
    let mut messages: Vec<EntryId> = Vec::new();
    for step in steps {
        match step {
            Step::Append(text) => {
                let id = session.append(text);
                texts.insert(id.clone(), text.clone());
                messages.push(id);
            }
            Step::Answer(text) => {
                let id = session.answer(text);
                texts.insert(id.clone(), text.clone());
                messages.push(id);
            }
            Step::Note => {
                session.append_with(custom("note", "{}")).unwrap();
            }
            _ if messages.is_empty() => {}
            Step::Branch(at) => {
                let mut branch = request(user("branch"));
                branch.parent_id = Some(at.get(&messages).clone());
                let id = session.append_with(branch).unwrap();
                texts.insert(id.clone(), "branch".into());
                messages.push(id);
            }
            Step::Extend(at, text) => {
                let id = at.get(&messages);
                session.extend(id, text);
                texts.get_mut(id).unwrap().push_str(text);
            }
            Step::Update(at, text) => {
                let id = at.get(&messages);
                session.update(id, vec![ContentBlock::text(text.as_str())]);
                texts.insert(id.clone(), text.clone());
            }
            Step::MoveLeaf(at) => {
                let request =
                    SetActiveLeafRequest { session_id: "any".into(), entry_id: at.get(&messages).clone() };
                session.decide(|state, ctx| decide::set_active_leaf(state, request, ctx)).unwrap();
            }
            Step::Status(working) => {
                let status = if *working { SessionStatus::Working } else { SessionStatus::Done };
                let request = SetStatusRequest { session_id: "any".into(), status, reason: None };
                session.decide(|state, ctx| decide::set_status(state, request, ctx)).unwrap();
            }
            Step::Title(title) => {
                let request = SetMetaRequest {
                    session_id: "any".into(),
                    title: Some(title.clone()),
                    description: None,
                    metadata: None,
                };
                session.decide(|state, ctx| decide::set_meta(state, request, ctx)).unwrap();
            }
        }
    }
    texts
}

proptest! {
    #[test]
    fn whatever_is_done_the_file_gives_the_same_state(steps in prop::collection::vec(any_step(), 0..40)) {
        let (session, texts) = play(&steps);
        let (reloaded, faults) = session.reloaded();
        prop_assert_eq!(faults, vec![]);
        prop_assert_eq!(shape(&reloaded), shape(&session.state));
        prop_assert_eq!(session.state.meta().message_count, texts.len() as u64);
        for (id, text) in &texts {
            prop_assert_eq!(&session.text_of(id), text);
        }
    }

    #[test]
    fn the_path_is_the_chain_of_parents(steps in prop::collection::vec(any_step(), 0..40)) {
        let (session, _) = play(&steps);
        let state = &session.state;
        let mut chain = Vec::new();
        let mut next = state.leaf();
        while let Some(ix) = next {
            chain.push(ix);
            next = state.node(ix).parent();
        }
        chain.reverse();
        prop_assert_eq!(state.path(), chain);
        for (depth, ix) in state.path().iter().enumerate() {
            let messages = state.path()[..=depth].iter().filter(|ix| state.node(**ix).kind().is_message()).count();
            prop_assert_eq!(state.node(*ix).depth() as usize, depth);
            prop_assert_eq!(state.node(*ix).messages_on_path(), messages as u64);
        }
    }
}

#[test]
fn a_node_is_small() {
    assert!(size_of::<Node>() <= 80, "{}", size_of::<Node>());
}

#[test]
fn given_a_growing_message_when_its_line_is_open_then_the_file_already_tells_its_text() {
    let mut session = Session::created();
    let id = session.answer("");
    for token in ["Hel", "lo", "!"] {
        session.extend(&id, token);
    }
    assert!(!session.file.ends_with(b"\n"));
    let (reloaded, _) = session.reloaded();
    let ix = reloaded.needs_hydration().unwrap();
    assert_eq!(
        crate::testing::message_in(&reloaded, &session.file, ix),
        assistant(vec![ContentBlock::text("Hello!")])
    );
    assert_eq!(reloaded.node(ix).revision().0, 3);
}

#[test]
fn statuses_and_titles_can_be_told_for_any_record() {
    let (session, _) =
        play(&[Step::Append("a".into()), Step::Status(true), Step::Title("t".into()), Step::Status(false)]);
    let at = |seq| session.state.status_before(banyan_model::Seq(seq));
    assert_eq!(
        [at(0), at(2), at(3), at(4), at(5)],
        [
            SessionStatus::Idle,
            SessionStatus::Idle,
            SessionStatus::Working,
            SessionStatus::Working,
            SessionStatus::Done
        ]
    );
    assert_eq!(session.state.metas_before(banyan_model::Seq(2)).count(), 1);
    assert_eq!(session.state.metas_before(banyan_model::Seq(9)).count(), 2);
}
