//! What subscribers of one tenant hear of another: nothing.

use banyan::model::{CommitNo, EventFilter, Position, SessionId};
use banyan::{Banyan, Delivery, Start, Subscribe};
use serde_json::{Value, json};

use super::tenants::{Tenants, furnish, likenesses};
use crate::support::*;

/// Something of everything, deleted at the end or not.
fn a_run(store: &dyn Door, id: &str, deleted: bool) {
    let it = furnish(store, id);
    let with = |rest: Value| {
        let mut request = rest;
        request["session_id"] = it.session.clone();
        request
    };
    store.ok("update-message", with(json!({"entry_id": it.message, "content": text("new")})));
    store.ok("set-status", with(json!({"status": "error", "reason": "secret"})));
    store.ok("set-meta", with(json!({"title": "T2", "metadata": {"n": 2}})));
    store.ok("append-many", with(json!({"messages": [user("1"), assistant("2")]})));
    store.ok("extend-message", with(json!({"entry_id": it.leaf, "text": "!"})));
    let fork = store.ok("fork", with(json!({"entry_id": it.message})))["session_id"].clone();
    store.say(&fork, "own");
    if deleted {
        store.ok("delete", with(json!({})));
    }
}

/// Those events that are about sessions whose ids another subscriber was told of.
fn about(all: &[Heard], sessions: &[Heard]) -> Vec<Heard> {
    let known = |heard: &&Heard| sessions.iter().any(|it| it.payload["session_id"] == heard.payload["session_id"]);
    all.iter().filter(known).cloned().collect()
}

fn of_session(id: &str) -> Vec<EventFilter> {
    let session_id = Some(SessionId::from(id));
    everything().into_iter().map(|filter| EventFilter { session_id: session_id.clone(), ..filter }).collect()
}

fn after(store: &Banyan, filters: Vec<EventFilter>, position: Position) -> Ears {
    Ears::of(store, Subscribe { filters, start: Start::After(position) })
}

#[test]
fn a_subscriber_hears_its_own_tenant_whole_and_the_other_not_at_all() {
    for (mine, theirs) in likenesses() {
        let tenants = Tenants::of(&mine, &theirs);
        let mut all = Ears::open(&tenants.all);
        let mut ears = [Ears::open(&tenants.mine), Ears::open(&tenants.theirs)];
        let mut of_theirs = after(&tenants.mine, of_session("theirs"), Position::BEGINNING);
        for deleted in [false, true] {
            a_run(&tenants.mine, if deleted { "mine, deleted" } else { "mine" }, deleted);
            a_run(&tenants.theirs, if deleted { "theirs, deleted" } else { "theirs" }, deleted);
        }
        let all = all.heard();
        let heard = ears.each_mut().map(|ears| ears.heard());
        assert_eq!(heard[0].len() + heard[1].len(), all.len(), "{mine} beside {theirs}");
        assert_eq!(of_theirs.heard(), []);
        for (heard, store) in heard.iter().zip([&tenants.mine, &tenants.theirs]) {
            for kind in
                ["created", "message-added", "message-updated", "status-changed", "meta-updated", "deleted"]
            {
                assert!(types(heard).contains(&kind), "{kind} is missing");
            }
            assert_eq!(about(&all, heard), *heard);
            // The past is told as it was heard, but for what was in sessions that are gone.
            for from in [Position::BEGINNING, heard[2].position] {
                let replayed = Ears::after(store, from).heard();
                let known = Ears::after(&tenants.all, from).heard();
                assert_eq!(replayed, about(&known, heard));
                assert_eq!(replayed.iter().filter(|it| it.event_type == "session::deleted").count(), 1);
            }
        }
        for id in ["theirs", "theirs, deleted", "nobody"] {
            assert_eq!(after(&tenants.mine, of_session(id), Position::BEGINNING).heard(), [], "{id}");
        }
    }
}

