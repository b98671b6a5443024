//! A data directory that this process opens and owns while it runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use banyan::batch::Batch;
use banyan::export::{ExportRequest, SigningKey, Written};
use banyan::import::{Input, Mode};
use banyan::model::{EntryId, Event, ImportResponse, SessionId};
use banyan::{Banyan, Delivery, Incoming, Options, Subscribe, Subscription, Taken, block_on};

use super::{Access, Client, Frame, Frames, Take, Until};
use crate::args::Globals;
use crate::data_dir::data_dir;
use crate::failure::Failure;
use crate::progress::Bar;

/// A data directory that this process owns.
pub(crate) struct Directory {
    store: Banyan,
    dir: PathBuf,
}

impl Directory {
    /// Opens the directory that the command line or the environment names.
    pub(crate) fn open(globals: &Globals, access: Access) -> Result<Self, Failure> {
        Self::open_at(&data_dir(globals)?, globals, access)
    }

    /// Opens a directory.
    pub(crate) fn open_at(dir: &Path, globals: &Globals, access: Access) -> Result<Self, Failure> {
        let mut options = Options {
            durability: globals.durability.unwrap_or_default().into(),
            progress: Box::new(Bar::default()),
            // A command meets most sessions once, and an import meets very many.
            cached_entries: 50_000,
            ..Options::default()
        };
        // What is not yet in session files is in memory, too, and an import writes faster than a disk.
        options.log.largest_segment = 16 << 20;
        // Looking at a directory that is not there must not make it: the name may be a slip.
        let store = match access == Access::Existing && !dir.exists() {
            true => Banyan::in_memory(options),
            false => Banyan::open(dir, options),
        };
        let store = store.map_err(|error| Failure::opening(dir, error))?;
        Ok(Self { store, dir: dir.to_owned() })
    }
}

impl Client for Directory {
    fn call(&self, id: &str, body: &[u8]) -> Result<String, Failure> {
        Ok(block_on(self.store.call(id, body))?)
    }

    /// Nobody else can write to the directory, so the stream ends with the past in any case.
    fn subscribe(&self, wanted: Subscribe, _: Until) -> Result<Frames, Failure> {
        Ok(Box::new(Past(self.store.subscribe(wanted)?)))
    }

    fn export(
        &self,
        request: &ExportRequest,
        key: Option<Arc<SigningKey>>,
        take: &mut Take<'_>,
    ) -> Result<Option<Written>, Failure> {
        let mut export = self.store.export_signed(request, key)?;
        while let Some(piece) = export.next_piece()? {
            take(&piece)?;
        }
        Ok(export.written().cloned())
    }

    fn import(&self, input: &mut dyn Input, mode: Mode) -> Result<ImportResponse, Failure> {
        Ok(block_on(self.store.import(input, mode))?)
    }

    fn take(&self, piece: Batch) -> Result<Taken, Failure> {
        let Batch { meta, told, leaf, entries } = piece;
        let incoming = Incoming { meta, entries, active_leaf: leaf, attachments: Vec::new() };
        Ok(block_on(self.store.take_more(incoming, &told, Mode::Write))?)
    }

    fn has_entry(&self, session: &SessionId, entry: &EntryId) -> Result<bool, Failure> {
        Ok(self.store.has_entry(session, entry)?)
    }

    fn flush(&self) -> Result<(), Failure> {
        Ok(self.store.flush()?)
    }

    /// With the store's other things that can be computed again: it goes where the store goes.
    fn ledger(&self) -> Result<PathBuf, Failure> {
        Ok(self.dir.join(".banyan/imports/ledger.jsonl"))
    }

    fn place(&self) -> String {
        self.dir.display().to_string()
    }

    fn close(&self) -> Result<(), Failure> {
        Ok(self.store.close()?)
    }
}

struct Past(Subscription);

impl Iterator for Past {
    type Item = Result<Frame, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.0.try_next() {
            Ok(delivery) => delivery.map(|delivery| Ok(frame(delivery))),
            Err(error) => Some(Err(error.into())),
        }
    }
}

fn frame(delivery: Delivery) -> Frame {
    let told = |position, event: &Event| Frame {
        position,
        event: event.event_type().as_str().into(),
        data: event.json().to_owned(),
    };
    let bare = |position, event: &'static str| Frame { position, event: event.into(), data: "{}".to_owned() };
    match delivery {
        Delivery::Snapshot(event) => told(None, &event),
        Delivery::SnapshotEnd(position) => bare(Some(position.to_string()), "banyan::snapshot-end"),
        Delivery::Event(event) => told(Some(event.position.to_string()), &event),
        Delivery::Lagged => bare(None, "banyan::lagged"),
        Delivery::Resync => bare(None, "banyan::resync"),
    }
}
