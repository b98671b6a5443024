//! `banyan import`: sessions of coding agents, and sessions out of files.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Mutex;

use banyan::import::Mode;
use banyan::model::GetRequest;
use banyan_agents::{AGENTS, Agent, Env, agent};
use clap::Args;

use super::import_file;
use crate::agents::follow::Follow;
use crate::agents::ledger::{Known, Ledger};
use crate::agents::survey::{Found, News, Place, bytes_of, homes, recognise, survey};
use crate::agents::take::{How, Job, Report, lock, take_all};
use crate::agents::tell::{self, Summary};
use crate::args::{DurabilityArg, Globals, Target};
use crate::calls::ask;
use crate::client::{Access, Client, with_client};
use crate::failure::{Failure, complain};
use crate::progress::Meter;
use crate::screen::Screen;
use crate::words::since_ms;

/// Take in sessions: of coding agents, and from files.
///
/// Alone it looks for the agents on this machine, shows what they have, and asks. Only what is new is read, an agent's files are never
/// changed, and nothing that you did here is overwritten. A file can be an agent's own, an OPA archive, a session log, or a context of the
/// Open Context Protocol; its first bytes tell. Sessions have ids that are always the same, so the same thing twice changes nothing.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImportArgs {
    /// Agents (codex, claude, ...), files or folders; - is standard input [default: every agent that is found]
    #[arg(value_name = "WHAT")]
    what: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Change nothing, and tell what would be done
    #[arg(long)]
    dry_run: bool,
    /// Show what there is, and read nothing
    #[arg(long, conflicts_with_all = ["dry_run", "follow"])]
    list: bool,
    /// Only agents' sessions that changed since: 7d, 12h, or a date such as 2026-01-31
    #[arg(long, value_name = "WHEN", value_parser = since_ms)]
    since: Option<i64>,
    /// Keep the files as they are, too: attached to their sessions, each content once
    #[arg(long)]
    keep_original: bool,
    /// Go on taking what running agents write, until stopped
    #[arg(long, conflicts_with = "dry_run")]
    follow: bool,
    /// Read everything anew, also sessions that were deleted here
    #[arg(long)]
    again: bool,
}

