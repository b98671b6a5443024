//! The keys of a configuration. One table says how each is read, shown and explained.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use banyan::Durability;

use super::units::{duration, duration_text, size, size_text};
use super::{Bus, BusAccess, StoreSettings};
use crate::logs::{Format, Logs};
use crate::settings::{Settings, Tls, Traces};

/// One key.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    /// A variable that others use for the same thing.
    pub(super) also: Option<&'static str>,
    pub(super) set: fn(&mut Draft, &Given<'_>) -> Result<(), String>,
    pub(super) get: fn(&Draft) -> String,
}

impl Key {
    /// The variable of the environment that sets it.
    pub(super) fn variable(&self) -> String {
        format!("BANYAN_{}", self.name.replace('.', "_").to_uppercase())
    }
}

/// A value as it was given.
pub(super) struct Given<'a> {
    pub(super) text: &'a str,
    /// The directory that a relative path starts in; the process's own when there is none.
    pub(super) beside: Option<&'a Path>,
}

impl<'a> Given<'a> {
    pub(super) fn said(text: &'a str) -> Self {
        Self { text, beside: None }
    }

    fn path(&self) -> Result<PathBuf, String> {
        match (self.text, self.beside) {
            ("", _) => Err("must name a file or directory".to_owned()),
            (text, Some(beside)) => Ok(beside.join(text)),
            (text, None) => Ok(PathBuf::from(text)),
        }
    }

    fn list(&self) -> Vec<String> {
        self.text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    fn hosts(&self) -> Result<Vec<String>, String> {
        let hosts = self.list();
        let is_name = |host: &&String| {
            host.parse::<IpAddr>().is_ok() || !host.contains(|c: char| c.is_whitespace() || ":/@[]?#".contains(c))
        };
        match hosts.iter().find(|host| !is_name(host)) {
            Some(host) => {
                Err(format!("`{host}` must be a name or an address alone, without scheme, port and brackets"))
            }
            None => Ok(hosts),
        }
    }

    fn count(&self) -> Result<usize, String> {
        let count =
            self.text.replace('_', "").parse().map_err(|_| format!("must be a number, not `{}`", self.text))?;
        if count == 0 { Err("must be more than 0".to_owned()) } else { Ok(count) }
    }
}

/// A configuration that is being put together.
pub(super) struct Draft {
    pub(super) settings: Settings,
    pub(super) data: Option<PathBuf>,
    pub(super) durability: Durability,
    pub(super) store: StoreSettings,
    pub(super) low_mark: Option<u64>,
    pub(super) logs: Logs,
    certificate: Option<PathBuf>,
    private_key: Option<PathBuf>,
    endpoint: Option<String>,
    service: String,
    pub(super) bus: Bus,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            data: None,
            durability: Durability::Synced,
            store: StoreSettings::default(),
            low_mark: None,
            logs: Logs::default(),
            certificate: None,
            private_key: None,
            endpoint: None,
            service: "banyan".to_owned(),
            bus: Bus::default(),
        }
    }
}

impl Draft {
    /// Puts together what takes two keys. What is missing is named by its key.
    pub(super) fn finish(mut self) -> Result<Self, (&'static str, String)> {
        self.settings.tls = match (self.certificate.clone(), self.private_key.clone()) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some(Tls { certificate, key }),
            (Some(_), None) => return Err(("tls.certificate", "needs `tls.key` beside it".to_owned())),
            (None, Some(_)) => return Err(("tls.key", "needs `tls.certificate` beside it".to_owned())),
        };
        let service = self.service.clone();
        self.settings.traces = self.endpoint.clone().map(|endpoint| Traces { endpoint, service });
        Ok(self)
    }
}

