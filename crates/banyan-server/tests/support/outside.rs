//! What a test needs that others made, and what it says when it is not here.

use std::io::Write;
use std::path::PathBuf;

/// Says loudly that a test did not run. Written past the test harness, which keeps what tests print to itself.
pub(crate) fn skip(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// Where Chromium is. `make test` installs it where it may.
pub(crate) fn chromium() -> Result<PathBuf, String> {
    let named = std::env::var_os("BANYAN_CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let known = ["chromium", "chromium-browser", "google-chrome"];
    let mut found = known.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    named.or_else(|| found.find(|file| file.is_file())).ok_or_else(|| "there is no Chromium here".to_owned())
}

/// What it is started with when nobody looks at it.
pub(crate) const UNSEEN: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];
