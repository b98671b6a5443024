//! The order in which entries can be taken in: a main lists them in any.

use std::collections::{HashMap, HashSet, VecDeque};

use banyan::model::SessionEntry;

/// Each entry after the one that it follows. Those whose parent is not there come as if they had none, and those that
/// follow themselves come last.
pub(crate) fn parents_first(entries: Vec<SessionEntry>) -> Vec<SessionEntry> {
    let here: HashSet<_> = entries.iter().map(|entry| entry.id().clone()).collect();
    let mut children: HashMap<_, Vec<SessionEntry>> = HashMap::new();
    let mut ready: VecDeque<SessionEntry> = VecDeque::new();
    for entry in entries {
        match entry.parent_id().filter(|parent| here.contains(*parent)).cloned() {
            Some(parent) => children.entry(parent).or_default().push(entry),
            None => ready.push_back(entry),
        }
    }
    let mut ordered = Vec::with_capacity(here.len());
    while let Some(entry) = ready.pop_front() {
        ready.extend(children.remove(entry.id()).unwrap_or_default());
        ordered.push(entry);
    }
    ordered.extend(children.into_values().flatten());
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, parent: Option<&str>) -> SessionEntry {
        let entry = serde_json::json!({"kind": "custom", "id": id, "parent_id": parent, "timestamp": 0, "revision": 0,
            "custom_type": "t", "data": null});
        serde_json::from_value(entry).expect("an entry")
    }

    #[test]
    fn parents_come_before_children_and_nothing_is_left_out() {
        let listed = vec![
            entry("c", Some("b")),
            entry("loop", Some("loop")),
            entry("b", Some("a")),
            entry("orphan", Some("gone")),
            entry("a", None),
        ];
        let ordered = parents_first(listed);
        let ids: Vec<&str> = ordered.iter().map(|entry| entry.id().as_str()).collect();
        assert_eq!(ids, ["orphan", "a", "b", "c", "loop"]);
    }
}
