//! What projections are made of: stretches of a path, entries under ids of one's own, and the leaf.

use banyan::model::*;
use banyan::{Access, Banyan, NewEntry, Options, PathPage, PathRequest, Scope, Stretch, Whereabouts, block_on};
use serde_json::json;

fn store() -> Banyan {
    let store = Banyan::in_memory(Options::default()).unwrap();
    let request = json!({"session_id": "s", "metadata": {"owner": "a"}});
    block_on(store.ensure(serde_json::from_value(request).unwrap())).unwrap();
    store
}

fn entry(id: &str) -> NewEntry {
    let content = vec![ContentBlock::text(id)];
    NewEntry {
        entry_id: id.into(),
        message: AgentMessage::User(UserMessage { content, timestamp: 1 }),
        origin: None,
    }
}

fn append(store: &Banyan, leaf: Option<&str>, ids: &[&str]) -> Result<(), Error> {
    let leaf = leaf.map(EntryId::from);
    block_on(store.append_entries(&"s".into(), leaf.as_ref(), ids.iter().map(|id| entry(id)).collect()))
}

fn path(store: &Banyan, leaf: Option<&str>, stretch: Stretch, entries: usize) -> Result<PathPage, Error> {
    let leaf = leaf.map(EntryId::from);
    store.path(&PathRequest { session_id: "s".into(), leaf, stretch, entries, bytes: u64::MAX })
}

fn ids(page: &PathPage) -> (Vec<&str>, Option<&str>) {
    (page.entries.iter().map(|entry| entry.id().as_str()).collect(), page.next.as_ref().map(EntryId::as_str))
}

#[test]
fn given_a_path_when_stretches_are_read_then_they_say_where_to_go_on() {
    let store = store();
    append(&store, None, &["a", "b", "c", "d", "e"]).unwrap();
    for (stretch, expected, next) in [
        (Stretch::Newest, vec!["d", "e"], Some("d")),
        (Stretch::Before("d".into()), vec!["b", "c"], Some("b")),
        (Stretch::Before("b".into()), vec!["a"], None),
        (Stretch::Before("a".into()), vec![], None),
        (Stretch::Oldest, vec!["a", "b"], Some("b")),
        (Stretch::From("b".into()), vec!["b", "c"], Some("c")),
        (Stretch::After("c".into()), vec!["d", "e"], None),
        (Stretch::After("e".into()), vec![], None),
    ] {
        let page = path(&store, None, stretch.clone(), 2).unwrap();
        assert_eq!(ids(&page), (expected, next), "{stretch:?}");
        assert_eq!(page.session.leaf, Some("e".into()));
    }
    let few = PathRequest { session_id: "s".into(), leaf: None, stretch: Stretch::Newest, entries: 9, bytes: 1 };
    assert_eq!(ids(&store.path(&few).unwrap()), (vec!["e"], Some("e")), "one comes whatever its size");
}

#[test]
fn given_another_branch_when_its_path_is_read_then_it_is_the_path_to_its_leaf() {
    let store = store();
    append(&store, None, &["a", "b", "c"]).unwrap();
    let chosen = SetActiveLeafRequest { session_id: "s".into(), entry_id: "a".into() };
    block_on(store.set_active_leaf(chosen)).unwrap();
    append(&store, Some("a"), &["d"]).unwrap();

    assert_eq!(ids(&path(&store, None, Stretch::Oldest, 9).unwrap()), (vec!["a", "d"], None));
    assert_eq!(ids(&path(&store, Some("c"), Stretch::Oldest, 9).unwrap()), (vec!["a", "b", "c"], None));
    assert_eq!(ids(&path(&store, Some("b"), Stretch::Before("b".into()), 9).unwrap()), (vec!["a"], None));
    for (leaf, stretch) in [
        (None, Stretch::Before("b".into())),
        (None, Stretch::From("x".into())),
        (Some("c"), Stretch::After("d".into())),
        (Some("x"), Stretch::Newest),
    ] {
        let refused = path(&store, leaf, stretch.clone(), 9).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidCursor, "{leaf:?} {stretch:?}");
    }
    let (state, places) = store.whereabouts(&"s".into(), &["d", "b", "x"].map(EntryId::from)).unwrap();
    assert_eq!(places, [Whereabouts::OnPath(1), Whereabouts::Elsewhere, Whereabouts::Nowhere]);
    assert_eq!(state, store.path_state(&"s".into()).unwrap());
}

#[test]
fn given_a_session_when_anything_in_it_changes_then_its_state_has_another_name() {
    let store = store();
    let mut names = vec![store.path_state(&"s".into()).unwrap().version];
    let mut changed = |what: &str| {
        let name = store.path_state(&"s".into()).unwrap().version;
        assert!(!names.contains(&name), "{what}");
        names.push(name);
    };
    append(&store, None, &["a", "b"]).unwrap();
    changed("entries");
    let call = |function: &str, request: serde_json::Value| {
        block_on(store.call(&format!("session::{function}"), request.to_string().as_bytes())).unwrap()
    };
    for _ in 0..2 {
        call("extend-message", json!({"session_id": "s", "entry_id": "b", "text": "!"}));
        changed("text");
    }
    call("set-active-leaf", json!({"session_id": "s", "entry_id": "a"}));
    changed("a leaf");
    call("set-status", json!({"session_id": "s", "status": "working"}));
    changed("a status");
    call("delete", json!({"session_id": "s"}));
    call("ensure", json!({"session_id": "s"}));
    changed("another life");
}

