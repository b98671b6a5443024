//! One caller of a store on a disk in memory, who writes down what was acknowledged.

use std::sync::Arc;

use banyan::{Banyan, CallError, Durability, OpenError, Options, Start, Subscription, block_on};
use banyan_log::disk::{Disk, MemDisk, Mishap, Moment};
use banyan_model::{Error, Position};

use crate::check::Expected;
use crate::events::{self, Told};
use crate::model::Model;
use crate::predict::Call;
use crate::workload::Workload;

/// See the module.
pub struct Driver {
    disk: Arc<dyn Disk>,
    store: Banyan,
    subscription: Subscription,
    workload: Workload,
    acknowledged: Model,
    under_way: Option<(Call, Model)>,
    live: Vec<Told>,
    watched: Option<MemDisk>,
    stretches: Vec<Stretch>,
}

/// Moments of a disk during which the same was known.
pub struct Stretch {
    /// What was known.
    pub expected: Expected,
    /// The moments, in order.
    pub moments: Vec<Moment>,
}

/// Small segments, small caches, and no thread that works on its own: the same calls do the same to the disk.
pub fn options() -> Options {
    Options {
        durability: Durability::Synced,
        blob_threshold: 256,
        cached_sessions: 2,
        cached_entries: 40,
        log: banyan_log::Options {
            background: false,
            first_segment: 4096,
            largest_segment: 16384,
            open_files: 3,
            ..banyan_log::Options::default()
        },
        ..Options::default()
    }
}

/// The same with caches that hold everything, for a store that is only read.
fn roomy_options() -> Options {
    let small = options();
    let log = banyan_log::Options { open_files: 256, ..small.log };
    Options { cached_sessions: 256, cached_entries: 100_000, log, ..small }
}

/// Opens a store on a disk, to read everything once and quickly.
pub fn open_roomy(disk: &MemDisk) -> Result<Banyan, OpenError> {
    Banyan::open_on(Arc::new(disk.clone()), None, roomy_options())
}

/// Opens a store on a disk.
pub fn open<D: Disk + Clone>(disk: &D) -> Result<Banyan, OpenError> {
    Banyan::open_on(Arc::new(disk.clone()), None, options())
}

/// All files of a disk.
pub fn files(disk: &MemDisk) -> Vec<(String, Vec<u8>)> {
    disk.paths()
        .into_iter()
        .map(|path| (disk.read_file(&path).unwrap_or_default(), path))
        .map(|(a, b)| (b, a))
        .collect()
}

/// Why a driver stopped before its calls were made.
#[derive(Debug)]
pub struct Stopped(pub Error);

impl Driver {
    /// Opens a store that holds what is said here.
    pub fn open<D: Disk + Clone>(disk: &D, seed: u64, acknowledged: Model) -> Result<Self, OpenError> {
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        let store = Banyan::open_on(Arc::clone(&disk), None, options())?;
        let mut subscription = events::subscribe(&store, Start::After(Position::BEGINNING))?;
        let live = events::drain(&mut subscription)?;
        let mut workload = Workload::new("w", seed);
        workload.puts = true;
        let (watched, stretches) = (None, Vec::new());
        Ok(Self { disk, store, subscription, workload, acknowledged, under_way: None, live, watched, stretches })
    }

    /// Opens a store on an empty disk, of which every moment is kept for [`stretches`](Self::stretches).
    pub fn watched(disk: &MemDisk, seed: u64, mishap: Mishap) -> Self {
        disk.keep_moments(mishap);
        let opened = Self::open(disk, seed, Model::default());
        let mut driver = opened.unwrap_or_else(|error| panic!("an empty disk does not open: {error}"));
        driver.watched = Some(disk.clone());
        driver.end_stretch();
        driver
    }

    /// The moments since this was last asked.
    pub fn stretches(&mut self) -> Vec<Stretch> {
        std::mem::take(&mut self.stretches)
    }

    /// What is known is about to change.
    fn end_stretch(&mut self) {
        let moments = self.watched.as_ref().map(MemDisk::moments).unwrap_or_default();
        if !moments.is_empty() {
            let expected = self.expected();
            self.stretches.push(Stretch { expected, moments });
        }
    }

    /// What is known by now, for whoever opens the store next.
    pub fn expected(&self) -> Expected {
        Expected {
            acknowledged: self.acknowledged.clone(),
            under_way: self.under_way.clone(),
            live: Some(self.live.clone()),
        }
    }

    /// The store.
    pub fn store(&self) -> &Banyan {
        &self.store
    }

    /// Makes calls, and sometimes opens the store anew.
    pub fn make_calls(&mut self, count: u64) -> Result<(), Stopped> {
        for _ in 0..count {
            if self.workload.dice.percent(3) {
                self.reopen()?;
            }
            self.make_call()?;
        }
        Ok(())
    }

    /// Makes one call. After a refusal it counts as under way, until [`refused_for_good`](Self::refused_for_good).
    pub fn make_call(&mut self) -> Result<(), Stopped> {
        let call = self.workload.next(&self.acknowledged);
        self.make(call)
    }

    /// Makes this call, which must be valid.
    pub fn make(&mut self, call: Call) -> Result<(), Stopped> {
        let mut next = Some(call);
        while let Some(call) = next.take() {
            let after = call.predict(&self.acknowledged);
            self.under_way = Some((call.clone(), after.clone()));
            let request = call.request.to_string();
            let answer = match call.function.starts_with("session::store::") {
                true => block_on(self.store.store_call(call.function, request.as_bytes())),
                false => block_on(self.store.call(call.function, request.as_bytes())),
            };
            let answer = answer.map_err(|error| match error {
                CallError::Refused(error) => Stopped(error),
                unknown => panic!("{unknown}"),
            })?;
            let answer = serde_json::from_str(&answer).unwrap();
            self.end_stretch();
            self.acknowledged = call.learn(after, &answer);
            self.under_way = None;
            self.live.extend(events::drain(&mut self.subscription).unwrap());
            next = call.follow_up(&answer);
        }
        Ok(())
    }

    /// The refused call left no trace, and never will.
    pub fn refused_for_good(&mut self) {
        self.under_way = None;
    }

    /// Closes the store and opens it again.
    pub fn reopen(&mut self) -> Result<(), Stopped> {
        self.store.close().map_err(Stopped)?;
        let stopped = |error: OpenError| Stopped(Error::storage(error.to_string()));
        self.store = Banyan::open_on(Arc::clone(&self.disk), None, options()).map_err(stopped)?;
        self.subscription = events::subscribe(&self.store, Start::Now).map_err(Stopped)?;
        self.end_stretch();
        Ok(())
    }
}
