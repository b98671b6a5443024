//! The page that shows a session, in Chromium: how much of a frame it needs while an answer is streamed into a long session.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::http_server::Server;
use crate::report::{Row, Section};
use crate::workbench::{Outcome, Workbench};

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let console = Path::new(env!("CARGO_MANIFEST_DIR")).join("../console");
    let Some(chromium) = chromium().filter(|_| console.join("dist/index.html").exists()) else {
        let why = "The page was not measured: it needs `make console` before this is built, and Chromium.";
        return Ok(Section { method: vec![why.to_owned()], ..Section::default() });
    };
    let dir = bench.scratch()?;
    let server = Server::start(dir.path())?;
    let output = Command::new("node")
        .arg("bench/frames.mjs")
        .arg(format!("http://{}", server.address))
        .arg(chromium)
        .arg(bench.pick("20", "5"))
        .current_dir(console)
        .stderr(Stdio::inherit())
        .output()?;
    server.stop()?;
    if !output.status.success() {
        return Err(format!("frames.mjs ended with {}", output.status).into());
    }
    section(&serde_json::from_slice(&output.stdout)?)
}

fn section(found: &Value) -> Outcome<Section> {
    let number =
        |at: &str| found.pointer(at).and_then(Value::as_f64).ok_or(format!("frames.mjs did not tell {at}"));
    let spread = |of: &str| -> Outcome<(f64, String)> {
        let [p50, p99, max] = ["p50", "p99", "max"].map(|at| number(&format!("/{of}/{at}")));
        let p99 = p99?;
        Ok((p99, format!("{:.1} / {p99:.1} / {:.1} ms", p50?, max?)))
    };
    let ((computed, computed_text), (_, passed_text)) = (spread("computed")?, spread("work")?);
    let (frames, late) = (number("/frames")?, number("/late")?);
    let rate = number("/updates")? / number("/seconds")?;
    let work = format!("page: a frame while {} turns are shown and {rate:.0} updates/s come", number("/turns")?);
    let rows = vec![
        Row::shown(work, computed_text).target("p99 < 16 ms", computed < 16.0),
        Row::shown("the same, by the clock", passed_text),
        Row::shown("the same, frames that came late", format!("{late:.0} of {frames:.0}")),
        Row::shown(
            "page: from its address to the end of the newest answer",
            format!("{:.0} ms", number("/shown")?),
        ),
    ];
    let method = "Page: headless Chromium without a GPU, on the machine that also serves and writes. A frame is what the page's main \
                  thread does for it, from callbacks to painting: median, p99 and longest, in processor time and by the clock.";
    Ok(Section { rows, method: vec![method.to_owned()], ..Section::default() })
}

fn chromium() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("BANYAN_CHROMIUM") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    names.iter().flat_map(|name| places.iter().map(move |place| place.join(name))).find(|file| file.is_file())
}