fn path_text(path: Option<&PathBuf>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

macro_rules! key {
    ($name:literal, $help:literal, $set:expr, $get:expr) => {
        key!($name, None, $help, $set, $get)
    };
    ($name:literal, $also:expr, $help:literal, $set:expr, $get:expr) => {
        Key { name: $name, help: $help, also: $also, set: $set, get: $get }
    };
}

macro_rules! size_key {
    ($name:literal, $help:literal, $field:ident) => {
        key!(
            $name,
            $help,
            |draft, given| {
                draft.settings.limits.$field = size(given.text)?;
                Ok(())
            },
            |draft| size_text(draft.settings.limits.$field)
        )
    };
}

macro_rules! store_size_key {
    ($name:literal, $help:literal, $field:ident) => {
        key!(
            $name,
            $help,
            |draft, given| {
                draft.store.$field = size(given.text)?;
                Ok(())
            },
            |draft| size_text(draft.store.$field)
        )
    };
}

macro_rules! count_key {
    ($name:literal, $help:literal, $field:ident) => {
        key!(
            $name,
            $help,
            |draft, given| {
                draft.settings.limits.$field = given.count()?;
                Ok(())
            },
            |draft| draft.settings.limits.$field.to_string()
        )
    };
}

macro_rules! duration_key {
    ($name:literal, $help:literal, $($field:ident).+) => {
        key!(
            $name,
            $help,
            |draft, given| {
                draft.settings.$($field).+ = duration(given.text)?;
                Ok(())
            },
            |draft| duration_text(draft.settings.$($field).+)
        )
    };
}

pub(super) const KEYS: &[Key] = &[
    key!(
        "listen",
        "the address that it listens on; one past loopback needs a key",
        |draft, given| {
            let text = given.text.replace("localhost:", "127.0.0.1:");
            draft.settings.listen = text.parse().map_err(|_| {
                format!("must be an address and a port such as 127.0.0.1:7420, not `{}`", given.text)
            })?;
            Ok(())
        },
        |draft| draft.settings.listen.to_string()
    ),
    key!(
        "data",
        "the data directory",
        |draft, given| {
            draft.data = Some(given.path()?);
            Ok(())
        },
        |draft| path_text(draft.data.as_ref())
    ),
    key!(
        "durability",
        "when a change is answered: `synced`, once it survives a power cut, or `buffered`, once the system has it",
        |draft, given| {
            draft.durability = match given.text {
                "synced" => Durability::Synced,
                "buffered" => Durability::Buffered,
                other => return Err(format!("must be `synced` or `buffered`, not `{other}`")),
            };
            Ok(())
        },
        |draft| if draft.durability == Durability::Synced { "synced" } else { "buffered" }.to_owned()
    ),
    key!(
        "storage.low_mark",
        "the disk is short when less is free: a size, or `auto` for 5 % of the disk and at most 1GiB",
        |draft, given| {
            draft.low_mark = match given.text {
                "auto" => None,
                text => Some(size(text)? as u64),
            };
            Ok(())
        },
        |draft| match draft.low_mark {
            Some(bytes) => size_text(usize::try_from(bytes).unwrap_or(usize::MAX)),
            None => "auto".to_owned(),
        }
    ),
    key!(
        "tls.certificate",
        "the certificate's chain, in PEM; read again when it changes",
        |draft, given| {
            draft.certificate = Some(given.path()?);
            Ok(())
        },
        |draft| path_text(draft.certificate.as_ref())
    ),
    key!(
        "tls.key",
        "the certificate's private key, in PEM",
        |draft, given| {
            draft.private_key = Some(given.path()?);
            Ok(())
        },
        |draft| path_text(draft.private_key.as_ref())
    ),
    key!(
        "cors_origins",
        "web pages from these origins may call it from a browser, `*` being all",
        |draft, given| {
            let origins = given.list();
            for origin in &origins {
                let bare =
                    origin.split_once("://").is_some_and(|(_, host)| !host.is_empty() && !host.contains('/'));
                if !(bare || origin == "*" || origin == "null") {
                    return Err(format!("must have origins such as https://app.example, not `{origin}`"));
                }
            }
            draft.settings.cors_origins = origins;
            Ok(())
        },
        |draft| draft.settings.cors_origins.join(",")
    ),
    key!(
        "hosts",
        "names, besides those of loopback, that it may be called by while it has no key",
        |draft, given| {
            draft.settings.hosts = given.hosts()?;
            Ok(())
        },
        |draft| draft.settings.hosts.join(",")
    ),
    duration_key!("keep_alive", "how often a quiet stream is sent a comment", keep_alive),
    duration_key!("drain", "how long open calls may take once it is told to stop", drain),
    size_key!("limits.body_bytes", "the most that a request's body may have", body_bytes),
    size_key!("limits.import_bytes", "the most that a file may have that is imported", import_bytes),
    size_key!(
        "limits.request_memory",
        "the most that request bodies may hold in memory, over all connections; at least a quarter more than `limits.body_bytes`. Beyond it a request waits up to 2 s, then gets 503; a key or address with more than half gets 429",
        request_memory
    ),
    size_key!(
        "limits.response_memory",
        "the most that responses waiting for their readers may hold in memory, over all connections, shared in the same way",
        response_memory
    ),
    size_key!("limits.header_bytes", "the most that a request's head may have", header_bytes),
    count_key!(
        "limits.connections",
        "the most connections at a time; one key or address gets more than half only while others do not need them",
        connections
    ),
    count_key!(
        "limits.subscriptions",
        "the most subscriptions at a time; one key or address gets more than half only while others do not need them",
        subscriptions
    ),
    store_size_key!(
        "limits.metadata_bytes",
        "the most that a session's metadata may have, with title and description",
        metadata_bytes
    ),
    store_size_key!(
        "limits.waiting_event_bytes",
        "the most that events may have that wait for subscribers, over all of them; beyond it the slowest lag",
        waiting_event_bytes
    ),
    store_size_key!("cache.session_bytes", "maximum memory for sessions that are not in use", session_cache_bytes),
    count_key!(
        "limits.subscriptions_per_socket",
        "the most subscriptions of one WebSocket connection",
        subscriptions_per_socket
    ),
    duration_key!(
        "limits.head_timeout",
        "how long a request's head may take, and how long a connection may be idle",
        limits.head_timeout
    ),
    size_key!(
        "limits.body_rate",
        "the least that a request's body must bring a second; slower ones end with 408",
        body_rate
    ),
    duration_key!(
        "limits.body_timeout",
        "the time over which `limits.body_rate` is measured",
        limits.body_timeout
    ),
    duration_key!(
        "limits.read_timeout",
        "how long a response may wait until its reader takes 4 KiB of it; then the connection is closed",
        limits.read_timeout
    ),
    key!(
        "limits.requests_per_second",
        "the most requests a second of one key, or `none`",
        |draft, given| {
            draft.settings.limits.requests_per_second = match given.text {
                "none" => None,
                _ => Some(u32::try_from(given.count()?).map_err(|_| "is too large".to_owned())?),
            };
            Ok(())
        },
        |draft| draft.settings.limits.requests_per_second.map_or("none".to_owned(), |most| most.to_string())
    ),
    key!(
        "log.level",
        "what is logged: error, warn, info, debug or trace; `info,banyan::requests=debug` adds a line a request",
        |draft, given| {
            draft.logs = Logs { format: draft.logs.format, ..Logs::at(given.text)? };
            Ok(())
        },
        |draft| draft.logs.level_text.clone()
    ),
    key!(
        "log.format",
        "`text`, `json`, or `auto`: text on a terminal, JSON otherwise",
        |draft, given| {
            draft.logs.format = match given.text {
                "auto" => Format::Auto,
                "text" => Format::Text,
                "json" => Format::Json,
                other => return Err(format!("must be `auto`, `text` or `json`, not `{other}`")),
            };
            Ok(())
        },
        |draft| match draft.logs.format {
            Format::Auto => "auto",
            Format::Text => "text",
            Format::Json => "json",
        }
        .to_owned()
    ),
    key!(
        "ocp.create_sessions",
        "whether a session begins when a call's `OCP-Context-ID` names a context that has none: `true` or `false`",
        |draft, given| {
            draft.settings.create_context_sessions = match given.text {
                "true" => true,
                "false" => false,
                other => return Err(format!("must be `true` or `false`, not `{other}`")),
            };
            Ok(())
        },
        |draft| draft.settings.create_context_sessions.to_string()
    ),
    key!(
        "traces.endpoint",
        Some("OTEL_EXPORTER_OTLP_ENDPOINT"),
        "the OpenTelemetry collector that spans are sent to, over OTLP/HTTP",
        |draft, given| {
            draft.endpoint = (!given.text.is_empty()).then(|| given.text.to_owned());
            Ok(())
        },
        |draft| draft.endpoint.clone().unwrap_or_default()
    ),
    key!(
        "traces.service",
        Some("OTEL_SERVICE_NAME"),
        "what the server is called in its spans",
        |draft, given| {
            draft.service = given.text.to_owned();
            Ok(())
        },
        |draft| draft.service.clone()
    ),
    key!(
        "iii.url",
        "the iii engine that it joins as the worker session-manager, such as ws://127.0.0.1:49134",
        |draft, given| {
            if !given.text.is_empty() && !given.text.starts_with("ws://") {
                return Err(format!("must be an address such as ws://127.0.0.1:49134, not `{}`", given.text));
            }
            draft.bus.engine = (!given.text.is_empty()).then(|| given.text.to_owned());
            Ok(())
        },
        |draft| draft.bus.engine.clone().unwrap_or_default()
    ),
    key!(
        "iii.open",
        "whether everyone on the engine's bus may reach a directory with keys, which an engine does not check: true or false",
        |draft, given| {
            draft.bus.open = match given.text {
                "true" => BusAccess::Open,
                "false" => BusAccess::Closed,
                text => return Err(format!("must be true or false, not `{text}`")),
            };
            Ok(())
        },
        |draft| (draft.bus.open == BusAccess::Open).to_string()
    ),
    key!(
        "iii.listen",
        "the loopback address where iii SDKs find the session functions when there is no engine, such as 127.0.0.1:49134",
        |draft, given| {
            draft.bus.listen = match given.text {
                "" => None,
                text => Some(bus_address(text)?),
            };
            Ok(())
        },
        |draft| draft.bus.listen.map(|address| address.to_string()).unwrap_or_default()
    ),
];

/// Keys and sessions cross a bus as plain text, so only this machine reaches it.
fn bus_address(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .replace("localhost:", "127.0.0.1:")
        .parse()
        .map_err(|_| format!("must be an address and a port such as 127.0.0.1:49134, not `{text}`"))?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(format!("must be a loopback address, because a bus speaks no TLS; `{text}` is not one")),
    }
}
