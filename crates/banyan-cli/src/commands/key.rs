//! `banyan key`: who may call a server.

use banyan::model::Object;
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};

use super::key_ring::{KeyList, KeyRing, Refused};
use crate::args::{Globals, label, labels};
use crate::failure::{Failure, complain};
use crate::screen::{Screen, Style};
use crate::words::{ago, clip, one_line, width};

/// Manage API keys.
///
/// Keys belong to a data directory and can be changed while a server runs on it, which notices. With --url the server
/// itself is asked, with a key that has no scope and may write. Until the first key is made, the server takes everyone on its
/// own machine for its owner and cannot be reached from another. From then on it admits holders of keys only, also when the
/// last key is removed or the key file is lost, until a new key is made or `banyan key reset --open` opens the directory again.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    command: KeyCommand,
}

const EXAMPLES: &str = "\
Examples:
  banyan key create --name laptop
  banyan key create --name ada --scope owner=u_1 --rate 50
  KEY=$(banyan key create --name ci --read-only --quiet)
  banyan key ls
  banyan key rm ci";

#[derive(Subcommand)]
enum KeyCommand {
    /// Make a key. It is shown this once; only a hash of it is kept
    Create(CreateArgs),
    /// List the keys, without their secrets, and those that are refused. With --json, one key a line
    Ls,
    /// Open a directory whose keys are gone to everyone on this machine
    Reset {
        /// Confirms that everyone on this machine may do everything
        #[arg(long, required = true)]
        open: bool,
    },
    /// Remove a key; who uses it is shut out at once
    Rm {
        /// The key's id, or its name when no other has it
        #[arg(value_name = "ID|NAME")]
        which: String,
    },
}

#[derive(Args)]
struct CreateArgs {
    /// What to call it
    #[arg(long)]
    name: String,
    /// Only sessions with this label in their metadata; sessions that it makes get the label. Give it again for more
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    scope: Vec<(String, Value)>,
    /// It may look, and change nothing
    #[arg(long)]
    read_only: bool,
    /// The most requests a second [default: the server's own limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Print the key and nothing else
    #[arg(long, short)]
    quiet: bool,
}

/// A key as it is listed.
#[derive(Deserialize)]
struct Listed {
    id: String,
    name: String,
    #[serde(default)]
    scope: Object,
    #[serde(default)]
    read_only: bool,
    requests_per_second: Option<u32>,
    created_at: i64,
}

pub(crate) fn run(args: &KeyArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let ring = KeyRing::of(globals)?;
    match &args.command {
        KeyCommand::Create(args) => create(args, &ring, globals, screen),
        KeyCommand::Ls => list(&ring, globals, screen),
        KeyCommand::Rm { which } => remove(which, &ring, globals, screen),
        KeyCommand::Reset { .. } => reset(&ring, globals, screen),
    }
}

fn create(args: &CreateArgs, ring: &KeyRing, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let scope = labels(&args.scope)?.unwrap_or_default();
    let mut new = json!({"name": args.name, "scope": scope, "read_only": args.read_only});
    if let Some(rate) = args.rate {
        new["requests_per_second"] = rate.into();
    }
    let made = ring.create(&new)?;
    if globals.json {
        return screen.json(&made);
    }
    let secret = made["key"].as_str().unwrap_or_default();
    screen.line(secret)?;
    screen.flush()?;
    if !args.quiet {
        let key = read(&made)?;
        complain(&format!("Key “{}” (id {}) may {}.", one_line(&key.name), key.id, rights(&key)));
        complain("It is shown this once. Pass it with --key or BANYAN_KEY, or as `Authorization: Bearer KEY`.");
    }
    Ok(())
}

