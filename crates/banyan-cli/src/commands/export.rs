//! `banyan export`: a session as a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use banyan::DAMAGED;
use banyan::export::{ExportRequest, Redaction, SigningKey, Target, Written};
use banyan_agents::{Agent, Written as AgentWritten, agent};
use clap::Args;
use serde_json::json;

use crate::agents::outgoing;
use crate::agents::tell::agent_words;
use crate::args::Globals;
use crate::client::{Access, with_client};
use crate::failure::{Failure, complain};
use crate::resolve::resolve;
use crate::screen::Screen;
use crate::words::{complain_of_damaged, count, one_line};

/// Write a session to a file.
///
/// An OPA archive is one file with everything, attachments too: it comes back with `banyan import` as the same session, and
/// others can read its history. A session log comes back as well, without attachments. Markdown and HTML are for people. A context of
/// the Open Context Protocol has what was done, and never a secret. For a coding agent, the session is written where that agent looks for its
/// own, or below the folder that -o names. Everything is written as it is without --redact, secrets included.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    /// The session's id, or its beginning
    session: String,
    /// What to write: opa, session-log, markdown, html, ocp-context, or an agent (codex, claude, ...)
    #[arg(long, value_name = "FORM", value_parser = form)]
    to: Form,
    /// The file to write; - is standard output [default: standard output]. For an agent: the folder that stands in for its home
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
    /// Take out what looks like a secret. What was taken out is listed at the end of the file
    #[arg(long)]
    redact: bool,
    /// Leave the session's own records out of an archive: only what everybody can read
    #[arg(long)]
    plain: bool,
    /// The directory in which an agent is to go on [default: where the session's work was, else this one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Sign an archive with this certificate (PEM); --key is then the file of its private key (PEM)
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  banyan export s_0199 --to opa -o session.opa
  banyan export s_0199 --to opa --plain --key me.key --cert me.pem -o session.opa
  banyan export s_0199 --to session-log -o session.jsonl
  banyan export s_0199 --to markdown --redact | pbcopy
  banyan export s_0199 --to html -o session.html
  banyan export s_0199 --to ocp-context -o context.json
  banyan export s_0199 --to claude -o ./claude-home";

/// What a session can be written as.
#[derive(Clone, Copy)]
enum Form {
    File(Target),
    Agent(&'static dyn Agent),
}

fn form(name: &str) -> Result<Form, String> {
    match agent(name) {
        Some(agent) => Ok(Form::Agent(agent)),
        None => name
            .parse()
            .map(Form::File)
            .map_err(|error: banyan::model::Error| format!("{}; the agents are {}", error.message, agent_words())),
    }
}

/// The agent of a name.
pub(super) fn agent_named(name: &str) -> Result<&'static dyn Agent, String> {
    agent(name).ok_or_else(|| format!("the agents are {}", agent_words()))
}

pub(crate) fn run(args: &ExportArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    match args.to {
        Form::File(target) => to_file(args, target, globals, screen),
        Form::Agent(agent) => to_agent(args, agent, globals, screen),
    }
}

fn to_agent(
    args: &ExportArgs,
    agent: &'static dyn Agent,
    globals: &Globals,
    screen: &mut Screen,
) -> Result<(), Failure> {
    if args.redact || args.plain || args.cert.is_some() || args.force {
        return Err(Failure::usage("--redact, --plain, --cert and --force are for files, not for agents"));
    }
    let (written, cwd) = with_client(globals, Access::Existing, |client| {
        let session = resolve(client, &args.session)?.session_id;
        outgoing::write(client, session, agent, args.output.as_deref(), args.cwd.as_deref())
    })?;
    outgoing::tell_lost(agent, &written);
    let AgentWritten { native_id, paths, command, lost } = &written;
    if globals.json {
        return screen.json(&json!({
            "agent": agent.id(), "native_id": native_id, "paths": paths, "command": command, "cwd": cwd, "lost": lost,
        }));
    }
    paths.iter().try_for_each(|path| screen.line(&path.display().to_string()))
}

