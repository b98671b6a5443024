//! Puts workers on the SDKs of others under the target directory, from the registries of their languages.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Says loudly that something did not run. Written past the test harness, which keeps what tests print to itself.
pub(crate) fn skip(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {what}: {why}");
}

/// Node.js, with a script among its packages.
pub(crate) fn node(script: &str) -> Result<Command, String> {
    let place = place("node");
    for file in ["package.json", "package-lock.json", script] {
        std::fs::copy(client(file), place.join(file)).map_err(|error| error.to_string())?;
    }
    let ci = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    once(&place, "package-lock.json", || run(Command::new("npm").args(ci).current_dir(&place)))?;
    let mut command = Command::new("node");
    command.arg(place.join(script));
    Ok(command)
}

/// A Python that has the packages, and a script.
pub(crate) fn python(script: &str) -> Result<Command, String> {
    let place = place("python");
    let python = place.join("venv/bin/python");
    once(&place, "requirements.txt", || {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(place.join("venv")))?;
        let install = ["-m", "pip", "install", "--quiet", "--requirement"];
        run(Command::new(&python).args(install).arg(client("requirements.txt")))
    })?;
    let mut command = Command::new(python);
    command.arg(client(script));
    Ok(command)
}

/// Installs what a file lists, unless that is what was installed last.
fn once(place: &Path, list: &str, install: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    // Tests run side by side, and one of them installs.
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _one = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let (wanted, installed) = (std::fs::read(client(list)).unwrap(), place.join("installed"));
    if std::fs::read(&installed).is_ok_and(|last| last == wanted) {
        return Ok(());
    }
    install()?;
    std::fs::write(installed, wanted).map_err(|error| error.to_string())
}

/// Where a worker's output goes.
pub(crate) fn log(name: &str) -> PathBuf {
    place("logs").join(name)
}

fn client(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/iii").join(file)
}

fn place(name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("iii").join(name);
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