#[test]
fn a_session_that_changes_hands_is_heard_of_while_it_is_in_scope() {
    let tenants = Tenants::plain();
    let (mut mine, mut theirs) = (Ears::open(&tenants.mine), Ears::open(&tenants.theirs));
    let id = json!("s");
    door(&tenants.theirs).ok("ensure", json!({"session_id": id, "title": "private"}));
    let entry = door(&tenants.theirs).append(&id, json!({"message": assistant("theirs")}));
    door(&tenants.all).ok("set-meta", json!({"session_id": id, "title": "shared", "metadata": {"tenant": "a"}}));
    door(&tenants.all).ok("extend-message", json!({"session_id": id, "entry_id": entry, "text": "+"}));
    door(&tenants.mine).say(&id, "mine");
    door(&tenants.all).ok("set-meta", json!({"session_id": id, "title": "private", "metadata": {"tenant": "b"}}));
    door(&tenants.theirs).say(&id, "theirs again");
    door(&tenants.theirs).ok("delete", json!({"session_id": id}));
    let heard = mine.heard();
    assert_eq!(types(&heard), ["meta-updated", "message-updated", "message-added"]);
    assert_eq!(heard[0].payload["title"], "shared");
    assert_eq!(types(&theirs.heard()), ["created", "message-added", "meta-updated", "message-added", "deleted"]);
    // Of a session that is gone only its end is told, to whoever had it then.
    assert_eq!(Ears::after(&tenants.mine, Position::BEGINNING).heard(), []);
    assert_eq!(types(&Ears::after(&tenants.theirs, Position::BEGINNING).heard()), ["deleted"]);
}

#[test]
fn a_replay_knows_in_whose_scope_a_session_was_at_each_event() {
    let on_disk = OnDisk::new();
    let tenants = Tenants::on(on_disk.store.clone(), &json!({"tenant": "a"}), &json!({"tenant": "b"}));
    let (mut mine, mut theirs) = (Ears::open(&tenants.mine), Ears::open(&tenants.theirs));
    let id = json!("s");
    door(&tenants.mine).ok("ensure", json!({"session_id": id}));
    for round in 0..5 {
        let owner = if round % 2 == 0 { "b" } else { "a" };
        door(&tenants.all).say(&id, &format!("before {round}"));
        door(&tenants.all)
            .ok("set-meta", json!({"session_id": id, "metadata": {"tenant": owner, "round": round}}));
        let entry = door(&tenants.all).append(&id, json!({"message": assistant("")}));
        for token in ["x", "y"] {
            door(&tenants.all).ok("extend-message", json!({"session_id": id, "entry_id": entry, "text": token}));
        }
        door(&tenants.all).ok(
            "set-status",
            json!({"session_id": id, "status": if round % 2 == 0 { "working" } else { "done" }}),
        );
    }
    let live = theirs.heard();
    assert!(live.len() > 8 && mine.heard().len() > 8);
    for filters in [everything(), of_session("s")] {
        assert_eq!(after(&tenants.theirs, filters.clone(), Position::BEGINNING).heard(), live);
        assert_eq!(after(&tenants.theirs, filters.clone(), live[3].position).heard(), live[4..]);
        // Nothing is read of a session that one does not have, so that it takes as long as one that does not exist.
        assert_eq!(after(&tenants.mine, filters, Position::BEGINNING).heard(), []);
    }
}

#[test]
fn nothing_of_another_tenants_file_is_read_for_a_replay() {
    let on_disk = OnDisk::new();
    let tenants = |store: &Banyan| Tenants::on(store.clone(), &json!({"tenant": "a"}), &json!({"tenant": "b"}));
    let before = tenants(&on_disk.store);
    a_run(&before.mine, "mine", false);
    let theirs = door(&before.theirs).session();
    door(&before.theirs).say(&theirs, "private");
    drop(before);
    let on_disk = on_disk.reopened();
    let now = tenants(&on_disk.store);
    // Whoever reads it fails.
    let file = on_disk.dir.path().join(format!("{}.jsonl", theirs.as_str().unwrap()));
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let heard = after(&now.mine, everything(), Position::BEGINNING).heard();
    assert!(heard.len() > 4 && heard.iter().all(|it| it.payload["session_id"] != theirs), "{heard:?}");
    for position in 1..=now.all.head().0 {
        let start = Start::After(Position::new(CommitNo(position), 0));
        assert!(now.mine.subscribe(Subscribe { filters: everything(), start }).is_ok());
    }
    let mut of_all =
        now.all.subscribe(Subscribe { filters: everything(), start: Start::After(Position::BEGINNING) }).unwrap();
    let mut read = || -> Result<(), banyan::model::Error> {
        while of_all.try_next()?.is_some() {}
        Ok(())
    };
    assert!(read().is_err(), "it can be told when it is read");
}

