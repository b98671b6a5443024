//! Who answers calls: a data directory that this process opens, or a server that has one.
//!
//! Commands know only [`Client`].

mod directory;
mod follow;
mod problem;
mod server;
mod sse;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use banyan::batch::Batch;
use banyan::export::{ExportRequest, SigningKey, Written};
use banyan::import::{Input, Mode};
use banyan::model::{EntryId, ImportResponse, SessionId};
use banyan::{Purged, Subscribe, Taken};

use crate::args::{Globals, Target};
use crate::failure::Failure;

pub(crate) use directory::Directory;
pub(crate) use server::{Server, in_path};

/// Answers calls and tells events.
pub(crate) trait Client: Sync {
    /// Calls a function by its id: JSON in, JSON out.
    fn call(&self, id: &str, body: &[u8]) -> Result<String, Failure>;
    /// Events, in order, until there are no more to come.
    fn subscribe(&self, wanted: Subscribe, until: Until) -> Result<Frames, Failure>;
    /// Writes a session as a file, piece by piece, and says what an archive holds, if that is known.
    fn export(
        &self,
        request: &ExportRequest,
        key: Option<Arc<SigningKey>>,
        take: &mut Take<'_>,
    ) -> Result<Option<Written>, Failure>;
    /// Takes in a file.
    fn import(&self, input: &mut dyn Input, mode: Mode) -> Result<ImportResponse, Failure>;
    /// Takes in a piece of a session that is imported again and again.
    fn take(&self, piece: Batch) -> Result<Taken, Failure>;
    /// Whether a session has an entry.
    fn has_entry(&self, session: &SessionId, entry: &EntryId) -> Result<bool, Failure>;
    /// Makes everything that was taken survive a power cut. A server answers for that itself.
    fn flush(&self) -> Result<(), Failure>;
    /// Removes the bytes of deleted sessions from the disk.
    fn purge(&self) -> Result<Purged, Failure>;
    /// The file in which it is kept what was imported from where.
    fn ledger(&self) -> Result<PathBuf, Failure>;
    /// An answer that has another form than this build reads.
    fn unreadable(&self, what: &str, error: &serde_json::Error) -> Failure {
        Failure::storage(format!("the answer of {what} could not be read: {error}"))
    }
    /// Where the sessions are, in words.
    fn place(&self) -> String;
    /// Finishes what is under way.
    fn close(&self) -> Result<(), Failure>;
}

/// Takes a piece of a file.
pub(crate) type Take<'a> = dyn FnMut(&[u8]) -> Result<(), Failure> + 'a;

/// How long events are told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Until all of the past is told.
    Now,
    /// For as long as new ones can come.
    Stopped,
}

/// A stream of events.
pub(crate) type Frames = Box<dyn Iterator<Item = Result<Frame, Failure>>>;

/// One event as it goes to a subscriber.
pub(crate) struct Frame {
    /// Its place in the order; parts of a snapshot have none.
    pub(crate) position: Option<String>,
    /// Its type, such as `session::created`.
    pub(crate) event: Cow<'static, str>,
    /// What happened, as JSON.
    pub(crate) data: String,
}

/// Whether a command may bring a data directory into being.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It works on what is there; where nothing is, it finds an empty store.
    Existing,
    /// It makes the directory when there is none.
    Create,
}

/// Does some work with a client, and closes it whatever came of the work.
pub(crate) fn with_client<T>(
    globals: &Globals,
    access: Access,
    work: impl FnOnce(&dyn Client) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let client: Box<dyn Client> = match globals.target()? {
        Target::Directory => Box::new(Directory::open(globals, access)?),
        Target::Server(url) => Box::new(Server::new(&url, globals)?),
    };
    let worked = work(&*client);
    let closed = client.close();
    worked.and_then(|done| closed.map(|()| done))
}
