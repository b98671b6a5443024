//! `banyan worker`: the worker session-manager of an iii engine.

use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;

use banyan::model::Error;
use banyan::{Banyan, OpenError, Options};
use banyan_iii::link::Engine;
use banyan_iii::worker::{OpenStore, StartError, Storage, Worker, WorkerConfig, WorkerOptions, manifest};
use banyan_server::KeyStore;
use banyan_server::config::{BusAccess, Config, Sources};
use clap::Args;
use serde_json::{Value, json};

use super::bus::must_be_open;
use super::serve::{runtime, start_log, stop_signal};
use crate::args::{DurabilityArg, Globals};
use crate::data_dir::data_dir;
use crate::failure::Failure;
use crate::progress::Logged;
use crate::screen::{Screen, Style};

/// Join an iii engine as its worker session-manager.
///
/// Whoever is on the engine's bus finds the functions `session::*` and hears of every change by the triggers `session::*`. Where
/// sessions are stored is in the engine's configuration, under the id session-manager, and can be changed while the worker
/// runs. SIGTERM and SIGINT stop it; an engine that goes away is waited for.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WorkerArgs {
    /// A YAML file with the settings to begin with, if the engine has none yet
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Serve a directory with keys, too, which an engine does not check: everyone on its bus may do everything
    #[arg(long)]
    iii_open: bool,
    /// Print what an installer needs to know, and do nothing else
    #[arg(long)]
    manifest: bool,
    /// What to log: error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  banyan worker                                    the engine at $III_URL, or at ws://127.0.0.1:49134
  banyan worker --url ws://engine:49134 --config session-manager.yaml
  banyan worker --data ./sessions                  begin with this directory, if the engine has no settings yet
  banyan worker --manifest

The settings, with what they begin as:
  adapter: {name: fs, config: {data_dir: ~/.iii/data/session-manager}}
           {name: bridge, config: {url: ws://main:49134, timeout_ms: 5000}} stores with another engine's session-manager
  default_list_limit: 50
  max_list_limit: 500

`banyan serve --iii URL` serves one directory over HTTP and on the bus.";

/// Where an engine usually is.
const USUAL: &str = "ws://127.0.0.1:49134";

pub(crate) fn run(args: &WorkerArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    if args.manifest {
        screen.line(&serde_json::to_string_pretty(&manifest()).unwrap_or_default())?;
        return screen.flush();
    }
    let sources = Sources::from_environment().flag("log.level", "--log", args.log.as_ref());
    let config = Config::load(&sources).map_err(|error| Failure::usage(error.to_string()))?;
    start_log(&config)?;
    let url = globals.url.clone().or_else(|| std::env::var("III_URL").ok()).filter(|url| !url.trim().is_empty());
    let url = url.unwrap_or_else(|| USUAL.to_owned());
    if !url.starts_with("ws://") {
        return Err(Failure::usage(format!("an engine has an address such as {USUAL}, and `{url}` is not one")));
    }
    let bus = if args.iii_open { BusAccess::Open } else { BusAccess::Closed };
    let options = WorkerOptions {
        engine: Engine::Url(url.clone()),
        storage: Storage::Configured {
            open: open_store(globals.durability.unwrap_or_default(), bus),
            bridges_in: data_dir(globals).ok(),
        },
        seed: seed(args, globals),
    };
    let runtime = runtime()?;
    let mut stop = stop_signal()?;
    let stopped = stop.clone();
    runtime.block_on(async {
        let worker = match Worker::start(options, stopped).await {
            Ok(worker) => worker,
            Err(StartError::Stopped) => return Ok(()),
            Err(error) => return Err(Failure::trouble("worker/failed", error.to_string())),
        };
        announce(&url, globals, screen)?;
        let ended = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => Ok(()),
            why = worker.rejected() => Err(Failure::trouble("worker/rejected", why)),
        };
        tracing::info!("stopping");
        worker.stop().await;
        ended
    })
}

/// The settings to begin with. A file that cannot be used is said so, and passed over.
fn seed(args: &WorkerArgs, globals: &Globals) -> Option<Value> {
    if let Some(path) = &args.config {
        match WorkerConfig::seed(path) {
            Ok(seed) => return Some(seed),
            Err(error) => tracing::warn!(file = %path.display(), %error, "the file of settings is passed over"),
        }
    }
    let dir = globals.data.as_ref()?;
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
    Some(json!({"adapter": {"name": "fs", "config": {"data_dir": dir}}}))
}

fn open_store(durability: DurabilityArg, bus: BusAccess) -> OpenStore {
    Arc::new(move |dir: &Path| {
        if bus == BusAccess::Closed {
            let refused = |reason| OpenError::Session(Error::forbidden(reason));
            must_be_open(&KeyStore::open(dir), dir, "worker").map_err(refused)?;
        }
        let options = Options {
            durability: durability.into(),
            may_block: |work| tokio::task::block_in_place(work),
            progress: Box::new(Logged::default()),
            ..Options::default()
        };
        Banyan::open(dir, options)
    })
}

fn announce(url: &str, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    if globals.json {
        screen.json(&json!({"engine": url, "worker": "session-manager", "pid": process::id()}))?;
    } else {
        screen.line(&format!("session-manager is on the bus of {}", screen.paint(Style::Heading, url)))?;
    }
    screen.flush()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use banyan_server::NewKey;

    use super::*;

    #[test]
    fn a_directory_with_keys_is_opened_for_an_engine_only_when_that_is_allowed() {
        let dir = tempfile::tempdir().unwrap();
        let open = |bus| open_store(DurabilityArg::default(), bus)(dir.path());
        open(BusAccess::Closed).unwrap().close().unwrap();
        let new = NewKey { name: "ops".to_owned(), ..NewKey::default() };
        KeyStore::open(dir.path()).create(new, 0).unwrap();
        let refused = open(BusAccess::Closed).err().unwrap().to_string();
        assert!(refused.contains("has keys") && refused.contains("`banyan worker`"), "{refused}");
        open(BusAccess::Open).unwrap().close().unwrap();
    }
}
