//! The worker's configuration: where sessions are stored, and how large a page may be.

use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The worker's configuration, as the configuration worker keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerConfig {
    /// Where sessions are stored.
    pub adapter: Adapter,
    /// The page size of a call that names none.
    pub default_list_limit: usize,
    /// The largest page.
    pub max_list_limit: usize,
}

/// Where sessions are stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", content = "config", rename_all = "lowercase")]
pub enum Adapter {
    /// In a directory of this machine.
    Fs(FsConfig),
    /// With a main instance on another engine.
    Bridge(BridgeConfig),
}

/// A directory of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FsConfig {
    /// The directory; a `~` at the start is the home directory.
    pub data_dir: String,
}

/// A main instance on another engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BridgeConfig {
    /// The other engine's address.
    pub url: String,
    /// How long one call to the main instance may take.
    #[serde(default = "five_seconds")]
    pub timeout_ms: u64,
}

fn five_seconds() -> u64 {
    5000
}

/// Where session-manager keeps its sessions, too.
const DATA_DIR: &str = "~/.iii/data/session-manager";

impl Default for WorkerConfig {
    fn default() -> Self {
        Self { adapter: Adapter::default(), default_list_limit: 50, max_list_limit: 500 }
    }
}

impl Default for Adapter {
    fn default() -> Self {
        Self::Fs(FsConfig::default())
    }
}

impl Default for FsConfig {
    fn default() -> Self {
        Self { data_dir: DATA_DIR.to_owned() }
    }
}

impl FsConfig {
    /// The directory as the system knows it.
    pub fn path(&self) -> PathBuf {
        let home = || std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE")).map(PathBuf::from);
        match self.data_dir.strip_prefix('~') {
            Some("") => home().unwrap_or_else(|| PathBuf::from("~")),
            Some(rest) if rest.starts_with('/') => {
                home().map_or_else(|| PathBuf::from(&self.data_dir), |home| home.join(&rest[1..]))
            }
            _ => PathBuf::from(&self.data_dir),
        }
    }
}

impl WorkerConfig {
    /// Reads a stored value; null is the default.
    pub fn read(value: &Value) -> Result<Self, String> {
        if value.is_null() {
            return Ok(Self::default());
        }
        let config: Self = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
        config.checked()
    }

    fn checked(self) -> Result<Self, String> {
        match &self.adapter {
            _ if self.max_list_limit == 0 => {
                Err("max_list_limit is 0; no page could have anything in it".to_owned())
            }
            Adapter::Fs(fs) if fs.data_dir.trim().is_empty() => Err("adapter.config.data_dir is empty".to_owned()),
            Adapter::Bridge(bridge) if bridge.url.trim().is_empty() => {
                Err("adapter.config.url is empty".to_owned())
            }
            Adapter::Bridge(bridge) if bridge.timeout_ms == 0 => {
                Err("adapter.config.timeout_ms is 0; no call could be answered in that time".to_owned())
            }
            _ => Ok(self),
        }
    }

    /// Reads a file to start with: YAML, with `${NAME}` put in from the environment. `${NAME:default}` stays as it is, for the
    /// configuration worker to expand on each read.
    pub fn seed(path: &Path) -> Result<Value, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let value: Value = serde_saphyr::from_str(&expand(&text, |name| std::env::var(name).ok()))
            .map_err(|error| error.to_string())?;
        Ok(value)
    }

    /// The configuration as JSON.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// JSON Schema of the configuration. A console shows the adapters as a choice of two.
    pub fn schema() -> Value {
        let adapter = |name: &str, description: &str, config: Value, required: Value| {
            json!({
                "type": "object",
                "description": description,
                "properties": {"name": {"type": "string", "enum": [name]}, "config": config},
                "required": required,
                "additionalProperties": false
            })
        };
        let fs = json!({
            "type": "object",
            "properties": {"data_dir": {
                "type": "string",
                "default": DATA_DIR,
                "description": "The directory, with one file a session."
            }},
            "additionalProperties": false
        });
        let bridge = json!({
            "type": "object",
            "properties": {
                "url": {"type": "string", "description": "WebSocket address of the engine that the main instance is on."},
                "timeout_ms": {
                    "type": "integer", "format": "uint64", "minimum": 1, "default": 5000,
                    "description": "How long one call to the main instance may take."
                }
            },
            "required": ["url"],
            "additionalProperties": false
        });
        let limit = |default: usize, description: &str| json!({"type": "integer", "format": "uint", "minimum": 1, "default": default, "description": description});
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "WorkerConfig",
            "description": "Where sessions are stored, and how large a page may be. Every change applies without a restart.",
            "type": "object",
            "properties": {
                "adapter": {
                    "description": "Where sessions are stored.",
                    "oneOf": [
                        adapter("fs", "A directory of this machine.", fs, json!(["name", "config"])),
                        adapter("bridge", "A main instance on another engine.", bridge, json!(["name", "config"])),
                    ]
                },
                "default_list_limit": limit(50, "The page size of a call that names none."),
                "max_list_limit": limit(500, "The largest page."),
            },
            "additionalProperties": false,
            "example": Self::default().to_value(),
        })
    }
}

