//! Being asked to stop.

use crate::failure::Failure;

/// Calls back, from another thread, when the process is asked to stop.
#[cfg(unix)]
pub(crate) fn on_stop(stop: impl Fn() + Send + 'static) -> Result<(), Failure> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let failed = |error| Failure::storage(format!("signals cannot be listened to: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let listen = move || signals.forever().for_each(|_| stop());
    std::thread::Builder::new().name("banyan-signals".into()).spawn(listen).map_err(failed)?;
    Ok(())
}

/// Where there are no such signals, a stopped process just ends; what it has answered is safe.
#[cfg(not(unix))]
pub(crate) fn on_stop(_stop: impl Fn() + Send + 'static) -> Result<(), Failure> {
    Ok(())
}
