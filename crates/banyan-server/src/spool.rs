//! A file that comes in as a request's body: in memory while it is small, and otherwise on disk.

use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Seek, Write};
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequest;
use banyan::import::Input;
use banyan::private;
use bytes::BytesMut;
use hyper::Request;
use tokio::time::{Duration, Instant};
use uuid::Uuid;

use crate::app::Shared;
use crate::body::{Pieces, Room};
use crate::budget::{Budget, Holder, Lease, Refusals, Subject};
use crate::problem::Problem;

/// So much of a file is in memory.
const IN_MEMORY: usize = 1 << 20;
/// How many files are on disk at a time. Each has at most `limits.import_bytes`.
const ON_DISK: u64 = 4;
/// Maximum time that a file waits for a place on disk. Its sender is not read from meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);

/// A file that came in.
pub(crate) struct Spooled {
    pub(crate) input: Box<dyn Input>,
    _place: Option<Lease>,
}

impl FromRequest<Shared> for Spooled {
    type Rejection = Problem;

    async fn from_request(request: Request<Body>, app: &Shared) -> Result<Self, Problem> {
        let limits = &app.settings.limits;
        let (parts, body) = request.into_parts();
        let mut pieces = Pieces::of(body, limits.import_bytes as u64, limits)?;
        let mut room = Room::new(&app.request_memory, &parts.extensions);
        let mut held = BytesMut::new();
        let mut on_disk: Option<(File, Lease)> = None;
        while let Some(piece) = pieces.next(room.revoked()).await? {
            let began = Instant::now();
            room.cover((held.len() + piece.len()) as u64).await?;
            held.extend_from_slice(&piece);
            if held.len() > IN_MEMORY {
                let (file, place) = match on_disk.take() {
                    Some(open) => open,
                    None => {
                        let place = app.spools.take_within(Holder::of(&parts.extensions), 1, PATIENCE).await?;
                        let folder = app.spool.clone();
                        (in_background(move || unnamed(folder)).await?, place)
                    }
                };
                let full = std::mem::take(&mut held).freeze();
                let write = move || -> io::Result<File> {
                    let mut file = file;
                    file.write_all(&full)?;
                    Ok(file)
                };
                on_disk = Some((in_background(write).await?, place));
                room.clear();
            }
            // The sender is not to blame for what took time here.
            pieces.excuse(began.elapsed());
        }
        let Some((mut file, place)) = on_disk else {
            return Ok(Self { input: Box::new(Cursor::new(room.keep(held.freeze()))), _place: None });
        };
        let file = in_background(move || {
            file.write_all(&held)?;
            file.rewind()?;
            Ok(file)
        });
        Ok(Self { input: Box::new(BufReader::with_capacity(64 << 10, file.await?)), _place: Some(place) })
    }
}

/// The places for files on disk.
pub(crate) fn places(refusals: Refusals) -> Arc<Budget> {
    let subject =
        Subject { label: "imports", setting: "a fixed limit", what: "files being imported", code: "http/busy" };
    Budget::new(subject, ON_DISK, refusals)
}

async fn in_background(work: impl FnOnce() -> io::Result<File> + Send + 'static) -> Result<File, Problem> {
    let failed = |error: io::Error| {
        Problem::from(banyan::model::Error::storage(format!(
            "the file could not be kept while it comes in: {error}"
        )))
    };
    tokio::task::spawn_blocking(work).await.map_err(|_| Problem::internal())?.map_err(failed)
}

/// A file that is gone when it is closed, whatever happens.
fn unnamed(folder: PathBuf) -> io::Result<File> {
    private::create_dir_all(&folder)?;
    let path = folder.join(Uuid::now_v7().simple().to_string());
    let mut options = private::options();
    options.read(true).create_new(true);
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt;
        const DELETE_ON_CLOSE: u32 = 0x0400_0000;
        options.custom_flags(DELETE_ON_CLOSE);
    }
    let file = options.open(&path)?;
    #[cfg(not(windows))]
    fs::remove_file(&path)?;
    Ok(file)
}
