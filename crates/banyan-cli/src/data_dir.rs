//! Where sessions are when nobody says.

use std::env;
use std::path::PathBuf;

use crate::args::Globals;
use crate::failure::Failure;

/// `--data`, then `BANYAN_DATA`, then the platform's place for data.
pub(crate) fn data_dir(globals: &Globals) -> Result<PathBuf, Failure> {
    globals.data.clone().or_else(|| path("BANYAN_DATA")).map_or_else(platform, Ok)
}

/// The platform's place for data.
pub(crate) fn platform() -> Result<PathBuf, Failure> {
    let place = if cfg!(windows) {
        path("APPDATA")
    } else if cfg!(target_os = "macos") {
        path("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        // The XDG rule: a relative path is to be ignored.
        path("XDG_DATA_HOME")
            .filter(|dir| dir.is_absolute())
            .or_else(|| path("HOME").map(|home| home.join(".local/share")))
    };
    place.map(|place| place.join("banyan")).ok_or_else(|| {
        Failure::usage("there is no telling where the data directory is; pass --data DIR or set BANYAN_DATA")
    })
}

/// The platform's place for what programs remember.
pub(crate) fn state_dir() -> Result<PathBuf, Failure> {
    if cfg!(any(windows, target_os = "macos")) {
        return platform();
    }
    let place = path("XDG_STATE_HOME").filter(|dir| dir.is_absolute());
    let place = place.or_else(|| path("HOME").map(|home| home.join(".local/state")));
    place
        .map(|place| place.join("banyan"))
        .ok_or_else(|| Failure::usage("there is no telling where to keep what was imported; set XDG_STATE_HOME"))
}

fn path(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}
