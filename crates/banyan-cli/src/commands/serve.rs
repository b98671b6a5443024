//! `banyan serve`: a data directory over HTTP.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::Path;
use std::process;
use std::thread;

use banyan::{Banyan, Options};
use banyan_server::config::Config;
use banyan_server::{Reach, Running, ServeError};
use clap::Args;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use super::bus::OnBuses;
use super::server_options::ServerOptions;
use crate::args::{Globals, quoted};
use crate::failure::{Failure, complain};
use crate::notice::Notice;
use crate::progress::Logged;
use crate::screen::{Screen, Style};
use crate::signals::on_stop;

/// Serve a data directory over HTTP.
///
/// The directory is made when there is none. Only this machine can reach the server, unless --listen says otherwise, which
/// needs a key (`banyan key create`). SIGTERM and SIGINT stop it: open calls finish, streams end where they can be resumed,
/// everything is on disk.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    options: ServerOptions,
}

const EXAMPLES: &str = "\
Examples:
  banyan serve
  banyan serve --data ./sessions --listen 127.0.0.1:8000
  banyan serve --listen 0.0.0.0:7420 --tls-certificate cert.pem --tls-key key.pem
  banyan serve --iii-listen 127.0.0.1:49134          for iii SDKs, with nothing else installed
  banyan serve --config banyan.toml --set limits.requests_per_second=100

`banyan config` lists every setting, its value, and where that came from.";

pub(crate) fn run(args: &ServeArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    if globals.url.is_some() {
        return Err(Failure::usage("serve opens a data directory; leave --url out, or use --listen"));
    }
    let (config, dir) = args.options.load(globals)?;
    start_log(&config)?;
    let options = Options {
        durability: config.durability,
        low_mark: config.low_mark,
        may_block: |work| tokio::task::block_in_place(work),
        progress: Box::new(Logged::default()),
        ..config.store.options()
    };
    let store = Banyan::open(&dir, options).map_err(|error| Failure::opening(&dir, error))?;
    let served = serve(&store, &dir, config, globals, screen);
    // Whatever came of it, the session files are to hold everything.
    let closed = store.close();
    served.and(closed.map_err(Failure::from))
}

/// What the server says about itself while it runs goes to standard error.
pub(super) fn start_log(config: &Config) -> Result<(), Failure> {
    let log = config.logs.subscriber(io::stderr().is_terminal(), io::stderr);
    tracing::subscriber::set_global_default(log)
        .map_err(|error| Failure::trouble("serve/failed", format!("the log cannot be started: {error}")))?;
    for name in &config.unknown_variables {
        tracing::warn!("{name} is set, and means nothing to Banyan");
    }
    Ok(())
}

/// Serves until the process is asked to stop.
fn serve(
    store: &Banyan,
    dir: &Path,
    config: Config,
    globals: &Globals,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let Config { settings, bus, .. } = config;
    let runtime = runtime()?;
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let mut stop = stop_signal()?;
    let running = runtime
        .block_on(banyan_server::start(store.clone(), dir, settings))
        .map_err(|error| not_started(error, dir))?;
    let url = url(scheme, &running);
    // Who finds the directory locked is told where the server is; without the note, only its pid.
    let notice = Notice::leave(dir, &url);
    let buses = match runtime.block_on(OnBuses::join(&bus, store, dir, &running)) {
        Ok(buses) => buses,
        Err(failure) => {
            runtime.block_on(running.stop());
            return Err(failure);
        }
    };
    if announce(&url, dir, &running.keys().reach(), &buses, globals, screen).is_err() {
        tracing::info!("nobody reads where the server is; it serves all the same");
        screen.forget();
    }
    runtime.block_on(async {
        let _ = stop.wait_for(|stop| *stop).await;
        tracing::info!("stopping");
        tokio::join!(buses.leave(), running.stop());
    });
    drop(notice);
    // What is left are connections that did not end in time.
    runtime.shutdown_background();
    Ok(())
}

/// As many threads as cores: more would only take turns. What may keep one for long lets another take its place.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let built = Builder::new_multi_thread().worker_threads(cores.max(2)).enable_all().build();
    built.map_err(|error| Failure::trouble("serve/failed", format!("threads cannot be started: {error}")))
}

/// Turns true when the process is asked to stop. Whoever asks twice does not want to wait.
pub(super) fn stop_signal() -> Result<watch::Receiver<bool>, Failure> {
    let (sender, receiver) = watch::channel(false);
    on_stop(move || {
        if sender.send_replace(true) {
            complain("banyan: stopped at once; what was answered is safe");
            process::exit(1);
        }
    })?;
    Ok(receiver)
}

fn not_started(error: ServeError, dir: &Path) -> Failure {
    let message = error.to_string();
    match error {
        ServeError::Unprotected(address) => Failure::usage(format!(
            "{address} can be reached from other machines, and there is no key yet; make one with `banyan key create --data {} --name NAME`, or listen on 127.0.0.1",
            quoted(&dir.display().to_string())
        )),
        ServeError::Listen { .. } => Failure::trouble("serve/listen", message),
        ServeError::Tls(_) => Failure::trouble("serve/tls", message),
        ServeError::Traces(_) => Failure::trouble("serve/traces", message),
    }
}

/// Where this machine reaches the server.
fn url(scheme: &str, running: &Running) -> String {
    let mut address = running.address();
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("{scheme}://{address}")
}

/// Who can reach the server, in a few words.
fn reached_by(reach: &Reach, dir: &Path) -> String {
    match reach {
        Reach::Anyone => "anyone on this machine".to_owned(),
        Reach::Holders(1) => "the holder of 1 key".to_owned(),
        Reach::Holders(count) => format!("holders of {count} keys"),
        Reach::NoOne(reason) => {
            let dir = quoted(&dir.display().to_string());
            format!(
                "no one: {reason}; run `banyan key create --data {dir} --name NAME` or `banyan key reset --open --data {dir}`"
            )
        }
    }
}

fn announce(
    url: &str,
    dir: &Path,
    reach: &Reach,
    buses: &OnBuses,
    globals: &Globals,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let bus = buses.address.map(|address| format!("ws://{address}"));
    let mut reached_by = reached_by(reach, dir);
    if let Some(engine) = &buses.engine {
        reached_by.push_str(&format!(", and to everyone on the bus of {engine}"));
    }
    if globals.json {
        let mut told = json!({"url": url, "data": dir, "pid": process::id(), "reached_by": reached_by});
        if let Some(bus) = bus {
            told["iii"] = bus.into();
        }
        screen.json(&told)?;
        return screen.flush();
    }
    let key = match reach {
        Reach::Anyone => "",
        Reach::Holders(_) | Reach::NoOne(_) => " -H \"Authorization: Bearer $BANYAN_KEY\"",
    };
    let try_it = format!("curl -s {url}/v1/call/session::create{key} -d '{{\"title\":\"Hello\"}}'");
    screen.line(&format!(
        "{} serves {} to {reached_by}",
        screen.paint(Style::Heading, url),
        quoted(&dir.display().to_string()),
    ))?;
    screen.line(&format!("  Try:   {try_it}"))?;
    screen.line(&format!("  Docs:  {url}/docs"))?;
    if let Some(bus) = bus {
        screen.line(&format!(
            "  Bus:   {bus} for iii SDKs: the functions session::* and their triggers, and whatever"
        ))?;
        screen.line(
            "         the workers that connect offer. It is no engine: there are no queues, streams or cron.",
        )?;
    }
    screen.flush()
}
