//! Session logs of anybody: whatever they say, entries come after those that they follow, each once, and what was read is
//! written and read again as the same session.

#![no_main]

use std::collections::HashSet;

use banyan_formats::audit::Facts;
use banyan_formats::session_log::{Head, Log, Writer, read, recognise};
use banyan_formats::turns::Outlook;
use banyan_model::{EntryId, SessionEntry};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    recognise(data);
    let Ok(log) = read(data) else { return };
    let mut seen: HashSet<&EntryId> = HashSet::new();
    for entry in &log.entries {
        assert!(entry.parent_id().is_none_or(|parent| seen.contains(parent)));
        assert!(seen.insert(entry.id()));
    }
    assert!(log.active_leaf.as_ref().is_none_or(|leaf| seen.contains(leaf)));
    let again = read(written(&log).as_slice()).expect("memory can be read");
    assert_eq!(again.report.aside, [], "{:?}", again.report);
    assert_eq!((again.meta, again.active_leaf, again.entries), (log.meta, log.active_leaf, log.entries));
});

fn written(log: &Log) -> Vec<u8> {
    let head = Head {
        meta: log.meta.clone(),
        active_leaf: log.active_leaf.clone(),
        facts: Facts::of_metadata(log.meta.metadata.as_ref()),
        titles: Vec::new(),
        attachments: Vec::new(),
    };
    let mut writer = Writer::new(Vec::new(), &head).expect("memory can be written to");
    let path = path(log);
    for entry in &log.entries {
        let outcome = if path.contains(entry.id()) { writer.on_path(entry) } else { writer.off_path(entry) };
        outcome.expect("memory can be written to");
    }
    let outlook = Outlook::of(log.meta.status, log.meta.status_reason.clone(), 0, 0);
    writer.finish(&outlook, &[]).expect("memory can be written to")
}

fn path(log: &Log) -> HashSet<&EntryId> {
    let parents: std::collections::HashMap<&EntryId, Option<&EntryId>> =
        log.entries.iter().map(|entry: &SessionEntry| (entry.id(), entry.parent_id())).collect();
    let mut path = HashSet::new();
    let mut at = log.active_leaf.as_ref();
    while let Some(id) = at.filter(|id| path.insert(*id)) {
        at = parents.get(id).copied().flatten();
    }
    path
}
