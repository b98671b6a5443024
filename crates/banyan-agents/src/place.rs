//! What this machine says about where things are.

use std::path::PathBuf;

/// The parts of the environment that agents look at. A test has its own.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// The user's home directory.
    pub home: PathBuf,
    /// The directory that the command was started in.
    pub cwd: PathBuf,
    /// The environment variables.
    pub variables: Vec<(String, String)>,
}

impl Env {
    /// The environment of this process.
    pub fn of_process() -> Self {
        let home = std::env::home_dir().unwrap_or_default();
        let cwd = std::env::current_dir().unwrap_or_default();
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { home, cwd, variables: std::env::vars_os().filter_map(text).collect() }
    }

    /// An environment variable, if it is set to something.
    pub fn var(&self, name: &str) -> Option<&str> {
        let value = self.variables.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        value.filter(|value| !value.is_empty())
    }

    /// The directory that a variable names, else one below the home directory.
    pub fn dir(&self, name: &str, below_home: &str) -> PathBuf {
        self.var(name).map_or_else(|| self.home.join(below_home), PathBuf::from)
    }

    /// Where programs keep data by the XDG rules.
    pub fn data_home(&self) -> PathBuf {
        self.dir("XDG_DATA_HOME", ".local/share")
    }
}