#[test]
fn without_the_order_over_all_another_tenants_session_is_still_like_a_missing_one() {
    let on_disk = OnDisk::new();
    let tenants = |store: &Banyan| Tenants::on(store.clone(), &json!({"tenant": "a"}), &json!({"tenant": "b"}));
    let before = tenants(&on_disk.store);
    let mut live = Ears::open(&before.mine);
    a_run(&before.mine, "mine", false);
    a_run(&before.theirs, "theirs", false);
    let heard: Vec<Heard> = live.heard().into_iter().filter(|it| it.payload["session_id"] == "mine").collect();
    drop((live, before));
    let dir = on_disk.close();
    std::fs::remove_dir_all(dir.path().join(".banyan/journal")).unwrap();
    let on_disk = OnDisk::with(dir);
    let now = tenants(&on_disk.store);
    let first = heard[0].position;
    let deliveries = |store: &Banyan, id: &str, from: Position| {
        after(store, of_session(id), from).deliveries().iter().map(|it| format!("{it:?}")).collect::<Vec<_>>()
    };
    assert_eq!(after(&now.mine, of_session("mine"), first).heard(), heard[1..]);
    for from in [Position::BEGINNING, first] {
        let missing = deliveries(&now.mine, "nobody", from);
        assert_eq!(deliveries(&now.mine, "theirs", from), missing);
        assert_eq!(missing, ["Resync"], "what cannot be told must be read again");
    }
}

#[test]
fn a_snapshot_of_another_tenants_session_is_refused_like_that_of_a_missing_one() {
    let tenants = Tenants::plain();
    furnish(&tenants.theirs, "theirs");
    furnish(&tenants.mine, "mine");
    let snapshot = |id: &str| {
        tenants.mine.subscribe(Subscribe { filters: of_session(id), start: Start::Snapshot(id.into()) })
    };
    let refusals = ["theirs", "nobody"].map(|id| snapshot(id).err().unwrap().to_string().replace(id, "ID"));
    assert_eq!(refusals[0], refusals[1]);
    assert!(refusals[0].starts_with("session/not_found"));
    let mut own = Ears(snapshot("mine").unwrap());
    let end = own.deliveries().iter().filter(|it| matches!(it, Delivery::SnapshotEnd(_))).count();
    assert_eq!(end, 1);
    // Given away, it is heard of no more.
    door(&tenants.mine).say(&json!("mine"), "heard");
    door(&tenants.all).ok("set-meta", json!({"session_id": "mine", "metadata": {"tenant": "b"}}));
    door(&tenants.theirs).say(&json!("mine"), "not heard");
    assert_eq!(types(&own.heard()), ["message-added"]);
}

#[test]
fn positions_do_not_tell_what_another_tenant_committed() {
    let tenants = Tenants::plain();
    let mut ears = Ears::open(&tenants.mine);
    door(&tenants.mine).session();
    let own = ears.heard()[0].position;
    let theirs = door(&tenants.theirs).session();
    door(&tenants.theirs).ok("append-many", json!({"session_id": theirs, "messages": [user("a"), user("b")]}));
    let gone = door(&tenants.theirs).session();
    door(&tenants.theirs).ok("delete", json!({"session_id": gone}));
    let accepted = |position: Position| {
        tenants.mine.subscribe(Subscribe { filters: everything(), start: Start::After(position) }).is_ok()
    };
    for commit in own.commit.0 + 1..=tenants.all.head().0 {
        for index in [0, 1, 2, 77] {
            assert!(accepted(Position::new(CommitNo(commit), index)), "{commit}-{index}");
        }
    }
    assert!(accepted(own));
    assert!(!accepted(Position::new(own.commit, 1)), "it never existed");
    assert!(!accepted(Position::new(CommitNo(tenants.all.head().0 + 1), 0)));
}

#[test]
fn whoever_hears_of_a_session_can_ask_for_it_at_once() {
    let tenants = Tenants::plain();
    let mut ears = Ears::open(&tenants.mine);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..200 {
                door(&tenants.mine).session();
            }
        });
        for heard in ears.take(200) {
            assert!(!door(&tenants.mine).meta(&heard.payload["session_id"]).is_null());
        }
    });
}
