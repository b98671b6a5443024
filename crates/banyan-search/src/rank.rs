//! Which entries are found, best first: how well they match, and how new they are.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::ColumnValues;
use tantivy::fastfield::AliveBitSet;
use tantivy::query::{Bm25StatisticsProvider, Weight};
use tantivy::schema::Field;
use tantivy::{DocAddress, DocId, DocSet, Score, SegmentReader, TERMINATED, Term};

use crate::document::is_active;
use crate::find::{Branches, Ranking};
use crate::line::Where;
use crate::schema::{FLAGS, NUMBER, PLACE, SESSION, TIME};

/// Which entries may be found, besides what they say.
pub(crate) struct Sieve {
    /// Which sessions, and how much of them.
    pub(crate) place: Where,
    /// One bit for each role that is wanted.
    pub(crate) roles: u64,
    pub(crate) branches: Branches,
    pub(crate) time: RangeInclusive<i64>,
}

/// A set of small numbers.
#[derive(Default)]
pub(crate) struct Numbers(Vec<u64>);

impl Numbers {
    pub(crate) fn insert(&mut self, number: u64) {
        let at = (number / 64) as usize;
        if at >= self.0.len() {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= 1 << (number % 64);
    }

    pub(crate) fn has(&self, number: u64) -> bool {
        self.0.get((number / 64) as usize).is_some_and(|bits| bits & (1 << (number % 64)) != 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Collects the numbers of sessions.
pub(crate) struct CollectNumbers;

/// The same in one segment.
pub(crate) struct SegmentNumbers {
    column: Arc<dyn ColumnValues<u64>>,
    numbers: Numbers,
}

impl Collector for CollectNumbers {
    type Fruit = Numbers;
    type Child = SegmentNumbers;

    fn for_segment(&self, _: u32, segment: &SegmentReader) -> tantivy::Result<SegmentNumbers> {
        let column = segment.fast_fields().column_first_or_default(NUMBER)?;
        Ok(SegmentNumbers { column, numbers: Numbers::default() })
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    fn merge_fruits(&self, segments: Vec<Numbers>) -> tantivy::Result<Numbers> {
        let mut all = Numbers::default();
        for Numbers(words) in segments {
            all.0.resize(all.0.len().max(words.len()), 0);
            for (to, bits) in all.0.iter_mut().zip(words) {
                *to |= bits;
            }
        }
        Ok(all)
    }
}

impl SegmentCollector for SegmentNumbers {
    type Fruit = Numbers;

    fn collect(&mut self, doc: DocId, _: Score) {
        self.numbers.insert(self.column.get_val(doc));
    }

    fn harvest(self) -> Numbers {
        self.numbers
    }
}

/// An entry that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) score: Score,
    pub(crate) time: i64,
    pub(crate) flags: u64,
    /// The number of its session.
    pub(crate) session: u64,
    pub(crate) at: DocAddress,
}

/// What BM25 takes for the whole index: numbers that no entry changes. Every word is equally rare, and the usual entry has as many
/// words as a short message.
pub(crate) struct Constants;

impl Bm25StatisticsProvider for Constants {
    fn total_num_tokens(&self, _: Field) -> tantivy::Result<u64> {
        Ok(USUAL_WORDS * USUAL_ENTRIES)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(USUAL_ENTRIES)
    }

    fn doc_freq(&self, _: &Term) -> tantivy::Result<u64> {
        Ok(1)
    }
}

const USUAL_WORDS: u64 = 100;
const USUAL_ENTRIES: u64 = 1_000;

/// Collects the best. The heap is shared by all segments, so that what one has found spares work in the next.
pub(crate) struct Best {
    sieve: Sieve,
    ranking: Ranking,
    most: usize,
    now_ms: i64,
    heap: Mutex<BinaryHeap<Reverse<Found>>>,
}

/// What is new counts so much more, at most.
const MOST_RECENT: f32 = 1.5;
/// After this time that advantage is halved.
const HALF_MS: f32 = 30.0 * 24.0 * 3600.0 * 1000.0;

/// By how much a score counts more for being new.
fn recency(now_ms: i64, time: i64) -> f32 {
    let age = now_ms.saturating_sub(time).max(0) as f32;
    1.0 + (MOST_RECENT - 1.0) / (1.0 + age / HALF_MS)
}

impl Best {
    pub(crate) fn new(sieve: Sieve, ranking: Ranking, most: usize, now_ms: i64) -> Self {
        Self { sieve, ranking, most, now_ms, heap: Mutex::default() }
    }

    /// The best, in order, and where they were looked for.
    pub(crate) fn take(self) -> (Vec<Found>, Where) {
        let heap = self.heap.into_inner().unwrap_or_else(PoisonError::into_inner);
        (heap.into_sorted_vec().into_iter().map(|Reverse(found)| found).collect(), self.sieve.place)
    }
}

impl Collector for Best {
    type Fruit = ();
    type Child = Nothing;

    fn for_segment(&self, _: u32, _: &SegmentReader) -> tantivy::Result<Nothing> {
        Ok(Nothing)
    }

    fn requires_scoring(&self) -> bool {
        true
    }

    fn merge_fruits(&self, _: Vec<()>) -> tantivy::Result<()> {
        Ok(())
    }

    fn collect_segment(&self, weight: &dyn Weight, segment: u32, reader: &SegmentReader) -> tantivy::Result<()> {
        let columns = SegmentColumns::of(reader)?;
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        match self.ranking {
            Ranking::Index => {
                let mut threshold = self.threshold(&heap);
                weight.for_each_pruning(threshold, reader, &mut |doc, score| {
                    if let Some(found) = columns.sift(&self.sieve, DocAddress::new(segment, doc))
                        && self.offer(&mut heap, found, score)
                    {
                        threshold = self.threshold(&heap);
                    }
                    threshold
                })
            }
            // What is skipped by blocks depends on what else is in a block, so every match is looked at. Only what passes is scored.
            Ranking::Constants => {
                let mut scorer = weight.scorer(reader, 1.0)?;
                let mut doc = scorer.doc();
                while doc != TERMINATED {
                    if let Some(found) = columns.sift(&self.sieve, DocAddress::new(segment, doc)) {
                        self.offer(&mut heap, found, scorer.score());
                    }
                    doc = scorer.advance();
                }
                Ok(())
            }
        }
    }
}

impl Best {
    /// A score up to this cannot be among the best, however new the entry is. It is a little less than it could be, so that equal
    /// ones are told apart by their time.
    fn threshold(&self, heap: &BinaryHeap<Reverse<Found>>) -> Score {
        match heap.peek() {
            Some(Reverse(worst)) if heap.len() >= self.most => worst.score / MOST_RECENT * 0.9999,
            _ => Score::MIN,
        }
    }

    /// Keeps an entry if it is among the best so far.
    fn offer(&self, heap: &mut BinaryHeap<Reverse<Found>>, found: Found, score: Score) -> bool {
        let found = Found { score: score * recency(self.now_ms, found.time), ..found };
        if heap.len() < self.most {
            heap.push(Reverse(found));
        } else if heap.peek().is_some_and(|Reverse(worst)| found > *worst) {
            heap.pop();
            heap.push(Reverse(found));
        } else {
            return false;
        }
        true
    }
}

/// What a sieve looks at, of one segment.
struct SegmentColumns<'a> {
    flags: Arc<dyn ColumnValues<u64>>,
    sessions: Arc<dyn ColumnValues<u64>>,
    times: Arc<dyn ColumnValues<i64>>,
    places: Arc<dyn ColumnValues<u64>>,
    alive: Option<&'a AliveBitSet>,
}

impl<'a> SegmentColumns<'a> {
    fn of(reader: &'a SegmentReader) -> tantivy::Result<Self> {
        let columns = reader.fast_fields();
        Ok(Self {
            flags: columns.column_first_or_default(FLAGS)?,
            sessions: columns.column_first_or_default(SESSION)?,
            times: columns.column_first_or_default(TIME)?,
            places: columns.column_first_or_default(PLACE)?,
            alive: reader.alive_bitset(),
        })
    }

    /// An entry without its score, if it passes.
    fn sift(&self, sieve: &Sieve, at: DocAddress) -> Option<Found> {
        let doc = at.doc_id;
        let flags = self.flags.get_val(doc);
        if flags & sieve.roles == 0 || (sieve.branches == Branches::Active && !is_active(flags)) {
            return None;
        }
        let time = self.times.get_val(doc);
        if !sieve.time.contains(&time) || self.alive.is_some_and(|alive| alive.is_deleted(doc)) {
            return None;
        }
        let session = self.sessions.get_val(doc);
        let passes = sieve.place.has(session, flags, || self.places.get_val(doc));
        passes.then_some(Found { score: 0.0, time, flags, session, at })
    }
}

/// Segments are collected as a whole, so nothing is collected one by one.
pub(crate) struct Nothing;

impl SegmentCollector for Nothing {
    type Fruit = ();

    fn collect(&mut self, _: DocId, _: Score) {}

    fn harvest(self) {}
}

impl PartialEq for Found {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Found {}

impl PartialOrd for Found {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Found {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.score.total_cmp(&other.score);
        by_score.then(self.time.cmp(&other.time)).then_with(|| other.at.cmp(&self.at))
    }
}