/// Puts in values of the environment for `${NAME}`. One that is not set is empty, and said so.
fn expand(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        expanded.push_str(before);
        let name = from[2..].split('}').next().filter(|name| from.len() > name.len() + 2);
        match name {
            Some(name) if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                expanded.push_str(&value(name).unwrap_or_else(|| {
                    tracing::warn!("the file of settings asks for ${{{name}}}, which is not set");
                    String::new()
                }));
                rest = &from[name.len() + 3..];
            }
            _ => {
                expanded.push_str("${");
                rest = &from[2..];
            }
        }
    }
    expanded.push_str(rest);
    expanded
}

/// Whether two addresses of engines lead to the same one, as far as can be told without asking: `localhost` and loopback
/// addresses are one, however they are written; a trailing slash and a query say nothing.
pub fn same_engine(one: &str, other: &str) -> bool {
    place(one) == place(other)
}

fn place(url: &str) -> (String, String, String, String) {
    let (scheme, rest) = url.trim().split_once("://").unwrap_or(("ws", url.trim()));
    let scheme = scheme.to_ascii_lowercase();
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_ascii_lowercase();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) && !port.is_empty() => {
            (host.to_owned(), port.to_owned())
        }
        _ => (authority.clone(), if scheme == "wss" { "443" } else { "80" }.to_owned()),
    };
    let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_owned();
    let loopback = host == "localhost"
        || host.ends_with(".localhost")
        || address(&host).is_some_and(|ip| ip.to_canonical().is_loopback() || ip.is_unspecified());
    let host = if loopback { "localhost".to_owned() } else { host };
    (scheme, host, port.trim_start_matches('0').to_owned(), path.trim_matches('/').to_owned())
}

/// The address that a host is, in any notation. A number may stand for one (`127.1`), and nobody need be asked for that.
fn address(host: &str) -> Option<IpAddr> {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_hex =
        |part: &str| part.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    let is_number = host.split('.').all(|part| is_digits(part) || is_hex(part));
    let number = || (host, 0).to_socket_addrs().ok()?.next().map(|found| found.ip());
    host.parse().ok().or_else(|| if is_number { number() } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_a_directory_and_reads_back_as_itself() {
        let config = WorkerConfig::default();
        assert_eq!(WorkerConfig::read(&config.to_value()), Ok(config.clone()));
        assert_eq!(WorkerConfig::read(&Value::Null), Ok(config));
    }

    #[test]
    fn a_bridge_needs_an_address_and_has_five_seconds() {
        let value = json!({"adapter": {"name": "bridge", "config": {"url": "ws://main:49134"}}});
        let Adapter::Bridge(bridge) = WorkerConfig::read(&value).expect("it is valid").adapter else { panic!() };
        assert_eq!(bridge, BridgeConfig { url: "ws://main:49134".into(), timeout_ms: 5000 });
        assert!(WorkerConfig::read(&json!({"adapter": {"name": "bridge", "config": {}}})).is_err());
    }

    #[test]
    fn what_nobody_knows_is_refused() {
        for value in [
            json!({"adaptor": {}}),
            json!({"adapter": {"name": "s3", "config": {}}}),
            json!({"adapter": {"name": "fs", "config": {"dir": "x"}}}),
            json!({"adapter": {"name": "fs", "config": {"data_dir": " "}}}),
            json!({"max_list_limit": 0}),
            json!({"default_list_limit": -1}),
            json!("fs"),
        ] {
            assert!(WorkerConfig::read(&value).is_err(), "{value}");
        }
    }

    #[test]
    fn names_of_the_environment_are_put_in_and_those_with_a_default_are_left() {
        let value = |name: &str| (name == "DIR").then(|| "/data".to_owned());
        assert_eq!(expand("a ${DIR}/x ${MISSING} ${V:d} ${", value), "a /data/x  ${V:d} ${");
    }

    #[test]
    fn one_engine_has_many_addresses() {
        let here = "ws://127.0.0.1:49134";
        for same in [
            "ws://localhost:49134",
            "ws://127.0.0.1:49134/",
            "WS://LOCALHOST:49134//",
            "ws://[::1]:49134",
            "ws://127.1:49134",
            "ws://2130706433:49134",
            "ws://0x7f.0.0.1:49134",
            "ws://127.0.0.1:49134/?worker=1",
            "ws://127.0.0.1:49134?worker=1",
        ] {
            assert!(same_engine(here, same), "{same}");
        }
        for other in [
            "ws://127.0.0.1:49135",
            "ws://main:49134",
            "ws://10.1:49134",
            "wss://127.0.0.1:49134",
            "ws://127.0.0.1:49134/other",
        ] {
            assert!(!same_engine(here, other), "{other}");
        }
        assert!(same_engine("ws://main", "ws://main:80/"));
    }
}
