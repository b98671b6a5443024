//! Puts the clients under the target directory, from the registries of their languages.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::client;
use crate::outside::{UNSEEN, chromium};

/// Node.js, and a script among its packages.
pub(crate) fn node(script: &str) -> Result<Command, String> {
    let place = place("node");
    // Tests run side by side, and one of them installs.
    static INSTALLED: OnceLock<Result<(), String>> = OnceLock::new();
    INSTALLED.get_or_init(|| install(&place)).clone()?;
    std::fs::copy(client(script), place.join(script)).map_err(|error| error.to_string())?;
    let mut command = Command::new("node");
    command.arg(place.join(script));
    Ok(command)
}

fn install(place: &Path) -> Result<(), String> {
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(client(file), place.join(file)).map_err(|error| error.to_string())?;
    }
    run(Command::new("npm").args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(place))
}

/// A Python that has the packages, and the script.
pub(crate) fn python() -> Result<Command, String> {
    let python = place("python").join("venv/bin/python");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(place("python").join("venv")))?;
    }
    let requirements = client("sseclient-requirements.txt");
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements))?;
    let mut command = Command::new(python);
    command.arg(client("sseclient_py.py"));
    Ok(command)
}

/// Chromium without a window.
pub(crate) fn browser() -> Result<Command, String> {
    let mut command = Command::new(chromium()?);
    command.args(UNSEEN);
    Ok(command)
}

fn place(name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients").join(name);
    std::fs::create_dir_all(&place).unwrap();
    place
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
