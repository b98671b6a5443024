//! A snapshot and the lines after it give what all the lines give.

use std::collections::BTreeMap;

use banyan_model::{AttachmentId, CommitNo, Object, PutAttachmentRequest, SessionId, SessionMeta};
use proptest::prelude::*;

use super::forks::fork;
use super::legacy::{entry, leaf, meta};
use super::replay::{Step, any_step, play, play_on};
use crate::decide::{self, AttachmentContent};
use crate::record::{Attached, Base};
use crate::state::history::History;
use crate::state::{Node, NodeIx, SessionState, Source};
use crate::testing::{Session, apply_lines, load, message_in, object, request, user};

/// Everything in a state that is not made for one process only.
#[derive(Debug, PartialEq)]
struct Whole {
    session_id: SessionId,
    meta: SessionMeta,
    metadata: Option<Object>,
    exists: bool,
    numbers: (u64, u64, CommitNo, u64, u32),
    nodes: Vec<Node>,
    found: Vec<Option<NodeIx>>,
    leaf: Option<NodeIx>,
    path: Vec<NodeIx>,
    flags: (bool, bool, bool, bool),
    sources: Vec<Source>,
    base: Option<Base>,
    growing: Option<NodeIx>,
    history: History,
    custom_types: Vec<Box<str>>,
    attachments: BTreeMap<AttachmentId, Attached>,
    leaf_at_damage: Option<Option<NodeIx>>,
}

fn whole(state: &SessionState) -> Whole {
    let state = state.clone();
    Whole {
        found: state.nodes.iter().map(|node| state.find(&node.id())).collect(),
        session_id: state.session_id,
        meta: state.meta.as_ref().clone(),
        metadata: state.metadata.as_deref().cloned(),
        exists: state.exists,
        numbers: (state.next_seq, state.slack, state.last_commit, state.damaged_lines, state.inherited),
        nodes: state.nodes,
        leaf: state.leaf,
        path: state.path,
        flags: (state.cyclic, state.relink, state.legacy_leaf_pending, state.metadata_in_doubt),
        sources: state.sources,
        base: state.base,
        growing: state.growing.map(|growing| growing.node()),
        history: state.history,
        custom_types: state.custom_types,
        attachments: state.attachments,
        leaf_at_damage: state.leaf_at_damage,
    }
}

fn snapshot(state: &SessionState) -> Vec<u8> {
    let mut bytes = b"before".to_vec();
    state.to_snapshot(&mut bytes);
    bytes.split_off(6)
}

fn restored(state: &SessionState) -> SessionState {
    SessionState::from_snapshot(&snapshot(state)).unwrap()
}

/// The state of a file that is loaded up to a place, goes through a snapshot, and is loaded to its end.
fn by_way_of_a_snapshot(begin: &SessionState, file: &[u8], cut: usize) -> SessionState {
    let mut state = begin.clone();
    apply_lines(&mut state, &file[..cut], 0);
    let mut state = restored(&state);
    apply_lines(&mut state, file, cut);
    state.finish();
    state
}

fn all_cuts_agree(begin: &SessionState, file: &[u8]) -> Result<(), TestCaseError> {
    let mut at_once = begin.clone();
    apply_lines(&mut at_once, file, 0);
    at_once.finish();
    let ends = file.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    for cut in std::iter::once(0).chain(ends) {
        let state = by_way_of_a_snapshot(begin, file, cut);
        prop_assert_eq!(whole(&state), whole(&at_once));
        prop_assert_eq!(snapshot(&state), snapshot(&at_once));
    }
    Ok(())
}

/// What can happen to a line of a file.
#[derive(Clone, Debug)]
enum Harm {
    Text,
    Everything,
    Gone,
    Twice,
}

fn any_harm() -> impl Strategy<Value = Harm> {
    prop_oneof![Just(Harm::Text), Just(Harm::Everything), Just(Harm::Gone), Just(Harm::Twice)]
}

fn harmed(file: &[u8], harms: &[(prop::sample::Index, Harm)]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = file.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    for (at, harm) in harms {
        let at = at.index(lines.len());
        match harm {
            Harm::Text if lines[at].len() > 40 => {
                let place = lines[at].len() - 40;
                lines[at][place] ^= 1;
            }
            Harm::Text | Harm::Everything => lines[at] = b"\xff\n".to_vec(),
            Harm::Gone => lines[at] = b"\n".to_vec(),
            Harm::Twice => lines.insert(at, lines[at].clone()),
        }
    }
    lines.concat()
}

fn any_legacy_line() -> impl Strategy<Value = String> {
    let id = || (0..5_u8).prop_map(|number| format!("e{number}"));
    prop_oneof![
        4 => (id(), prop::option::of(id())).prop_map(|(id, parent)| entry(&id, parent.as_deref(), "text")),
        2 => id().prop_map(|id| leaf(&id)),
        1 => (0..5_u64).prop_map(meta),
    ]
}

