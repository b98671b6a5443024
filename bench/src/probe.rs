//! What only a fresh process can tell: this program starts itself again, does one thing, and prints what it took.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use banyan::block_on;
use banyan_model::{ListRequest, MessagesRequest, SessionId};

use crate::workbench::Outcome;
use crate::{machine, session};

/// The first word of a command line that asks for a probe.
pub(crate) const WORD: &str = "probe";

/// What one fresh process found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probed {
    /// How long it took to open the directory, in microseconds.
    pub(crate) open: f64,
    /// How long the first page then took, in microseconds.
    pub(crate) page: f64,
    /// Resident memory once the directory was open, in KiB.
    pub(crate) resident_open: f64,
    /// Resident memory after the page, in KiB.
    pub(crate) resident: f64,
}

/// Opens a directory in a fresh process, and reads the first page of a session.
pub(crate) fn first_messages(dir: &Path, session: &SessionId) -> Outcome<Probed> {
    ask(dir, Some(session))
}

/// Opens a directory in a fresh process, and lists the first page of sessions.
pub(crate) fn first_list(dir: &Path) -> Outcome<Probed> {
    ask(dir, None)
}

fn ask(dir: &Path, session: Option<&SessionId>) -> Outcome<Probed> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(WORD).arg(dir).args(session.map(SessionId::as_str));
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("a fresh process failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let numbers = text.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
    match numbers.as_slice() {
        [open, page, resident_open, resident] => {
            Ok(Probed { open: *open, page: *page, resident_open: *resident_open, resident: *resident })
        }
        _ => Err(format!("a fresh process answered `{text}`").into()),
    }
}

/// What the fresh process does.
pub(crate) fn answer(words: &[String]) -> Outcome<()> {
    let dir = words.first().ok_or("a probe needs a directory")?;
    let begun = Instant::now();
    let store = session::open(Path::new(dir))?;
    let open = begun.elapsed();
    let resident_open = machine::resident_kib()?;
    let begun = Instant::now();
    let shown = match words.get(1) {
        Some(session) => {
            let request = MessagesRequest::of(SessionId::from(session.as_str()));
            block_on(store.messages(request))?.messages.len()
        }
        None => block_on(store.list(ListRequest::default()))?.sessions.len(),
    };
    let page = begun.elapsed();
    if shown == 0 {
        return Err("the first page is empty".into());
    }
    let resident = machine::resident_kib()?;
    println!("{} {} {resident_open} {resident}", open.as_secs_f64() * 1e6, page.as_secs_f64() * 1e6);
    Ok(store.close()?)
}
