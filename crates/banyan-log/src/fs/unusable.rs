//! Small files of the log's own that cannot be opened at all: they are moved aside, so that others take their places.

use std::io;

use super::recovery::{Recovered, SET_ASIDE};
use super::{journal, layout};
use crate::LogError;
use crate::disk::Disk;

/// Moves aside what stands in the way of the files that the log makes anew when they are missing.
pub(crate) fn set_aside(disk: &dyn Disk, said: &mut Recovered) -> Result<(), LogError> {
    let [format, copy] = layout::FORMATS;
    let small = [format, copy, layout::LIVE, layout::REGISTER, layout::DAMAGE].map(str::to_owned);
    let listed = disk.list(layout::JOURNAL).map_err(LogError::io("listing the journal"))?;
    let journals = listed.into_iter().filter(|listed| journal::first_of(&listed.name).is_some());
    let journals = journals.map(|listed| format!("{}/{}", layout::JOURNAL, listed.name));
    for path in small.into_iter().chain(journals) {
        let Err(error) = disk.open(&path) else { continue };
        if is_passing(&error) {
            return Err(LogError::io(format!("opening {path}"))(error));
        }
        let aside = format!("{path}{SET_ASIDE}");
        disk.rename(&path, &aside).map_err(LogError::io(format!("moving {path} to {aside}")))?;
        said.warnings.push(format!("{path}: cannot be opened: {error}; moved to {aside}"));
    }
    Ok(())
}

/// Whether an error says nothing about the file: too many files are open, or there is no memory.
fn is_passing(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
        || matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::Interrupted)
}
