//! One caller of a store on a disk in memory, who writes down what was acknowledged.

use std::sync::Arc;

use banyan::{Banyan, CallError, Durability, OpenError, Options, Start, Subscription, block_on};
use banyan_log::disk::{Disk, MemDisk};
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
        let workload = Workload::new("w", seed);
        Ok(Self { disk, store, subscription, workload, acknowledged, under_way: None, live })
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
            let answer = block_on(self.store.call(call.function, call.request.to_string().as_bytes()));
            let answer = answer.map_err(|error| match error {
                CallError::Refused(error) => Stopped(error),
                unknown => panic!("{unknown}"),
            })?;
            let answer = serde_json::from_str(&answer).unwrap();
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
        Ok(())
    }
}