proptest! {
    // Each case tries every cut.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_was_done_every_cut_gives_the_same_state(steps in prop::collection::vec(any_step(), 0..30)) {
        let (mut session, _) = play(&steps);
        session.close();
        all_cuts_agree(&SessionState::begin("other".into()), &session.file)?;
    }

    #[test]
    fn whatever_is_damaged_every_cut_gives_the_same_state(
        steps in prop::collection::vec(any_step(), 0..20),
        harms in prop::collection::vec((any::<prop::sample::Index>(), any_harm()), 0..5),
    ) {
        let (mut session, _) = play(&steps);
        session.close();
        all_cuts_agree(&SessionState::begin("other".into()), &harmed(&session.file, &harms))?;
    }

    #[test]
    fn every_cut_of_a_foreign_file_gives_the_same_state(
        lines in prop::collection::vec(any_legacy_line(), 0..15),
        harms in prop::collection::vec((any::<prop::sample::Index>(), any_harm()), 0..2),
    ) {
        let file = lines.iter().map(|line| format!("{line}\n")).collect::<String>() + &meta(0) + "\n";
        all_cuts_agree(&SessionState::begin("s".into()), &harmed(file.as_bytes(), &harms))?;
    }

    #[test]
    fn every_cut_of_a_fork_gives_the_same_state(
        before in prop::collection::vec(any_step(), 0..20),
        after in prop::collection::vec(any_step(), 0..20),
    ) {
        let (mut source, _) = play(&before);
        let entry = source.append("forked here");
        let mut fork = fork(&mut source, &entry);
        let begin = SessionState::begin_fork("fork".into(), &fork.base, &source.state).unwrap();
        play_on(&mut fork.session, &after);
        fork.session.close();
        all_cuts_agree(&begin, &fork.session.file)?;
    }

}

proptest! {
    #[test]
    fn a_session_lives_on_after_its_snapshot(
        before in prop::collection::vec(any_step(), 0..20),
        after in prop::collection::vec(any_step(), 0..20),
    ) {
        let (mut session, _) = play(&before);
        session.close();
        let mut other = session.clone();
        other.state = restored(&session.state);
        if let Some(ix) = other.state.needs_hydration() {
            other.state.hydrate(message_in(&other.state, &other.file, ix));
        }
        play_on(&mut session, &after);
        play_on(&mut other, &after);
        prop_assert_eq!(whole(&other.state), whole(&session.state));
        prop_assert_eq!(other.file, session.file);
    }

    #[test]
    fn one_changed_byte_is_always_noticed(
        steps in prop::collection::vec(any_step(), 0..10),
        at: prop::sample::Index,
        flip in 1_u8..,
    ) {
        let mut bytes = snapshot(&play(&steps).0.state);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert!(SessionState::from_snapshot(&bytes).is_none());
    }

    #[test]
    fn no_part_of_a_snapshot_is_one(steps in prop::collection::vec(any_step(), 0..10), at: prop::sample::Index) {
        let bytes = snapshot(&play(&steps).0.state);
        prop_assert!(SessionState::from_snapshot(&bytes[..at.index(bytes.len())]).is_none());
        prop_assert!(SessionState::from_snapshot(&[&bytes[..], b"\0"].concat()).is_none());
    }

    /// Whoever forges the checksum gets a state or none, and a state that he gets can be asked anything.
    #[test]
    fn no_bytes_make_a_reader_stumble(
        steps in prop::collection::vec(any_step(), 0..10),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = snapshot(&play(&steps).0.state);
        let end = bytes.len() - 4;
        for (at, byte) in changes {
            let at = 16 + at.index(end - 16);
            bytes[at] = byte;
        }
        let crc = crc32c::crc32c(&bytes[..end]).to_le_bytes();
        bytes[end..].copy_from_slice(&crc);
        if let Some(mut state) = SessionState::from_snapshot(&bytes) {
            for at in 0..state.nodes.len() as u32 {
                let _ = (state.chain(NodeIx(at)), state.body(NodeIx(at)), state.origin_line(NodeIx(at)));
            }
            apply_lines(&mut state, &play(&[Step::Append("a".into()), Step::Note]).0.file, 0);
            state.finish();
        }
    }
}

#[test]
fn metadata_and_attachments_come_back() {
    let mut session = Session::created();
    let request_meta = banyan_model::SetMetaRequest {
        session_id: "any".into(),
        title: None,
        description: Some("d".into()),
        metadata: Some(object(r#"{"b":0.30000000000000004,"a":[1e-7,18446744073709551615,{"c":null}]}"#)),
    };
    session.decide(|state, ctx| decide::set_meta(state, request_meta, ctx)).unwrap();
    let put: PutAttachmentRequest =
        serde_json::from_str(r#"{"session_id":"any","name":"n","mime":"text/plain","data":"aGk="}"#).unwrap();
    let content = || AttachmentContent { size: 2, sha256: "ab".into(), blob: "cd".into() };
    session.decide(|state, ctx| decide::put_attachment(state, &put, content(), ctx)).unwrap();
    let mut own = request(user("a"));
    own.entry_id = Some("a caller's own id".into());
    session.append_with(own).unwrap();
    assert_eq!(whole(&restored(&session.state)), whole(&session.state));
    assert_eq!(session.state.attachments().len(), 1);
}

#[test]
fn given_a_growing_message_then_it_is_to_be_read_again() {
    let mut session = Session::created();
    let id = session.answer("Hel");
    session.extend(&id, "lo");
    let state = restored(&session.state);
    assert_eq!(state.needs_hydration(), state.find(&id));
    assert!(session.state.needs_hydration().is_none());
}

#[test]
fn an_entry_takes_few_bytes() {
    let mut session = Session::created();
    for _ in 0..1_000 {
        session.append("some text");
    }
    let bytes = snapshot(&session.state).len();
    assert!(bytes < 32 * 1_000, "{bytes}");
}

#[test]
fn what_is_no_snapshot_is_refused() {
    let (state, _) = load("s", b"");
    let mut other_version = snapshot(&state);
    other_version[14] += 1;
    let end = other_version.len() - 4;
    let crc = crc32c::crc32c(&other_version[..end]).to_le_bytes();
    other_version[end..].copy_from_slice(&crc);
    for bytes in [&b""[..], b"abc", b"{\"schema_version\":1}\n", &other_version] {
        assert!(SessionState::from_snapshot(bytes).is_none());
    }
}
