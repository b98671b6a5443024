//! How many files and sockets the process may hold.

/// Left for session files, the log, the catalogue and the system's own.
const RESERVED: usize = 1_500;

/// Lets the process hold as many descriptors as the system allows it to, and says how many that is.
#[cfg(unix)]
pub(crate) fn raise() -> Option<usize> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let wanted = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
        match setrlimit(Resource::Nofile, wanted) {
            Ok(()) => limit.current = limit.maximum,
            Err(error) => tracing::warn!(%error, "the number of open files could not be raised"),
        }
    }
    limit.current.and_then(|most| usize::try_from(most).ok())
}

/// Elsewhere sockets do not count as files.
#[cfg(not(unix))]
pub(crate) fn raise() -> Option<usize> {
    None
}

/// How many connections fit beside the store's files.
pub(crate) fn connections(wanted: usize, descriptors: Option<usize>) -> usize {
    let Some(descriptors) = descriptors else { return wanted };
    // A process that may hold very few keeps half of them for connections.
    let fit = descriptors.saturating_sub(RESERVED).max(descriptors / 2).max(1);
    if fit < wanted {
        tracing::info!(
            wanted,
            fit,
            descriptors,
            "fewer connections than configured: the process may not hold more files"
        );
    }
    wanted.min(fit)
}

#[cfg(test)]
mod tests {
    use super::connections;

    #[test]
    fn connections_leave_room_for_files() {
        assert_eq!(connections(20_000, None), 20_000);
        assert_eq!(connections(20_000, Some(1 << 20)), 20_000);
        assert_eq!(connections(20_000, Some(20_000)), 18_500);
        assert_eq!(connections(20_000, Some(1_024)), 512);
        assert_eq!(connections(10, Some(1_024)), 10);
    }
}
