//! What was told of a session, so that lists of messages that come again are known by their ids.

use std::collections::HashMap;

use banyan_model::{EntryId, SessionId};
use serde::{Deserialize, Serialize};

use crate::entry_id;

/// What an entry is to the list of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    /// A message or a result.
    #[serde(rename = "s")]
    Said,
    /// Something beside the list: it does not count when two places are compared.
    #[serde(rename = "b")]
    Beside,
    /// A summary, which begins a new list and follows the old one here.
    #[serde(rename = "c")]
    Compaction,
}

/// An entry that was told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Node {
    #[serde(rename = "n")]
    pub(super) native: String,
    #[serde(rename = "e")]
    pub(super) entry: EntryId,
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<usize>,
    #[serde(rename = "r", default)]
    pub(super) revision: u64,
    /// A hash of all of it.
    #[serde(rename = "f", default)]
    pub(super) full: u64,
    /// A hash of what is left of it after a resume.
    #[serde(rename = "l", default)]
    pub(super) loose: u64,
    #[serde(rename = "k")]
    pub(super) kind: Kind,
}

/// The entries that were told, and where the list of messages ends now.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    pub(super) tail: Option<usize>,
    #[serde(skip)]
    by_native: HashMap<String, Vec<usize>>,
}

/// Where a message of a list is in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// On the path already.
    Passed(usize),
    /// Next on the path.
    Next(usize),
    /// Nowhere that fits.
    No,
}

impl Tree {
    /// Makes the lookup again after the tree was stored.
    pub(super) fn index(&mut self) {
        self.by_native.clear();
        for (at, node) in self.nodes.iter().enumerate() {
            self.by_native.entry(node.native.clone()).or_default().push(at);
        }
    }

    pub(super) fn get(&self, at: usize) -> Option<&Node> {
        self.nodes.get(at)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Node> {
        self.nodes.get_mut(at)
    }

    /// Looks for a message that comes after `after`.
    pub(super) fn find(&self, native: &str, after: Option<usize>) -> Found {
        let candidates = self.by_native.get(native).map(Vec::as_slice).unwrap_or_default();
        let on_path = candidates.iter().copied().find(|at| self.is_on_path(*at, after));
        if let Some(at) = on_path {
            return Found::Passed(at);
        }
        let fits = |at: &usize| {
            self.get(*at).is_some_and(|node| {
                node.kind == Kind::Compaction || self.anchor(node.parent) == self.anchor(after)
            })
        };
        candidates.iter().copied().find(fits).map_or(Found::No, Found::Next)
    }

    /// Adds an entry after the tail and makes it the tail. An id that is taken is given with its place in it.
    pub(super) fn add(&mut self, session: &SessionId, mut node: Node) -> usize {
        node.parent = self.tail;
        if self.by_native.contains_key(&node.native) {
            let parent =
                node.parent.and_then(|at| self.get(at)).map(|parent| parent.entry.as_str()).unwrap_or_default();
            node.entry = entry_id(session, &format!("{}@{parent}", node.native));
        }
        let at = self.nodes.len();
        self.by_native.entry(node.native.clone()).or_default().push(at);
        self.nodes.push(node);
        self.tail = Some(at);
        at
    }

    /// Goes back to before a message, or to the beginning if it is not on the path.
    pub(super) fn rewind(&mut self, native: &str) {
        let Found::Passed(at) = self.find(native, self.tail) else {
            self.tail = None;
            return;
        };
        self.tail = self.get(at).and_then(|node| node.parent);
    }

    /// Goes back to before the first message, but not to before what stands beside the list there.
    pub(super) fn to_the_beginning(&mut self) {
        if self.anchor(self.tail).is_some() {
            self.tail = None;
        }
    }

    /// Goes on to what stands beside the list right after the tail.
    pub(super) fn pass_what_is_beside(&mut self) {
        while let Some(tail) = self.tail {
            let next = |node: &Node| node.parent == Some(tail) && node.kind == Kind::Beside;
            let Some(at) = self.nodes.iter().skip(tail + 1).rposition(next) else { break };
            self.tail = Some(tail + 1 + at);
        }
    }

    /// Whether an entry is the given one or comes before it. Entries are told after those that they follow.
    fn is_on_path(&self, at: usize, end: Option<usize>) -> bool {
        let mut next = end;
        while let Some(here) = next.filter(|here| *here >= at) {
            if here == at {
                return true;
            }
            next = self.get(here).and_then(|node| node.parent);
        }
        false
    }

    /// The nearest entry that is in the list of messages.
    fn anchor(&self, from: Option<usize>) -> Option<usize> {
        let mut next = from;
        while let Some(at) = next {
            let node = self.get(at)?;
            if node.kind != Kind::Beside {
                break;
            }
            next = node.parent;
        }
        next
    }
}
