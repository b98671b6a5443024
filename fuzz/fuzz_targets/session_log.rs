//! A whole session file, however damaged: it loads, its path holds together, and every read answers.

#![no_main]

use banyan_core::page::{self, Loaded};
use banyan_core::record::{Base, Head, body_text, parse_full, parse_full_open};
use banyan_core::{Limits, NodeIx, Place, SessionState};
use banyan_fuzz::lines;
use banyan_fuzz::sessions::{self, all};
use banyan_model::{MessagesRangeRequest, MessagesRequest, MessagesTailRequest, Seq};
use libfuzzer_sys::fuzz_target;

/// Each check looks at every entry for every entry, so that long inputs say nothing new and take long.
const LONGEST: usize = 1 << 16;

fuzz_target!(|data: &[u8]| {
    if data.len() > LONGEST {
        return;
    }
    let file = lines::sealed_file(data);
    let lines = sessions::lines_of(&file);
    let mut state = SessionState::begin("s_fuzz".into());
    sessions::load(&mut state, &lines);
    sessions::assert_holds_together(&state);
    snapshots_leave_nothing_out(&lines);
    bodies_are_in_the_file(&state, &file);
    pages_add_up(&state, &file);
    forks(&state);
});

/// A session that comes back from its snapshot goes on as if it had never been away.
fn snapshots_leave_nothing_out(lines: &[(usize, &[u8])]) {
    let (before, after) = lines.split_at(lines.len() / 2);
    let mut kept = SessionState::begin("s_fuzz".into());
    sessions::load(&mut kept, before);
    let mut back = SessionState::from_snapshot(&snapshot(&kept)).expect("a snapshot of ours can be read");
    sessions::load(&mut kept, after);
    sessions::load(&mut back, after);
    assert_eq!(snapshot(&kept), snapshot(&back));
    assert_eq!(kept.path(), back.path());
}

fn snapshot(state: &SessionState) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.to_snapshot(&mut bytes);
    bytes
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
    let shown: Vec<NodeIx> =
        tail.expect("bodies are in the file").items.into_iter().map(|item| item.node).collect();
    assert_eq!(shown, whole.nodes);
}

/// An entry as a store reads it; one whose body makes no sense is read as nothing.
fn loaded(state: &SessionState, file: &[u8], ix: NodeIx) -> Loaded {
    let line = line_at(file, state.node(ix).place());
    let Ok(head) = Head::parse(line) else { return Loaded::default() };
    let message = body_text(line, &head).and_then(|body| serde_json::from_str(body).ok());
    Loaded { origin: head.origin(line).map(|origin| origin.object()), message }
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
