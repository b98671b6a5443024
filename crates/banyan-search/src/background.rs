//! Threads that run behind everybody else.

use crate::error::SearchError;

/// Does something on a thread that runs behind all others. Threads that it starts do so too.
pub(crate) fn in_background<T: Send>(
    work: impl FnOnce() -> Result<T, SearchError> + Send,
) -> Result<T, SearchError> {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            #[cfg(target_os = "linux")]
            let _ = rustix::process::setpriority_process(None, 10);
            work()
        });
        worker.join().unwrap_or_else(|_| Err(SearchError::Damaged("a thread of the index ended early".to_owned())))
    })
}
