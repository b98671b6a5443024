//! Runs the page's tests in Chromium. They are written in JavaScript, beside the page.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::server::Server;

/// Runs `console/tests/browser/{name}.test.mjs` against a server.
pub(crate) fn in_chromium(name: &str, server: &Server) {
    let console = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console").canonicalize().unwrap();
    let chromium = match ready(&console) {
        Ok(chromium) => chromium,
        Err(why) => {
            // Written past the test harness, which keeps what tests print to itself.
            let _ = writeln!(std::io::stderr(), "skipped: the page's tests `{name}`: {why}");
            return;
        }
    };
    let output = Command::new("node")
        .args(["--test", "--test-reporter=spec"])
        .arg(format!("tests/browser/{name}.test.mjs"))
        .current_dir(&console)
        .env("BANYAN_URL", &server.url)
        .env("BANYAN_KEY", &server.key)
        .env("BANYAN_CHROMIUM", chromium)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// The browser, when all is there that the tests need.
fn ready(console: &Path) -> Result<PathBuf, String> {
    if !console.join("dist/index.html").exists() || !console.join("node_modules/playwright-core").exists() {
        return Err("the page is not built; `make console` does that".to_owned());
    }
    let named = std::env::var("BANYAN_CHROMIUM").ok().map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let known = ["chromium", "chromium-browser", "google-chrome"];
    let mut found = known.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    named.or_else(|| found.find(|file| file.is_file())).ok_or_else(|| "there is no Chromium here".to_owned())
}
