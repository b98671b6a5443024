use banyan::import::Mode;
use banyan::model::ErrorCode;
use banyan::{Access, Banyan, Incoming, Options, Scope, Start, Subscribe, block_on};
use serde_json::{Value, json};

use crate::{all_of, append, call, furnish, import, log_of, store, user};

#[test]
fn given_a_session_when_its_log_is_imported_elsewhere_then_it_is_the_same_there_and_after_a_restart() {
    let here = store();
    furnish(&here, "s");
    let before = all_of(&here, "s");
    let dir = tempfile::tempdir().unwrap();
    let there = Banyan::open(dir.path(), Options::default()).unwrap();
    let summary = import(&there, &log_of(&here, "s"), Mode::Write).unwrap();
    let session = &summary.sessions[0];
    assert_eq!((summary.format.as_str(), session.created, session.added), ("session-log", true, 8));
    assert_eq!((session.invented.as_slice(), session.not_placed.as_slice()), (&[][..], &[][..]));
    assert_eq!(all_of(&there, "s"), before);
    there.close().unwrap();
    let there = Banyan::open(dir.path(), Options::default()).unwrap();
    assert_eq!(all_of(&there, "s"), before);
    assert_eq!(
        log_of(&there, "s").lines().count(),
        log_of(&here, "s").lines().count() - 1,
        "the first title is gone"
    );
    append(&there, "s", "more", None, user("it goes on"));
    there.close().unwrap();
    assert_eq!(banyan::verify::verify(dir.path(), &()).unwrap().findings.len(), 0);
}

#[test]
fn given_a_log_when_it_is_imported_twice_then_the_second_time_changes_nothing() {
    let here = store();
    furnish(&here, "s");
    let log = log_of(&here, "s");
    let there = store();
    import(&there, &log, Mode::Write).unwrap();
    let (before, head) = (all_of(&there, "s"), there.head());
    let again = import(&there, &log, Mode::Write).unwrap();
    let session = &again.sessions[0];
    assert_eq!((session.created, session.added, session.updated, session.unchanged), (false, 0, 0, 8));
    assert_eq!((all_of(&there, "s"), there.head()), (before, head));
    // Also where it came from, and after the session has gone on in its own way.
    import(&here, &log, Mode::Write).unwrap();
    append(&there, "s", "own", None, user("own"));
    call(&there, "set-active-leaf", json!({"session_id": "s", "entry_id": "u1"}));
    let before = all_of(&there, "s");
    import(&there, &log, Mode::Write).unwrap();
    assert_eq!(all_of(&there, "s"), before);
}

#[test]
fn given_a_session_that_went_on_when_it_is_imported_again_then_what_is_new_is_added_and_the_leaf_follows() {
    let here = store();
    furnish(&here, "s");
    let there = store();
    import(&there, &log_of(&here, "s"), Mode::Write).unwrap();
    append(&here, "s", "n1", None, user("new"));
    append(&here, "s", "n2", None, user("newer"));
    append(&here, "s", "n3", Some("u1"), user("elsewhere"));
    call(&here, "set-active-leaf", json!({"session_id": "s", "entry_id": "n2"}));
    call(
        &here,
        "update-message",
        json!({"session_id": "s", "entry_id": "u2", "content": [{"type": "text", "text": "changed"}]}),
    );
    let summary = import(&there, &log_of(&here, "s"), Mode::Write).unwrap();
    let session = &summary.sessions[0];
    assert_eq!((session.created, session.added, session.updated, session.unchanged), (false, 3, 1, 7));
    let (mut ours, mut theirs) = (all_of(&here, "s"), all_of(&there, "s"));
    for all in [&mut ours, &mut theirs] {
        all["meta"]["meta"]["updated_at"] = Value::Null;
    }
    assert_eq!(theirs, ours);
    // A leaf that somebody moved stays where it is.
    call(&there, "set-active-leaf", json!({"session_id": "s", "entry_id": "u2"}));
    append(&here, "s", "n4", None, user("and on"));
    import(&there, &log_of(&here, "s"), Mode::Write).unwrap();
    assert_eq!(call(&there, "tree", json!({"session_id": "s"}))["active_leaf"], "u2");
}

#[test]
fn given_a_dry_run_when_it_is_told_then_nothing_is_there_afterwards() {
    let here = store();
    furnish(&here, "s");
    let there = store();
    let told = import(&there, &log_of(&here, "s"), Mode::DryRun).unwrap();
    assert_eq!((told.dry_run, told.sessions[0].created, told.sessions[0].added), (true, true, 8));
    assert_eq!(call(&there, "get", json!({"session_id": "s"})), Value::Null);
    assert_eq!(there.head().0, 0);
    let mut done = import(&there, &log_of(&here, "s"), Mode::Write).unwrap();
    done.dry_run = true;
    assert_eq!(done, told, "what is told is what is done");
}

