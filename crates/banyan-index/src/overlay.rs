//! Changes that are noted and not yet in the database.
//!
//! Noting happens on the commit path, so it only touches a map. The map of the moment is `fresh`; a reader or a flush
//! freezes it, which costs the same however many changes there are, and noting goes on in a new one.

use hashbrown::HashMap;
use std::sync::Arc;

use banyan_model::SessionId;

use crate::row::{Row, Standing};

/// The most sessions that a layer made by joining others holds.
const MOST_JOINED: usize = 1024;

/// One thing that happened to a session's files.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// The file is now as the row says.
    Put(Row),
    /// The listed file is gone.
    Forget,
    /// The retained file of this incarnation is gone.
    Release(String),
}

/// What happened to one session, oldest first; never empty.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    earlier: Vec<Change>,
    last: Change,
}

impl Changes {
    fn push(&mut self, change: Change) {
        match (&mut self.last, change) {
            (Change::Put(old), Change::Put(mut new))
                if old.standing == new.standing && old.file.key.born == new.file.key.born =>
            {
                // The newest row says it all, except that each row names only its own new blobs.
                let mut blobs = std::mem::take(&mut old.blobs);
                blobs.append(&mut new.blobs);
                new.blobs = blobs;
                *old = new;
            }
            (last, change) => self.earlier.push(std::mem::replace(last, change)),
        }
    }

    fn append(&mut self, later: &Changes) {
        for change in later.oldest_first() {
            self.push(change.clone());
        }
    }

    /// In the order they happened.
    pub(crate) fn oldest_first(&self) -> impl Iterator<Item = &Change> {
        self.earlier.iter().chain(std::iter::once(&self.last))
    }

    fn newest_first(&self) -> impl Iterator<Item = &Change> {
        std::iter::once(&self.last).chain(self.earlier.iter().rev())
    }
}

/// The changes of some stretch of time, by session.
pub(crate) type Layer = HashMap<SessionId, Changes>;

/// What the changes mean for the listed row of a session in the database.
#[derive(Debug, PartialEq)]
pub(crate) enum View<'a> {
    /// This row takes its place.
    Shown(&'a Row),
    /// It is gone.
    Gone,
    /// It is gone if it is of one of these incarnations.
    GoneIfBorn(Vec<&'a str>),
    /// It stands.
    Unchanged,
}

impl<'a> View<'a> {
    /// What became of the listed row of a session; the newest layer comes first.
    fn of(layers: impl Iterator<Item = &'a Layer>, session_id: &str) -> Self {
        let mut retained = Vec::new();
        for change in layers.filter_map(|layer| layer.get(session_id)).flat_map(Changes::newest_first) {
            match change {
                Change::Put(row) => match row.standing {
                    Standing::Listed if retained.contains(&row.file.key.born.as_str()) => {
                        return View::Gone;
                    }
                    Standing::Listed => return View::Shown(row),
                    Standing::Retained => retained.push(row.file.key.born.as_str()),
                },
                Change::Forget => return View::Gone,
                Change::Release(_) => {}
            }
        }
        if retained.is_empty() { View::Unchanged } else { View::GoneIfBorn(retained) }
    }
}

/// Layers as they were at one moment, newest first. They do not change any more.
pub(crate) struct Layers(Vec<Arc<Layer>>);

impl Layers {
    /// What became of the listed row of a session.
    pub(crate) fn view(&self, session_id: &str) -> View<'_> {
        View::of(self.0.iter().map(Arc::as_ref), session_id)
    }

    /// The sessions that changed, each once.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &SessionId> {
        self.0.iter().enumerate().flat_map(move |(i, layer)| {
            layer.keys().filter(move |id| !self.0[..i].iter().any(|newer| newer.contains_key(*id)))
        })
    }

    /// Everything that happened, each session once.
    pub(crate) fn folded(&self) -> Vec<(SessionId, Changes)> {
        let mut folded = Layer::new();
        for layer in self.0.iter().rev() {
            for (session_id, changes) in layer.iter() {
                add(&mut folded, session_id, changes);
            }
        }
        folded.into_iter().collect()
    }

    /// Whether nothing happened.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// All changes that are not in the database, in three stages of their way there.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    fresh: Layer,
    /// Oldest first.
    frozen: Vec<Arc<Layer>>,
    /// Oldest first; all older than `frozen`. A transaction is writing them.
    flushing: Vec<Arc<Layer>>,
}

impl Overlay {
    /// Adds a change.
    pub(crate) fn note(&mut self, session_id: &SessionId, change: Change) {
        match self.fresh.get_mut(session_id) {
            Some(changes) => changes.push(change),
            None => {
                self.fresh.insert(session_id.clone(), Changes { earlier: Vec::new(), last: change });
            }
        }
    }

    /// How many sessions have changes, counting one again for each layer that it is in.
    pub(crate) fn len(&self) -> usize {
        let frozen = self.frozen.iter().chain(&self.flushing).map(|layer| layer.len());
        self.fresh.len() + frozen.sum::<usize>()
    }

    /// What became of the listed row of one session, up to now. Unlike [`Overlay::layers`] it ends no layer, because it is
    /// asked as often as changes are noted.
    pub(crate) fn view(&self, session_id: &str) -> View<'_> {
        let older = self.frozen.iter().rev().chain(self.flushing.iter().rev()).map(Arc::as_ref);
        View::of(std::iter::once(&self.fresh).chain(older), session_id)
    }

    /// Everything up to now, to read.
    pub(crate) fn layers(&mut self) -> Layers {
        self.freeze();
        Layers(self.frozen.iter().rev().chain(self.flushing.iter().rev()).cloned().collect())
    }

    /// Everything up to now, to write. Ends with [`Overlay::flushed`] or [`Overlay::not_flushed`].
    pub(crate) fn begin_flush(&mut self) -> Layers {
        self.freeze();
        self.flushing.append(&mut self.frozen);
        Layers(self.flushing.iter().rev().cloned().collect())
    }

    /// What the last flush took is in the database.
    pub(crate) fn flushed(&mut self) {
        self.flushing.clear();
    }

    /// What the last flush took is not in the database, and waits for the next one.
    pub(crate) fn not_flushed(&mut self) {
        self.flushing.append(&mut self.frozen);
        self.frozen = std::mem::take(&mut self.flushing);
    }

    /// Ends the fresh layer. Small layers of like size are joined, so that many reads between two flushes leave few
    /// layers; large ones are not, because noting waits meanwhile.
    fn freeze(&mut self) {
        if self.fresh.is_empty() {
            return;
        }
        let mut newest = std::mem::take(&mut self.fresh);
        let alike = |older: &Layer, newer: &Layer| {
            older.len() <= 2 * newer.len() && older.len() + newer.len() <= MOST_JOINED
        };
        while let Some(older) = self.frozen.pop_if(|older| alike(older, &newest)) {
            let mut joined = Arc::unwrap_or_clone(older);
            for (session_id, changes) in &newest {
                add(&mut joined, session_id, changes);
            }
            newest = joined;
        }
        self.frozen.push(Arc::new(newest));
    }
}

fn add(layer: &mut Layer, session_id: &SessionId, later: &Changes) {
    match layer.get_mut(session_id) {
        Some(changes) => changes.append(later),
        None => {
            layer.insert(session_id.clone(), later.clone());
        }
    }
}
