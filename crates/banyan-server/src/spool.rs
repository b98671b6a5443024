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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::app::Shared;
use crate::body::Pieces;
use crate::problem::Problem;

/// So much of a file is in memory.
const IN_MEMORY: usize = 1 << 20;
/// So many files are on disk at a time. Whoever comes later waits, and sends no more meanwhile.
const ON_DISK: usize = 4;

/// A file that came in.
pub(crate) struct Spooled {
    pub(crate) input: Box<dyn Input>,
    _place: Option<OwnedSemaphorePermit>,
}

impl FromRequest<Shared> for Spooled {
    type Rejection = Problem;

    async fn from_request(request: Request<Body>, app: &Shared) -> Result<Self, Problem> {
        let limits = &app.settings.limits;
        let mut pieces = Pieces::of(request.into_body(), limits.import_bytes as u64, limits.body_timeout)?;
        let mut held = BytesMut::new();
        let mut on_disk: Option<(File, OwnedSemaphorePermit)> = None;
        while let Some(piece) = pieces.next().await? {
            held.extend_from_slice(&piece);
            if held.len() <= IN_MEMORY {
                continue;
            }
            let (file, place) = match on_disk.take() {
                Some(open) => open,
                None => {
                    let place = Arc::clone(&app.spools).acquire_owned().await;
                    let place = place.map_err(|_| Problem::internal())?;
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
            // The sender is not to blame for what took time here.
            pieces.begin_waiting();
        }
        let Some((mut file, place)) = on_disk else {
            return Ok(Self { input: Box::new(Cursor::new(held.freeze())), _place: None });
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
pub(crate) fn places() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(ON_DISK))
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
