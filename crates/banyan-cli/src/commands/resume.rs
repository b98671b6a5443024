//! `banyan resume`: a session goes on in another agent.

use std::path::{Path, PathBuf};
use std::process::Command as Process;

use banyan_agents::{Agent, Written};
use clap::Args;
use serde_json::json;

use super::export::agent_named;
use crate::agents::outgoing::{tell_lost, write};
use crate::args::{Globals, quoted};
use crate::client::{Access, with_client};
use crate::failure::Failure;
use crate::resolve::resolve;
use crate::screen::Screen;

/// Go on with a session in a coding agent.
///
/// The session is written where the agent looks for its own, as the agent itself would have written it, and the command that goes on with it
/// is printed. No file is written over. What you do there comes back into the same session with the next `banyan import`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ResumeArgs {
    /// The session's id, or its beginning
    session: String,
    /// The agent: codex, claude, ...
    #[arg(long = "in", value_name = "AGENT", value_parser = agent_named)]
    agent: &'static dyn Agent,
    /// The directory to go on in [default: where the session's work was, else this one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Run the command instead of printing it
    #[arg(long)]
    run: bool,
}

const EXAMPLES: &str = "\
Examples:
  banyan resume codex_0199 --in claude
  banyan resume s_0199 --in codex --cwd ~/project --run";

pub(crate) fn run(args: &ResumeArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let (written, cwd) = with_client(globals, Access::Existing, |client| {
        let session = resolve(client, &args.session)?.session_id;
        write(client, session, args.agent, None, args.cwd.as_deref())
    })?;
    tell_lost(args.agent, &written);
    let Written { native_id, paths, command, lost } = &written;
    if args.run {
        return start(command, &cwd);
    }
    if globals.json {
        return screen.json(&json!({
            "agent": args.agent.id(), "native_id": native_id, "paths": paths, "command": command, "cwd": cwd, "lost": lost,
        }));
    }
    screen.line(&typed(command, &cwd))
}

/// The command as it is typed from here.
fn typed(command: &[String], cwd: &Path) -> String {
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let here = std::env::current_dir().is_ok_and(|here| here == cwd);
    let go = if here { String::new() } else { format!("cd {} && ", quoted(&cwd.display().to_string())) };
    format!("{go}{}", words.join(" "))
}

/// Becomes the agent, or waits for it where that is not possible.
fn start(command: &[String], cwd: &Path) -> Result<(), Failure> {
    let Some((program, words)) = command.split_first() else {
        return Err(Failure::usage("the agent has no command that goes on with a session"));
    };
    let mut process = Process::new(program);
    process.args(words).current_dir(cwd);
    // A process that could not become the agent is in its directory all the same.
    let next = typed(command, cwd);
    let failed = |error: std::io::Error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "it is not installed, or not on the PATH".to_owned(),
            _ => error.to_string(),
        };
        let what = format!("{program} could not be started: {why}. The session is written; go on with: {next}");
        Failure::trouble("cli/agent", what)
    };
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        Err(failed(process.exec()))
    }
    #[cfg(not(unix))]
    {
        let status = process.status().map_err(failed)?;
        crate::failure::complain(&format!("{program} ended: {status}."));
        Ok(())
    }
}
