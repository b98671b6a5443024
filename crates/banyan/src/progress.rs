//! Telling a person that work goes on.

/// Hears about work that takes a while, and about what was found on the way. `()` ignores it all.
pub trait Progress: Send + Sync {
    /// Work begins, with as many steps as are known.
    fn begin(&self, what: &str, steps: u64) {
        let _ = (what, steps);
    }
    /// So many steps are done.
    fn step(&self, done: u64) {
        let _ = done;
    }
    /// The work is over.
    fn end(&self) {}
    /// Something that an operator should know.
    fn warn(&self, warning: &str) {
        let _ = warning;
    }
}

impl Progress for () {}