#[test]
fn given_entries_with_ids_when_they_cannot_all_be_appended_then_none_is() {
    let store = store();
    append(&store, None, &["a"]).unwrap();
    for (leaf, new) in [(None, ["b", "c"]), (Some("x"), ["b", "c"]), (Some("a"), ["b", "a"])] {
        assert_eq!(append(&store, leaf, &new).unwrap_err().code, ErrorCode::Conflict, "{leaf:?} {new:?}");
    }
    assert_eq!(ids(&path(&store, None, Stretch::Oldest, 9).unwrap()), (vec!["a"], None));

    let before = store.head();
    append(&store, Some("a"), &["b", "c"]).unwrap();
    assert_eq!(store.head(), before.next(), "they are one commit");

    let reader = store.with_access(Access { read_only: true, ..Access::default() });
    assert_eq!(append(&reader, Some("c"), &["d"]).unwrap_err().code, ErrorCode::Forbidden);
}

#[test]
fn given_a_watch_when_a_leaf_is_chosen_then_it_tells_and_appending_is_not_choosing() {
    let store = store();
    append(&store, None, &["a"]).unwrap();
    let (mut watch, other) = (store.watch_leaf(&"s".into()), store.watch_leaf(&"other".into()));
    drop(other);
    append(&store, Some("a"), &["b"]).unwrap();
    let choose = |entry: &str| {
        let request = SetActiveLeafRequest { session_id: "s".into(), entry_id: entry.into() };
        block_on(store.set_active_leaf(request)).unwrap();
    };
    let told = |watch: &mut banyan::LeafWatch| {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(watch.moved()).poll(&mut context).is_ready()
    };
    assert!(!told(&mut watch));
    choose("b");
    assert!(!told(&mut watch), "it was the leaf already");
    choose("a");
    assert!(told(&mut watch));
    assert!(!told(&mut watch));
    drop(store.watch_leaf(&"s".into()));
    choose("b");
    assert!(told(&mut watch), "another one that left changes nothing");
}

#[test]
fn given_another_scope_when_a_path_is_asked_for_then_there_is_no_session() {
    let store = store();
    append(&store, None, &["a"]).unwrap();
    let pairs = json!({"owner": "b"}).as_object().unwrap().clone();
    let theirs = store.with_access(Access { scope: Scope::of(pairs), read_only: false });

    let refused = [
        path(&theirs, None, Stretch::Newest, 1).unwrap_err(),
        path(&theirs, None, Stretch::From("a".into()), 1).unwrap_err(),
        path(&theirs, Some("a"), Stretch::Newest, 1).unwrap_err(),
        theirs.path_state(&"s".into()).unwrap_err(),
        theirs.whereabouts(&"s".into(), &["a".into()]).unwrap_err(),
        append(&theirs, Some("a"), &["b"]).unwrap_err(),
    ];

    assert!(refused.iter().all(|error| error.code == ErrorCode::NotFound), "{refused:?}");
}

#[test]
fn given_what_is_hidden_in_an_origin_when_a_narrow_handle_reads_then_it_is_not_there() {
    let store = store();
    let origin =
        json!({"history": {"interaction_id": "i", "role": "user", "hidden": {"part": {"k": "secret"}}}, "x": 1});
    let mut new = entry("a");
    new.origin = origin.as_object().cloned();
    let pairs = json!({"owner": "a"}).as_object().unwrap().clone();
    let scoped = store.with_access(Access { scope: Scope::of(pairs), read_only: false });
    let reader = store.with_access(Access { read_only: true, ..Access::default() });
    let subscribe = |store: &Banyan, start| {
        let filters = vec![EventFilter::all(EventType::MessageAdded)];
        store.subscribe(banyan::Subscribe { filters, start }).unwrap()
    };
    let mut live: Vec<_> =
        [&store, &scoped, &reader].iter().map(|store| subscribe(store, banyan::Start::Now)).collect();
    block_on(store.append_entries(&"s".into(), None, vec![new])).unwrap();

    for (at, handle) in [&store, &scoped, &reader].into_iter().enumerate() {
        let page = block_on(handle.messages(MessagesRequest::of("s".into()))).unwrap();
        let one = block_on(handle.call("session::get-message", br#"{"session_id":"s","entry_id":"a"}"#)).unwrap();
        let tail = block_on(handle.call("session::messages-tail", br#"{"session_id":"s"}"#)).unwrap();
        let past = subscribe(handle, banyan::Start::After(Position::BEGINNING)).try_next().unwrap();
        let snapshot = subscribe(handle, banyan::Start::Snapshot("s".into())).try_next().unwrap();
        let told = live[at].try_next().unwrap();
        let texts = [
            serde_json::to_string(&page).unwrap(),
            one,
            tail,
            format!("{:?}", path(handle, None, Stretch::Newest, 1).unwrap()),
            format!("{past:?}"),
            format!("{snapshot:?}"),
            format!("{told:?}"),
        ];
        for text in texts {
            assert!(text.contains("history") && text.contains('x'), "the rest is there: {text}");
            assert_eq!(text.contains("secret"), at == 0, "{at}: {text}");
        }
    }
}