#[test]
fn given_entries_without_a_place_when_they_are_taken_in_then_all_of_it_is_refused() {
    let here = store();
    furnish(&here, "s");
    let log = banyan_log(&log_of(&here, "s"));
    let there = store();
    let orphan = |mut incoming: Incoming| {
        incoming.entries.remove(0);
        incoming
    };
    let twice = |mut incoming: Incoming| {
        incoming.entries.push(incoming.entries[0].clone());
        incoming
    };
    let leaf = |mut incoming: Incoming| {
        incoming.active_leaf = Some("nowhere".into());
        incoming
    };
    for wrong in [orphan(log.clone()), twice(log.clone()), leaf(log.clone())] {
        let refused = block_on(there.take_in(wrong, Mode::Write)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidRequest, "{refused}");
        assert_eq!(there.head().0, 0, "nothing was written");
    }
    assert_eq!(import(&there, "no log at all", Mode::Write).unwrap_err().code, ErrorCode::InvalidRequest);
    assert_eq!(import(&there, "", Mode::Write).unwrap_err().code, ErrorCode::InvalidRequest);
    let (taken, replaced) = block_on(there.take_in(log, Mode::Write)).unwrap();
    assert_eq!((taken.added, replaced.len()), (8, 0));
}

/// A log as the library takes it, read by way of a dry store.
fn banyan_log(log: &str) -> Incoming {
    let there = store();
    import(&there, log, Mode::Write).unwrap();
    let walk = there.walk(&"s".into(), banyan::WalkOrder::Taken).unwrap();
    let (meta, active_leaf) = (walk.meta.clone(), walk.active_leaf.clone());
    let entries = walk.filter_map(|step| match step.unwrap() {
        banyan::Walked::Entry { entry, .. } => Some(entry),
        _ => None,
    });
    Incoming { meta, active_leaf, entries: entries.collect(), attachments: Vec::new() }
}

#[test]
fn given_tenants_when_one_imports_then_the_session_is_its_own_and_nobody_elses_is_touched() {
    let store = store();
    let tenant = |name: &str| {
        let scope = Scope::of(json!({"tenant": name}).as_object().cloned().unwrap());
        store.with_access(Access { scope, read_only: false })
    };
    let (ann, bob) = (tenant("ann"), tenant("bob"));
    furnish(&ann, "s");
    let log = log_of(&ann, "s");
    assert!(log.contains(r#""tenant":"ann""#));
    let refused = import(&bob, &log, Mode::Write).unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotFound, "the id is taken");
    let other = log.replace("\"session_id\":\"s\"", "\"session_id\":\"mine\"");
    let summary = import(&bob, &other, Mode::Write).unwrap();
    assert_eq!(summary.sessions[0].invented[0].note, "`tenant` is that of the one who imports");
    assert_eq!(call(&bob, "get", json!({"session_id": "mine"}))["meta"]["metadata"]["tenant"], "bob");
    assert_eq!(call(&ann, "get", json!({"session_id": "mine"})), Value::Null);
    let reader = store.with_access(Access { scope: Scope::default(), read_only: true });
    assert_eq!(import(&reader, &log, Mode::DryRun).unwrap_err().code, ErrorCode::Forbidden);
    assert_eq!(log_of(&reader, "s").lines().count(), log.lines().count());
    assert!(
        bob.export(&banyan::export::ExportRequest {
            session_id: "s".into(),
            target: banyan::export::Target::Html,
            redaction: banyan::export::Redaction::Off,
        })
        .is_err_and(|error| error.code == ErrorCode::NotFound)
    );
}

#[test]
fn given_a_subscriber_when_a_session_is_imported_then_it_hears_that_it_began_and_of_no_old_message() {
    let here = store();
    furnish(&here, "s");
    let there = store();
    let filters = banyan::model::EventType::ALL.map(banyan::model::EventFilter::all).to_vec();
    let mut heard = there.subscribe(Subscribe { filters, start: Start::Now }).unwrap();
    import(&there, &log_of(&here, "s"), Mode::Write).unwrap();
    let mut kinds = Vec::new();
    while let Some(banyan::Delivery::Event(event)) = heard.try_next().unwrap() {
        kinds.push(event.event_type().as_str().to_owned());
    }
    assert_eq!(kinds, ["session::created"]);
}

#[test]
fn given_attachments_when_a_session_is_taken_in_then_their_bytes_come_with_the_same_commit() {
    let there = store();
    let staged = there.stage(b"the bytes").unwrap();
    let content = staged.content().clone();
    let attachment = banyan::model::AttachmentMeta {
        attachment_id: "a_1".into(),
        session_id: "s".into(),
        name: "n.txt".to_owned(),
        mime: "text/plain".to_owned(),
        size: content.size,
        sha256: content.sha256,
        created_at: 5,
    };
    let attached = banyan::rules::record::Attached { attachment, blob: content.blob };
    furnish(&there, "other");
    let mut incoming = banyan_log(&{
        let here = store();
        furnish(&here, "s");
        log_of(&here, "s")
    });
    incoming.attachments.push(attached);
    let (taken, _) = block_on(there.take_in(incoming.clone(), Mode::Write)).unwrap();
    drop(staged);
    assert_eq!(taken.attachments, 1);
    let found = call(&there, "get-attachment", json!({"session_id": "s", "attachment_id": "a_1"}));
    assert_eq!((&found["data"], &found["attachment"]["created_at"]), (&json!("dGhlIGJ5dGVz"), &json!(5)));
    assert_eq!(block_on(there.take_in(incoming, Mode::Write)).unwrap().0.attachments, 0);
}
