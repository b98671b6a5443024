//! `banyan serve`: a data directory over HTTP.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process;
use std::thread;

use banyan::{Banyan, Options};
use banyan_server::{Keys, Limits, Running, ServeError, Settings, Tls};
use clap::Args;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::args::{Globals, quoted};
use crate::data_dir::data_dir;
use crate::failure::{Failure, complain};
use crate::logging::{self, Level};
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
    /// The address to listen on; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS", env = "BANYAN_LISTEN", default_value = "127.0.0.1:7420")]
    listen: SocketAddr,
    /// The certificate to show, in PEM, to speak TLS
    #[arg(long, value_name = "FILE", env = "BANYAN_TLS_CERT", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM
    #[arg(long, value_name = "FILE", env = "BANYAN_TLS_KEY", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Web pages from this origin may call the server from a browser; give it again for more, `*` for all
    #[arg(long = "cors-origin", value_name = "ORIGIN", env = "BANYAN_CORS_ORIGINS", value_delimiter = ',')]
    cors_origins: Vec<String>,
    /// A name, besides those of loopback, that a server without keys may be called by; give it again for more
    #[arg(long = "host", value_name = "NAME", env = "BANYAN_HOSTS", value_delimiter = ',')]
    hosts: Vec<String>,
    /// The most bytes of a request's body
    #[arg(long, value_name = "BYTES", env = "BANYAN_MAX_BODY", default_value_t = Limits::default().body_bytes)]
    max_body: usize,
    /// The most connections at a time
    #[arg(long, value_name = "N", env = "BANYAN_MAX_CONNECTIONS", default_value_t = Limits::default().connections)]
    max_connections: usize,
    /// The most subscriptions at a time
    #[arg(long, value_name = "N", env = "BANYAN_MAX_SUBSCRIPTIONS")]
    #[arg(default_value_t = Limits::default().subscriptions)]
    max_subscriptions: usize,
    /// The most requests a second of one key [default: no limit]
    #[arg(long, value_name = "N", env = "BANYAN_RATE", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// How much to log
    #[arg(long, value_name = "LEVEL", env = "BANYAN_LOG", value_enum, default_value = "info")]
    log: Level,
}

const EXAMPLES: &str = "\
Examples:
  banyan serve
  banyan serve --data ./sessions --listen 127.0.0.1:8000
  banyan serve --listen 0.0.0.0:7420 --tls-cert cert.pem --tls-key key.pem";

impl ServeArgs {
    fn settings(&self) -> Settings {
        let tls = self.tls_cert.clone().zip(self.tls_key.clone());
        Settings {
            listen: self.listen,
            tls: tls.map(|(certificate, key)| Tls { certificate, key }),
            cors_origins: self.cors_origins.clone(),
            hosts: self.hosts.clone(),
            limits: Limits {
                body_bytes: self.max_body,
                connections: self.max_connections,
                subscriptions: self.max_subscriptions,
                requests_per_second: self.rate,
                ..Limits::default()
            },
            ..Settings::default()
        }
    }
}

pub(crate) fn run(args: &ServeArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    if globals.url.is_some() {
        return Err(Failure::usage("serve opens a data directory; leave --url out, or use --listen"));
    }
    let dir = data_dir(globals)?;
    logging::start(args.log)?;
    let options = Options {
        durability: globals.durability.into(),
        progress: Box::new(Logged::default()),
        ..Options::default()
    };
    let store = Banyan::open(&dir, options).map_err(|error| Failure::opening(&dir, error))?;
    let served = serve(&store, &dir, args.settings(), globals, screen);
    // Whatever came of it, the session files are to hold everything.
    let closed = store.close();
    served.and(closed.map_err(Failure::from))
}

/// Serves until the process is asked to stop.
fn serve(
    store: &Banyan,
    dir: &Path,
    settings: Settings,
    globals: &Globals,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let runtime = runtime()?;
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let mut stop = stop_signal()?;
    let running = runtime.block_on(banyan_server::start(store.clone(), dir, settings)).map_err(not_started)?;
    let url = url(scheme, &running);
    // Who finds the directory locked is told where the server is; without the note, only its pid.
    let notice = Notice::leave(dir, &url);
    announce(&url, dir, globals, screen)?;
    runtime.block_on(async {
        let _ = stop.wait_for(|stop| *stop).await;
        tracing::info!("stopping");
        running.stop().await;
    });
    drop(notice);
    // What is left are connections that did not end in time.
    runtime.shutdown_background();
    Ok(())
}

/// A few more threads than cores, for reads may wait for the disk.
fn runtime() -> Result<Runtime, Failure> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let built = Builder::new_multi_thread().worker_threads(cores + 4).enable_all().build();
    built.map_err(|error| Failure::trouble("serve/failed", format!("threads cannot be started: {error}")))
}

/// Turns true when the process is asked to stop. Whoever asks twice does not want to wait.
fn stop_signal() -> Result<watch::Receiver<bool>, Failure> {
    let (sender, receiver) = watch::channel(false);
    on_stop(move || {
        if sender.send_replace(true) {
            complain("banyan: stopped at once; what was answered is safe");
            process::exit(1);
        }
    })?;
    Ok(receiver)
}

fn not_started(error: ServeError) -> Failure {
    let message = error.to_string();
    match error {
        ServeError::Unprotected(_) => Failure::usage(message),
        ServeError::Listen { .. } => Failure::trouble("serve/listen", message),
        ServeError::Keys(_) => Failure::storage(message),
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

fn announce(url: &str, dir: &Path, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    if globals.json {
        screen.json(&json!({"url": url, "data": dir, "pid": process::id()}))?;
        return screen.flush();
    }
    let key = match Keys::open(dir).is_ok_and(|keys| !keys.none()) {
        true => " -H \"Authorization: Bearer $BANYAN_KEY\"",
        false => "",
    };
    let try_it = format!("curl -s {url}/v1/call/session::create{key} -d '{{\"title\":\"Hello\"}}'");
    screen.line(&format!(
        "{} serves {}",
        screen.paint(Style::Heading, url),
        quoted(&dir.display().to_string())
    ))?;
    screen.line(&format!("  Try:   {try_it}"))?;
    screen.line(&format!("  Docs:  {url}/docs"))?;
    screen.flush()
}