fn to_file(args: &ExportArgs, target: Target, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    if args.cwd.is_some() {
        return Err(Failure::usage("--cwd is for agents, not for files"));
    }
    let file = args.output.as_deref().filter(|path| path.as_os_str() != "-");
    if let Some(path) = file.filter(|path| path.exists() && !args.force) {
        return Err(in_the_way(path));
    }
    let redaction = if args.redact { Redaction::Secrets } else { Redaction::Off };
    let key = args.cert.as_deref().map(|cert| signing_key(cert, globals)).transpose()?;
    with_client(globals, Access::Existing, |client| {
        let session_id = resolve(client, &args.session)?.session_id;
        let request = ExportRequest { session_id, target, redaction, plain: args.plain };
        let mut marks = DamageMarks::of(target);
        let written = match file {
            None => {
                let written = client.export(&request, key, &mut |piece| {
                    marks.look(piece);
                    screen.bytes(piece)
                })?;
                screen.flush()?;
                written
            }
            Some(path) => {
                let mut partial = Partial::create(path)?;
                let written = client.export(&request, key, &mut |piece| {
                    marks.look(piece);
                    partial.write(piece)
                })?;
                partial.finish(args.force)?;
                complain(&format!("Wrote {}.", path.display()));
                written
            }
        };
        tell(written.as_ref());
        complain_of_damaged(written.map_or(marks.count, |written| written.damaged));
        Ok(())
    })
}

/// The key to sign with. What was given as the key is not repeated: it may be the key of a server.
fn signing_key(cert: &Path, globals: &Globals) -> Result<Arc<SigningKey>, Failure> {
    let Some(key) = &globals.key else {
        return Err(Failure::usage("--cert needs the private key of the certificate; pass its file with --key"));
    };
    let key = fs::read(key)
        .map_err(|error| Failure::usage(format!("the file that --key names could not be read: {error}")))?;
    let cert = fs::read(cert)
        .map_err(|error| Failure::usage(format!("{} could not be read: {error}", cert.display())))?;
    let key = SigningKey::from_pem(&key, &cert).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(Arc::new(key))
}

/// Says what an archive holds.
fn tell(written: Option<&Written>) {
    let Some(written) = written else { return };
    let mut holds = vec![count(written.messages, "message"), count(written.attachments, "attachment")];
    holds.push(match &written.extension {
        Some(_) => "the session's own records (every branch and revision)".to_owned(),
        None => "no records of the session's own (plain)".to_owned(),
    });
    complain(&format!("It holds {}.", holds.join(", ")));
    if written.left_out > 0 {
        complain(&format!("{} have no place in the history.", count(written.left_out, "custom message")));
    }
    if written.missing > 0 {
        complain(&format!("{} could not be found.", count(written.missing, "attachment")));
    }
    if let Some(signer) = &written.signed_by {
        complain(&format!("Signed by {}.", one_line(signer)));
    }
}

/// Counts the entries that stand in for damaged ones in what is exported.
struct DamageMarks {
    mark: Option<String>,
    /// The end of what was seen, in which a mark may begin.
    rest: Vec<u8>,
    count: u64,
}

impl DamageMarks {
    fn of(target: Target) -> Self {
        let mark = match target {
            Target::SessionLog => Some(format!("\"custom_type\":\"{DAMAGED}\"")),
            Target::Markdown => Some(format!("\n## {DAMAGED} · ")),
            Target::Html => Some(format!("<h2><span dir=\"auto\">{DAMAGED}</span>")),
            Target::Opa | Target::OcpContext => None,
        };
        Self { mark, rest: Vec::new(), count: 0 }
    }

    fn look(&mut self, piece: &[u8]) {
        let Some(mark) = &self.mark else { return };
        self.rest.extend_from_slice(piece);
        self.count += self.rest.windows(mark.len()).filter(|bytes| *bytes == mark.as_bytes()).count() as u64;
        // A mark that was counted does not fit into what is kept.
        self.rest.drain(..self.rest.len().saturating_sub(mark.len() - 1));
    }
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
