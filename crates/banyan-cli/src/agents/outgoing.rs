//! A session on its way to an agent: fetched whole, from wherever it is, and written where that agent looks for it.

use std::path::{Path, PathBuf};

use banyan::DAMAGED;
use banyan::export::{ExportRequest, Redaction, Target};
use banyan::model::{SessionEntry, SessionId};
use banyan::session_log::{self, Log};
use banyan_agents::{Agent, Destination, Env, Outgoing, Written};

use crate::client::Client;
use crate::failure::{Failure, complain};
use crate::words::{complain_of_damaged, one_line};

/// Fetches a session. A session log holds every branch, id and extra, and both a directory and a server write one.
fn fetch(client: &dyn Client, session_id: SessionId) -> Result<Outgoing, Failure> {
    let request =
        ExportRequest { session_id, target: Target::SessionLog, redaction: Redaction::Off, plain: false };
    let mut text = Vec::new();
    client.export(&request, None, &mut |piece| {
        text.extend_from_slice(piece);
        Ok(())
    })?;
    let Log { meta, active_leaf, entries, .. } = session_log::read(text.as_slice())?;
    let is_damaged =
        |entry: &&SessionEntry| matches!(entry, SessionEntry::Custom(entry) if entry.custom_type == DAMAGED);
    complain_of_damaged(entries.iter().filter(is_damaged).count() as u64);
    Ok(Outgoing { meta, entries, leaf: active_leaf })
}

/// Writes a session for an agent: into `home`, or where the agent keeps its own. Gives what was written, and where to go on.
pub(crate) fn write(
    client: &dyn Client,
    session: SessionId,
    agent: &dyn Agent,
    home: Option<&Path>,
    cwd: Option<&Path>,
) -> Result<(Written, PathBuf), Failure> {
    let env = Env::of_process();
    let session = fetch(client, session)?;
    let homes = agent.homes(&env);
    let own = homes.iter().find(|home| home.exists()).or(homes.first());
    let home = match (home, own) {
        (Some(folder), _) => absolute(folder)?,
        (None, Some(own)) => own.clone(),
        (None, None) => {
            return Err(Failure::usage(format!(
                "there is no telling where {} keeps sessions; pass -o",
                agent.name()
            )));
        }
    };
    let cwd = match cwd {
        Some(dir) if !dir.is_dir() => {
            return Err(Failure::usage(format!("{} is no directory; pass one that is with --cwd", dir.display())));
        }
        Some(dir) => dir.canonicalize()?,
        // Where the work was, if that is on this machine.
        None => session
            .metadata("cwd")
            .map(PathBuf::from)
            .filter(|dir| dir.is_dir())
            .unwrap_or_else(|| env.cwd.clone()),
    };
    let to = Destination { home, cwd, now_ms: banyan::now_ms() };
    let written =
        agent.write(&session, &to).map_err(|problem| Failure::trouble("cli/agent", problem.to_string()))?;
    Ok((written, to.cwd))
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

/// Says what the agent has no place for.
pub(crate) fn tell_lost(agent: &dyn Agent, written: &Written) {
    for lost in &written.lost {
        complain(&format!("Not in {}: {}", agent.name(), one_line(lost)));
    }
}
