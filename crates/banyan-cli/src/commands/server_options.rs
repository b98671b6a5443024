//! The flags that set how a server behaves. They come after the file and the environment, and win over both.

use std::path::PathBuf;

use banyan_server::config::{Config, Sources};
use clap::Args;

use crate::args::Globals;
use crate::data_dir;
use crate::failure::Failure;

// Not a doc comment, which would become the text of the commands that take these flags.
// How a server behaves. `banyan config` lists every setting; --set sets any of them.
#[derive(Args)]
pub(crate) struct ServerOptions {
    /// The file of settings, in TOML [default: $BANYAN_CONFIG, then the platform's place for settings]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The address to listen on, past loopback only with a key; port 0 takes any that is free [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The certificate to show, in PEM, to speak TLS
    #[arg(long, value_name = "FILE")]
    tls_certificate: Option<PathBuf>,
    /// The certificate's private key, in PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Web pages from these origins may call the server from a browser, `*` being all
    #[arg(long, value_name = "ORIGINS")]
    cors_origins: Option<String>,
    /// The iii engine to join as the worker session-manager, such as ws://127.0.0.1:49134
    #[arg(long, value_name = "URL")]
    iii: Option<String>,
    /// Join the engine also when the directory has keys, which an engine does not check: everyone on its bus may do everything
    #[arg(long)]
    iii_open: bool,
    /// Be a small bus for iii SDKs at this address, for when there is no engine
    #[arg(long, value_name = "ADDRESS")]
    iii_listen: Option<String>,
    /// What to log: error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
    /// Any other setting, such as limits.connections=100; give it again for more
    #[arg(long, value_name = "SETTING=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
}

impl ServerOptions {
    /// Puts the file, the environment and the flags together. The data directory is always known afterwards.
    pub(super) fn load(&self, globals: &Globals) -> Result<(Config, PathBuf), Failure> {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let mut sources = Sources::from_environment()
            .file(self.config.clone())
            .flag("data", "--data", path(&globals.data))
            .flag("durability", "--durability", globals.durability.map(|durability| durability.as_str()))
            .flag("listen", "--listen", self.listen.as_ref())
            .flag("tls.certificate", "--tls-certificate", path(&self.tls_certificate))
            .flag("tls.key", "--tls-key", path(&self.tls_key))
            .flag("cors_origins", "--cors-origins", self.cors_origins.as_ref())
            .flag("iii.url", "--iii", self.iii.as_ref())
            .flag("iii.open", "--iii-open", self.iii_open.then_some("true"))
            .flag("iii.listen", "--iii-listen", self.iii_listen.as_ref())
            .flag("log.level", "--log", self.log.as_ref());
        for (key, value) in &self.set {
            sources = sources.flag(key, "--set", Some(value));
        }
        let mut config = Config::load(&sources).map_err(|error| Failure::usage(error.to_string()))?;
        let dir = config.data.clone().map_or_else(data_dir::platform, Ok)?;
        if let Some(origin) = config.origins.iter_mut().find(|origin| origin.key == "data") {
            origin.value = dir.display().to_string();
        }
        Ok((config, dir))
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) =
        text.split_once('=').ok_or("write it as SETTING=VALUE, for example limits.connections=100")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}
