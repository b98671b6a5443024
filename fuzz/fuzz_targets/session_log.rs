//! A whole session file, however damaged: it loads, its path holds together, and every read answers.

#![no_main]

use banyan_core::page::{self, Loaded};
use banyan_core::record::{Base, Head, body_text, parse_full, parse_full_open};
use banyan_core::{Limits, NodeIx, Place, SessionState};
use banyan_fuzz::lines;
use banyan_model::{MessagesRangeRequest, MessagesRequest, MessagesTailRequest, Seq};
use libfuzzer_sys::fuzz_target;

/// Each check looks at every entry for every entry, so that long inputs say nothing new and take long.
const LONGEST: usize = 1 << 16;

fuzz_target!(|data: &[u8]| {
    if data.len() > LONGEST {
        return;
    }
    let file = lines::sealed_file(data);
    let state = load(&file);
    path_holds_together(&state);
    bodies_are_in_the_file(&state, &file);
    pages_add_up(&state, &file);
    forks(&state);
});

fn load(file: &[u8]) -> SessionState {
    let mut state = SessionState::begin("s_fuzz".into());
    let mut offset = 0;
    for line in file.split_inclusive(|byte| *byte == b'\n') {
        let (at, len) = (offset as u64, line.len() as u32);
        offset += line.len();
        if line.trim_ascii().is_empty() {
            continue;
        }
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
    state
}

fn all(state: &SessionState) -> impl Iterator<Item = NodeIx> {
    (0..state.nodes().len() as u32).map(NodeIx)
}

fn path_holds_together(state: &SessionState) {
    let path = state.path();
    match (state.is_cyclic(), state.leaf()) {
        (true, _) | (false, None) => assert!(path.is_empty()),
        (false, Some(leaf)) => assert_eq!(path.last(), Some(&leaf)),
    }
    chain_holds_together(state, path);
    assert_eq!(all(state).filter(|ix| state.on_path(*ix)).count(), path.len());
    for ix in all(state) {
        assert_eq!(state.find(&state.id(ix)), Some(ix));
        let Some(chain) = state.chain(ix) else {
            assert!(state.is_endless(ix));
            continue;
        };
        assert_eq!(chain.last(), Some(&ix));
        chain_holds_together(state, &chain);
    }
}

fn chain_holds_together(state: &SessionState, chain: &[NodeIx]) {
    let mut before = None;
    for (depth, ix) in chain.iter().enumerate() {
        assert_eq!(state.node(*ix).parent(), before);
        assert_eq!(state.node(*ix).depth() as usize, depth);
        before = Some(*ix);
    }
}

fn line_at(file: &[u8], place: Place) -> &[u8] {
    &file[place.offset as usize..][..place.len as usize]
}

fn bodies_are_in_the_file(state: &SessionState, file: &[u8]) {
    let last = Seq(state.next_seq().0.saturating_sub(1));
    for ix in all(state) {
        let _ = (state.origin_place(ix), state.custom_type(ix), state.parent_id(ix));
        let parts = state.body(ix).into_iter().chain(state.body_parts_as_of(ix, last));
        for parts in parts {
            let _ = parse_full(line_at(file, parts.full));
            for grown in parts.grown {
                let _ = parse_full_open(line_at(file, grown));
            }
        }
    }
    state.metas_before(last).for_each(|place| drop(parse_full(line_at(file, place))));
    let _ = (state.status_before(last), state.needs_hydration());
}

fn pages_add_up(state: &SessionState, file: &[u8]) {
    let limits = Limits { max_list_limit: usize::MAX, ..Limits::default() };
    let request = MessagesRequest {
        limit: Some(usize::MAX),
        include_custom: Some(true),
        ..MessagesRequest::of(state.session_id().clone())
    };
    let tree = page::tree(state);
    let whole = page::messages(state, &request, &limits);
    assert_eq!(tree.is_ok(), state.exists());
    assert_eq!(whole.is_ok(), state.exists() && !state.is_cyclic());
    let (Ok(tree), Ok(whole)) = (tree, whole) else { return };
    assert_eq!(tree.entries.len(), state.nodes().len());
    assert_eq!(tree.entries.iter().filter(|node| node.on_active_path).count(), state.path().len());

    let mut request = MessagesRequest { limit: Some(2), ..request };
    let mut paged = Vec::new();
    loop {
        let page = page::messages(state, &request, &limits).expect("a cursor of ours goes on");
        paged.extend(page.nodes);
        match page.next_cursor {
            Some(cursor) => request.cursor = Some(cursor),
            None => break,
        }
    }
    assert_eq!(paged, whole.nodes);

    let range = MessagesRangeRequest {
        session_id: state.session_id().clone(),
        from_entry_id: None,
        to_entry_id: None,
        entry_ids: Some(state.path().iter().map(|ix| state.id(*ix)).collect()),
        limit: Some(usize::MAX),
        bytes: None,
        cursor: None,
        include_image_data: None,
    };
    assert_eq!(page::messages_range(state, &range, &limits).expect("they are on the path").nodes, whole.nodes);

    let tail = MessagesTailRequest {
        session_id: state.session_id().clone(),
        limit: Some(usize::MAX),
        bytes: None,
        before_entry_id: None,
        until_entry_id: None,
        include_custom: None,
        include_image_data: None,
    };
    let tail = page::messages_tail(state, &tail, &limits, &mut |ix| Ok(loaded(state, file, ix)));
    let shown: Vec<NodeIx> = tail.expect("bodies are in the file").items.into_iter().map(|item| item.node).collect();
    assert_eq!(shown, whole.nodes);
}

/// An entry as a store reads it; one whose body makes no sense is read as nothing.
fn loaded(state: &SessionState, file: &[u8], ix: NodeIx) -> Loaded {
    let line = line_at(file, state.node(ix).place());
    let Ok(head) = Head::parse(line) else { return Loaded::default() };
    let message = body_text(line, &head).and_then(|body| serde_json::from_str(body).ok());
    Loaded { origin: head.origin(line), message }
}

/// A fork at any entry has that entry's path.
fn forks(state: &SessionState) {
    for ix in all(state) {
        let chain = state.chain(ix);
        let base = Base {
            session_id: state.session_id().clone(),
            born: state.born(),
            seq: Seq(state.next_seq().0.saturating_sub(1)),
            entry_id: state.id(ix),
            entries: 0,
            messages: 0,
        };
        let fork = SessionState::begin_fork("s_fork".into(), &base, state);
        assert_eq!(fork.map(|fork| fork.path().len()).ok(), chain.map(|chain| chain.len()));
    }
}
