//! Who answers calls: a data directory that this process opens, or a server that has one.
//!
//! Commands know only [`Client`].

mod directory;
mod follow;
mod problem;
mod server;
mod sse;

use std::borrow::Cow;

use banyan::Subscribe;
use banyan::export::ExportRequest;
use banyan::import::{Input, Mode};
use banyan::model::ImportResponse;

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
    /// Writes a session as a file, piece by piece.
    fn export(&self, request: &ExportRequest, take: &mut Take<'_>) -> Result<(), Failure>;
    /// Takes in a file.
    fn import(&self, input: &mut dyn Input, mode: Mode) -> Result<ImportResponse, Failure>;
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
