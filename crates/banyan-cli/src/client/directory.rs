//! A data directory that this process opens and owns while it runs.

use std::path::{Path, PathBuf};

use banyan::export::ExportRequest;
use banyan::import::{Input, Mode};
use banyan::model::{Event, ImportResponse};
use banyan::{Banyan, Delivery, Options, Subscribe, Subscription, block_on};

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
        let options = Options {
            durability: globals.durability.unwrap_or_default().into(),
            progress: Box::new(Bar::default()),
            ..Options::default()
        };
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

    fn export(&self, request: &ExportRequest, take: &mut Take<'_>) -> Result<(), Failure> {
        let mut export = self.store.export(request)?;
        while let Some(piece) = export.next_piece()? {
            take(&piece)?;
        }
        Ok(())
    }

    fn import(&self, input: &mut dyn Input, mode: Mode) -> Result<ImportResponse, Failure> {
        Ok(block_on(self.store.import(input, mode))?)
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
