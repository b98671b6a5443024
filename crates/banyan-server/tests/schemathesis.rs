//! Schemathesis, which makes up requests from `/openapi.json`, finds no answer that is not as documented.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the clients that are tested against are described.
fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients")
}

/// The command, installed; or why it cannot be.
fn schemathesis() -> Result<PathBuf, String> {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemathesis");
    let python = environment.join("bin/python3");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    run(Command::new(python).args(pip).arg(clients().join("requirements.txt")))?;
    Ok(environment.join("bin/schemathesis"))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn schemathesis_finds_nothing() {
    let schemathesis = match schemathesis() {
        Ok(schemathesis) => schemathesis,
        Err(why) => return crate::outside::skip("schemathesis_finds_nothing", &why),
    };
    // With a key, so that keys can be made along the way without shutting everybody out.
    let server = crate::server::Server::start_with_key();
    let seconds = std::env::var("BANYAN_SCHEMATHESIS_SECONDS").unwrap_or_else(|_| "60".to_owned());
    // The same requests each time; another seed makes up others.
    let seed = std::env::var("BANYAN_SCHEMATHESIS_SEED").unwrap_or_else(|_| "7420".to_owned());
    let output = Command::new(schemathesis)
        .arg("--config-file")
        .arg(clients().join("schemathesis.toml"))
        .args(["run", &format!("{}/openapi.json", server.url), "--max-time", &seconds, "--seed", &seed])
        .args(["--header", &format!("Authorization: Bearer {}", server.key)])
        // Taking away the key that it works with would end the run.
        .args(["--exclude-operation-id", "removeKey"])
        // It takes lines of JSON, which schemathesis does not write. Tests of their own send it what is malformed.
        .args(["--exclude-operation-id", "backup"])
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("Tested"), "{said}");
}