fn list(ring: &KeyRing, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let KeyList { keys, refused } = ring.all()?;
    if globals.json {
        keys.iter().try_for_each(|key| screen.json(key))?;
        let line = |Refused { id, reason }: &Refused| json!({"id": id, "refused": reason});
        return refused.iter().try_for_each(|key| screen.json(&line(key)));
    }
    for Refused { id, reason } in &refused {
        complain(&format!("Refused {}: {}.", one_line(id), one_line(reason)));
    }
    if let Some(reason) = ring.closed() {
        complain(&format!("A server refuses every call: {reason}."));
        complain(&format!("  Make a key:   {} key create --name NAME", globals.prompt()));
        complain(&format!("  Or open it:   {} key reset --open", globals.prompt()));
        return Ok(());
    }
    if keys.is_empty() && refused.is_empty() {
        complain("There are no keys: only this machine can reach a server, and everyone on it may do everything.");
        complain(&format!("  Make one:  {} key create --name NAME", globals.prompt()));
        return Ok(());
    }
    let keys = keys.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<String> = keys.iter().map(|key| clip(&one_line(&key.name), 32)).collect();
    let widest = names.iter().map(|name| width(name)).max().unwrap_or(0).max(4);
    let head = format!("{:8}  {:widest$}  {:13}  MAY", "ID", "NAME", "MADE");
    screen.line(&screen.paint(Style::Aside, &head))?;
    for (key, name) in keys.iter().zip(names) {
        let pad = " ".repeat(widest.saturating_sub(width(&name)));
        let line = format!("{:8}  {name}{pad}  {:13}  {}", one_line(&key.id), ago(key.created_at), rights(key));
        screen.line(&clip(&line, screen.columns().unwrap_or(usize::MAX)))?;
    }
    Ok(())
}

fn remove(which: &str, ring: &KeyRing, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let KeyList { keys, refused } = ring.all()?;
    if refused.iter().any(|key| key.id == which) {
        ring.remove(which)?;
        removed(which, None, globals, screen)?;
        return if keys.is_empty() { warn_closed(globals, screen) } else { Ok(()) };
    }
    let keys = keys.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let by_id = keys.iter().find(|key| key.id == which);
    let mut by_name = keys.iter().filter(|key| key.name == which);
    let key = match (by_id, by_name.next(), by_name.next()) {
        (Some(key), ..) | (None, Some(key), None) => key,
        (None, None, _) => {
            let message = format!("there is no key `{which}`");
            return Err(Failure::refused("key/not_found", message).next("banyan key ls"));
        }
        (None, Some(_), Some(_)) => {
            let message = format!("several keys are called `{which}`; remove them by id");
            return Err(Failure::refused("key/ambiguous", message).next("banyan key ls"));
        }
    };
    ring.remove(&key.id)?;
    removed(&key.id, Some(&key.name), globals, screen)?;
    if keys.len() == 1 { warn_closed(globals, screen) } else { Ok(()) }
}

fn removed(id: &str, name: Option<&str>, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    match (globals.json, name) {
        (true, _) => screen.json(&json!({"id": id, "removed": true})),
        (false, Some(name)) => screen.line(&format!("Removed {}  {}", one_line(id), one_line(name))),
        (false, None) => screen.line(&format!("Removed {}", one_line(id))),
    }
}

/// Says what follows when the last key is gone.
fn warn_closed(globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    screen.flush()?;
    complain("That was the last key. A server refuses every call until there is a new key, or until");
    complain(&format!("`{} key reset --open` opens the directory to everyone on this machine.", globals.prompt()));
    Ok(())
}

fn reset(ring: &KeyRing, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let changed = ring.reset_to_open()?;
    match (globals.json, changed) {
        (true, _) => screen.json(&json!({"open": true, "changed": changed})),
        (false, true) => screen.line("Opened: everyone on this machine may do everything."),
        (false, false) => screen.line("It is open already: everyone on this machine may do everything."),
    }
}

fn read(key: &Value) -> Result<Listed, Failure> {
    Listed::deserialize(key).map_err(|error| Failure::storage(format!("a key could not be read: {error}")))
}

/// What a key may do, in a few words.
fn rights(key: &Listed) -> String {
    let what = if key.read_only { "read" } else { "read and write" };
    let scope: Vec<String> = key.scope.iter().map(|(name, value)| one_line(&format!("{name}={value}"))).collect();
    let which = match scope.is_empty() {
        true => "all sessions".to_owned(),
        false => format!("sessions with {}", scope.join(", ")),
    };
    let rate = key.requests_per_second.map(|rate| format!(", {rate} requests a second")).unwrap_or_default();
    format!("{what} {which}{rate}")
}
