//! Runs the page's tests in Chromium. They are written in JavaScript, beside the page.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::outside::{chromium, skip};
use crate::server::Server;

/// Runs `console/tests/browser/{name}.test.mjs` against a server.
pub(crate) fn in_chromium(name: &str, server: &Server) {
    let console = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console").canonicalize().unwrap();
    let chromium = match ready(&console) {
        Ok(chromium) => chromium,
        Err(why) => return skip(&format!("the page's tests `{name}`"), &why),
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
    chromium()
}