const EXAMPLES: &str = "\
Examples:
  banyan import                              find the agents on this machine, show, ask, take
  banyan import codex claude --since 30d
  banyan import --yes --follow               and keep up with them
  banyan import ~/backup/.codex rollout.jsonl
  banyan import session.opa session.jsonl ~/.ocp/sessions/*.json
  banyan export s_0199 --to session-log | banyan import --data elsewhere -";

/// What was named.
#[derive(Default)]
struct Named {
    agents: Vec<&'static dyn Agent>,
    /// Agents' own files and folders.
    places: Vec<Place>,
    /// Whatever else.
    files: Vec<PathBuf>,
}

impl Named {
    fn of(what: &[String]) -> Self {
        let mut named = Self::default();
        if what.is_empty() {
            named.agents = AGENTS.to_vec();
        }
        for word in what {
            let path = PathBuf::from(word);
            match agent(word) {
                Some(agent) => named.agents.push(agent),
                None if word == "-" => named.files.push(path),
                None => match recognise(&std::path::absolute(&path).unwrap_or_else(|_| path.clone())) {
                    places if places.is_empty() => named.files.push(path),
                    places => named.places.extend(places),
                },
            }
        }
        named
    }

    /// The agents' places that are there now.
    fn places(&self, env: &Env) -> Vec<Place> {
        let mut places = homes(&self.agents, env);
        places.extend(self.places.iter().cloned());
        places
    }
}

pub(crate) fn run(args: &ImportArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let named = Named::of(&args.what);
    let of_agents = !named.agents.is_empty() || !named.places.is_empty();
    let mut globals = globals.clone();
    if of_agents && globals.durability.is_none() {
        // Much at once: it is flushed before it is noted as taken, and read again if it never was.
        globals.durability = Some(DurabilityArg::Buffered);
    }
    let access = if args.dry_run || args.list { Access::Existing } else { Access::Create };
    with_client(&globals, access, |client| {
        let mode = if args.dry_run { Mode::DryRun } else { Mode::Write };
        if !args.list {
            named.files.iter().try_for_each(|path| import_file::run(client, path, mode, &globals, screen))?;
        }
        match of_agents {
            true => import(args, &named, client, &globals, screen),
            false => Ok(()),
        }
    })
}

fn import(
    args: &ImportArgs,
    named: &Named,
    client: &dyn Client,
    globals: &Globals,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let env = Env::of_process();
    let mut ledger = Ledger::open(&client.ledger()?);
    // The ledger of a directory lies in it. That of a server does not, and may have outlived what the server had.
    let is_elsewhere = matches!(globals.target()?, Target::Server(_));
    if is_elsewhere && is_of_another_store(&ledger, client)? {
        ledger.forget();
    }
    if args.dry_run || args.list {
        ledger = ledger.read_only();
    }
    let ledger = Mutex::new(ledger);
    let mut found = survey(&named.places(&env), &lock(&ledger), args.since);
    found.retain(|found| !found.sources.is_empty() || found.problem.is_some());
    if args.list {
        return list(&found, globals, screen);
    }
    if found.is_empty() && !args.follow && !globals.json {
        complain("No session of an agent was found.");
        return Ok(());
    }
    if args.what.is_empty() && !globals.json && !may_go_on(args, &found, globals, screen)? {
        return Ok(());
    }
    let how = How { dry_run: args.dry_run, again: args.again, keep_original: args.keep_original };
    take(client, &ledger, &found, how, globals, screen)?;
    if !args.follow {
        return Ok(());
    }
    screen.flush()?;
    complain("Following. Press Ctrl-C to stop.");
    let places = || named.places(&env);
    let follow =
        Follow { client, ledger: &ledger, places: &places, since: args.since, how: How { again: false, ..how } };
    follow.run(&found, &mut |report| {
        match globals.json {
            true => screen.json(&tell::report(&report))?,
            false => tell::live(&report, screen)?,
        }
        screen.flush()
    })
}

/// A ledger whose sessions are all gone belongs to a store that is not there any more.
fn is_of_another_store(ledger: &Ledger, client: &dyn Client) -> Result<bool, Failure> {
    let some = ledger.some_sessions(3);
    for session_id in &some {
        if ask(client, &GetRequest { session_id: session_id.clone() })?.is_some() {
            return Ok(false);
        }
    }
    Ok(!some.is_empty())
}

fn list(found: &[Found], globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    match globals.json {
        true => found.iter().try_for_each(|found| screen.json(&tell::found(found))),
        false => tell::table(found, screen),
    }
}

/// Shows what was found, and asks where a person can answer.
fn may_go_on(args: &ImportArgs, found: &[Found], globals: &Globals, screen: &mut Screen) -> Result<bool, Failure> {
    tell::table(found, screen)?;
    screen.flush()?;
    let mut sources = found.iter().flat_map(|found| &found.sources);
    let is_news = sources.any(|(_, news)| *news != News::None || args.again);
    if args.yes || args.dry_run || args.follow || !is_news {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        complain(&format!("Nothing was taken. To take it: {} import --yes", globals.prompt()));
        return Ok(false);
    }
    let mut answer = String::new();
    let _ = write!(std::io::stderr(), "Take them into the store? [Y/n] ");
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes") && !answer.is_empty())
}

fn take(
    client: &dyn Client,
    ledger: &Mutex<Ledger>,
    found: &[Found],
    how: How,
    globals: &Globals,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let mut jobs = Vec::new();
    let mut named = BTreeSet::new();
    for found in found {
        let news = found.sources.iter().filter(|(_, news)| *news != News::None || how.again);
        for (source, _) in news.filter(|(source, _)| named.insert((source.path.clone(), source.key.clone()))) {
            let known = lock(ledger).get(source).filter(|_| !how.again).cloned().unwrap_or_else(Known::default);
            let bytes = bytes_of(source).unwrap_or_default();
            jobs.push(Job { agent: found.place.agent, source: source.clone(), bytes, known });
        }
    }
    let meter = Meter::new(jobs.iter().map(|job| job.bytes).sum());
    let mut summary = Summary::default();
    let mut tell = |report: Report| {
        if globals.json {
            screen.json(&tell::report(&report))?;
        }
        summary.add(report);
        Ok(())
    };
    let mut unread = found.iter().filter_map(|found| Some(Report::of_place(&found.place, found.problem.clone()?)));
    let taken = unread
        .try_for_each(&mut tell)
        .and_then(|()| take_all(client, ledger, jobs, how, &|bytes| meter.add(bytes), &mut tell));
    meter.end();
    taken?;
    match globals.json {
        true => screen.json(&summary.json(how.dry_run)),
        false => summary.tell(how.dry_run, screen),
    }
}
