//! `banyan export`: a session as a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use banyan::export::{ExportRequest, Redaction, Target};
use clap::Args;

use crate::args::Globals;
use crate::client::{Access, with_client};
use crate::failure::{Failure, complain};
use crate::resolve::resolve;
use crate::screen::Screen;

/// Write a session to a file.
///
/// A session log comes back with `banyan import` as the same session, branches and all; its attachments do not travel with
/// it. Markdown and HTML are for people. A context of the Open Context Protocol has what was done, and never a secret. Everything
/// else is written as it is without --redact, secrets included.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    /// The session's id, or its beginning
    session: String,
    /// What to write: session-log, markdown, html or ocp-context
    #[arg(long, value_name = "FORM", value_parser = target)]
    to: Target,
    /// The file to write; - is standard output [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
    /// Take out what looks like a secret. What was taken out is listed at the end of the file
    #[arg(long)]
    redact: bool,
}

const EXAMPLES: &str = "\
Examples:
  banyan export s_0199 --to session-log -o session.jsonl
  banyan export s_0199 --to markdown --redact | pbcopy
  banyan export s_0199 --to html -o session.html
  banyan export s_0199 --to ocp-context -o context.json";

fn target(name: &str) -> Result<Target, String> {
    name.parse().map_err(|error: banyan::model::Error| error.message)
}

pub(crate) fn run(args: &ExportArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let file = args.output.as_deref().filter(|path| path.as_os_str() != "-");
    if let Some(path) = file.filter(|path| path.exists() && !args.force) {
        return Err(in_the_way(path));
    }
    let redaction = if args.redact { Redaction::Secrets } else { Redaction::Off };
    with_client(globals, Access::Existing, |client| {
        let session_id = resolve(client, &args.session)?.session_id;
        let request = ExportRequest { session_id, target: args.to, redaction };
        match file {
            None => {
                client.export(&request, &mut |piece| screen.bytes(piece))?;
                screen.flush()
            }
            Some(path) => {
                let mut partial = Partial::create(path)?;
                client.export(&request, &mut |piece| partial.write(piece))?;
                partial.finish(args.force)?;
                complain(&format!("Wrote {}.", path.display()));
                Ok(())
            }
        }
    })
}

fn in_the_way(path: &Path) -> Failure {
    Failure::usage(format!("{} is there already; pass --force to write over it", path.display()))
}

/// A file that gets its name once it is whole, so that nobody takes half a session for one.
struct Partial {
    file: File,
    path: PathBuf,
    name: PathBuf,
    done: bool,
}

impl Partial {
    fn create(name: &Path) -> Result<Self, Failure> {
        let mut path = name.as_os_str().to_owned();
        path.push(format!(".{}.partial", std::process::id()));
        let path = PathBuf::from(path);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|error| unwritable(name, &error))?;
        Ok(Self { file, path, name: name.to_owned(), done: false })
    }

    fn write(&mut self, piece: &[u8]) -> Result<(), Failure> {
        self.file.write_all(piece).map_err(|error| unwritable(&self.name, &error))
    }

    fn finish(mut self, force: bool) -> Result<(), Failure> {
        self.file.sync_all().map_err(|error| unwritable(&self.name, &error))?;
        match force {
            true => fs::rename(&self.path, &self.name),
            // A link is refused when somebody else made the file meanwhile; a new name would be given over it.
            false => match fs::hard_link(&self.path, &self.name) {
                Ok(()) => fs::remove_file(&self.path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
                // Some file systems have no links.
                Err(_) if !self.name.exists() => fs::rename(&self.path, &self.name),
                Err(error) => Err(error),
            },
        }
        .map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => in_the_way(&self.name),
            _ => unwritable(&self.name, &error),
        })?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.done {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::trouble("cli/file", format!("{} could not be written: {error}", path.display()))
}
