//! Opening what many crashes left, each different image once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use banyan_log::disk::{Fate, MemDisk, Mishap, Moment};

use crate::check::{Expected, Seen};
use crate::dice::Dice;
use crate::driver::{self, open, open_roomy};
use crate::files;
use crate::seeds::Scene;

/// How much is done to an image that recovers to the same bytes as another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// As much as to any other.
    Same,
    /// It is opened and everything is read; only some of them are also written to, closed, and looked at file by file.
    Less,
}

/// One in so many is written to all the same.
const WRITTEN_TO: usize = 50;

/// Images of the trees of sessions, which can be lost and damaged freely. Readers are compared all the same.
const TREES: &str = ".banyan/index/trees";

/// How much was done.
#[derive(Debug, Default)]
pub struct Tally {
    /// Crashes: an operation, and what became of what was not flushed.
    pub points: AtomicU64,
    /// Different images that they left; each was opened and read whole.
    pub reopened: AtomicU64,
    /// Those that were also written to, closed, and looked at file by file.
    pub written_to: AtomicU64,
}

impl Tally {
    /// Counts a crash whose image was opened, read and written to.
    pub fn count_whole(&self) {
        [&self.points, &self.reopened, &self.written_to].into_iter().for_each(Self::count);
    }

    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// How many points were tried.
    pub fn points(&self) -> u64 {
        self.points.load(Ordering::Relaxed)
    }
}

impl Tally {
    /// What was done, and how fast.
    pub fn after(&self, seconds: f64) -> String {
        let a_second = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64 / seconds.max(0.001);
        let [points, reopened] = [&self.points, &self.reopened].map(a_second);
        format!("{self} ({points:.0} points and {reopened:.0} images a second)")
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [points, reopened, written_to] =
            [&self.points, &self.reopened, &self.written_to].map(|counter| counter.load(Ordering::Relaxed));
        write!(f, "{points} crash points, {reopened} distinct images reopened and read, {written_to} written to")
    }
}

/// See the module.
pub struct Reopener<'a> {
    tally: &'a Tally,
    care: Care,
    expected: Expected,
    dice: Dice,
    /// Whether the call under way was done, by image.
    images: HashMap<[u8; 32], bool>,
    /// What was read, by what an image is once it was opened; and whether the call under way was done, if that was asked.
    forms: HashMap<[u8; 32], (Seen, Option<bool>)>,
    /// The call under way is safe, so that no later crash may undo it.
    safe: bool,
}

impl<'a> Reopener<'a> {
    /// Holds images to what is known.
    pub fn new(tally: &'a Tally, care: Care, expected: Expected) -> Self {
        let (images, forms) = (HashMap::new(), HashMap::new());
        Self { tally, care, expected, dice: Dice::new(0), images, forms, safe: false }
    }

    /// From now on, holds images to what is known by now.
    pub fn expect(&mut self, expected: Expected) {
        self.expected = expected;
        self.safe = false;
        self.images.clear();
        self.forms.retain(|_, (_, done)| done.take().is_some());
    }

    /// Checks what a power cut in this moment leaves. Moments come in their order.
    pub fn check(&mut self, moment: &Moment, fate: Fate) {
        let done = self.look(&moment.after_crash(fate));
        assert!(done || !self.safe, "the call under way was safe, and is gone");
        // All that could be lost was, and it was there.
        self.safe |= done && fate == Fate::LoseUnsynced;
    }

    /// Checks what is on a disk. Tells whether the call under way was done.
    pub fn look(&mut self, disk: &MemDisk) -> bool {
        Tally::count(&self.tally.points);
        let image = disk.fingerprint("");
        if let Some(done) = self.images.get(&image) {
            return *done;
        }
        let done = self.open(disk);
        self.images.insert(image, done);
        done
    }

    fn open(&mut self, disk: &MemDisk) -> bool {
        Tally::count(&self.tally.reopened);
        let quick = self.care == Care::Less && !self.dice.percent(100 / WRITTEN_TO);
        let opened = if quick { open_roomy(disk) } else { open(disk) };
        let store = opened.unwrap_or_else(|error| panic!("the store does not open: {error}"));
        let form = disk.fingerprint(TREES);
        if let Some((seen, done)) = self.forms.get_mut(&form).filter(|_| quick) {
            let done = *done.get_or_insert_with(|| seen.check(&self.expected));
            seen.check_same(&store, &mut self.dice);
            // As if the power went: closing is what the others are for.
            disk.crash_at(0);
            return done;
        }
        Tally::count(&self.tally.written_to);
        let seen = Seen::of(&store);
        let done = seen.check(&self.expected);
        seen.go_on(&store);
        store.close().unwrap();
        drop(store);
        let unused = files::check(&driver::files(disk));
        assert_eq!(unused, Vec::<String>::new(), "content that a crash left without a user is gone");
        self.forms.insert(form, (seen, Some(done)));
        done
    }

    /// Lets the power go a second time, in every operation of the recovery from a first cut. However often a recovery
    /// starts over, it comes to the same.
    pub fn check_recovery(&mut self, first: &Moment, fate: Fate) {
        let done = self.look(&first.after_crash(fate));
        let disk = first.after_crash(fate);
        disk.keep_moments(Mishap::PowerCut);
        drop(open(&disk).unwrap_or_else(|error| panic!("the store does not open: {error}")));
        for second in disk.moments() {
            for then in [Fate::LoseUnsynced, Fate::KeepAll, Fate::Random(second.op())] {
                let _scene = Scene(format!("operation {} of the recovery, {then:?}", second.op()));
                assert_eq!(self.look(&second.after_crash(then)), done, "the call under way is done");
            }
        }
    }
}
