//! Loading a session as a store does, and what must be true of it afterwards.

use banyan_core::record::Head;
use banyan_core::{NodeIx, SessionState};

/// A file's lines, each with where it begins.
pub fn lines_of(file: &[u8]) -> Vec<(usize, &[u8])> {
    let mut offset = 0;
    let mut lines = Vec::new();
    for line in file.split_inclusive(|byte| *byte == b'\n') {
        if !line.trim_ascii().is_empty() {
            lines.push((offset, line));
        }
        offset += line.len();
    }
    lines
}

/// Applies lines, and ends the load.
pub fn load(state: &mut SessionState, lines: &[(usize, &[u8])]) {
    for (offset, line) in lines {
        let (at, len) = (*offset as u64, line.len() as u32);
        let head = match Head::parse(line) {
            Err(_) if !line.ends_with(b"\n") => Head::parse_open(line),
            head => head,
        };
        match head {
            Ok(head) => state.apply(&head, at, len),
            Err(fault) => state.apply_damaged(&fault, at, len),
        };
    }
    state.finish();
}

/// Every entry.
pub fn all(state: &SessionState) -> impl Iterator<Item = NodeIx> {
    (0..state.nodes().len() as u32).map(NodeIx)
}

/// The path ends in the leaf, each entry on it follows the one before, and every entry is found by its id.
pub fn assert_holds_together(state: &SessionState) {
    let path = state.path();
    match (state.is_cyclic(), state.leaf()) {
        (true, _) | (false, None) => assert!(path.is_empty()),
        (false, Some(leaf)) => assert_eq!(path.last(), Some(&leaf)),
    }
    assert_chain(state, path);
    assert_eq!(all(state).filter(|ix| state.on_path(*ix)).count(), path.len());
    for ix in all(state) {
        assert_eq!(state.find(&state.id(ix)), Some(ix));
        match state.chain(ix) {
            Some(chain) => {
                assert_eq!(chain.last(), Some(&ix));
                assert_chain(state, &chain);
            }
            None => assert!(state.is_endless(ix)),
        }
    }
}

fn assert_chain(state: &SessionState, chain: &[NodeIx]) {
    let mut before = None;
    for (depth, ix) in chain.iter().enumerate() {
        assert_eq!(state.node(*ix).parent(), before);
        assert_eq!(state.node(*ix).depth() as usize, depth);
        before = Some(*ix);
    }
}
