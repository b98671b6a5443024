//! A server that is asked over HTTP.

use std::fs;
use std::io::{Read, SeekFrom};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use banyan::batch::{self, Batch};
use banyan::export::{ExportRequest, Redaction, SigningKey, Written};
use banyan::import::{Input, Mode};
use banyan::model::{EntryId, GetMessageRequest, ImportResponse, ImportedSession, SessionId};
use banyan::{Purged, Start, Subscribe, Taken};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use ureq::http::request::Builder;
use ureq::http::{Method, Request, Response, Uri};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, SendBody};

use super::follow::{Follow, Stream};
use super::{Client, Frames, Take, Until, problem};
use crate::args::Globals;
use crate::calls::ask;
use crate::data_dir::state_dir;
use crate::failure::Failure;

/// A server sends something every 15 s on a quiet stream; one that is silent for longer than this is gone.
const SILENCE: Duration = Duration::from_secs(60);
const CONNECTING: Duration = Duration::from_secs(10);
/// How long a server may take for a file once it has all of it.
const IMPORTING: Duration = Duration::from_secs(1800);
/// Of a larger file the server is asked whether it takes it before it is sent.
const ASKED_FIRST: u64 = 1 << 20;

/// What needs no encoding in a path besides letters and digits.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b':').remove(b'-').remove(b'_');

/// A server that is asked over HTTP.
#[derive(Clone)]
pub(crate) struct Server {
    agent: Agent,
    url: String,
    key: Option<String>,
}

impl Server {
    /// A server at an address. Nothing is sent yet.
    pub(crate) fn new(url: &str, globals: &Globals) -> Result<Self, Failure> {
        let url = url.trim_end_matches('/');
        let wrong = || Failure::usage(format!("`{url}` is not an address; write it as http://HOST:PORT"));
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let host = uri.host().ok_or_else(wrong)?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(wrong());
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(CONNECTING))
            .timeout_per_read(Some(SILENCE))
            // As many as can be under way at a time, so that none is opened anew for each call.
            .max_idle_connections(4096)
            .max_idle_connections_per_host(4096)
            .user_agent(concat!("banyan/", env!("CARGO_PKG_VERSION")));
        if is_loopback(host) {
            // A proxy has another loopback.
            config = config.proxy(None);
        }
        if let Some(file) = &globals.ca {
            config = config.tls_config(TlsConfig::builder().root_certs(roots(file)?).build());
        }
        Ok(Self { agent: config.build().new_agent(), url: url.to_owned(), key: globals.key.clone() })
    }

    /// Its address.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Sends a request and gives the text of its answer.
    pub(crate) fn ask(&self, method: Method, path: &str, body: Option<&[u8]>) -> Result<String, Failure> {
        let mut response = self.send(method, path, body, None)?;
        self.text(&mut response)
    }

    /// Sends a request and gives the answer's bytes as they arrive.
    pub(crate) fn stream(
        &self,
        method: Method,
        path: &str,
        body: Option<&[u8]>,
    ) -> Result<impl Read + use<>, Failure> {
        let response = self.send(method, path, body, None)?;
        Ok(response.into_body().into_with_config().limit(u64::MAX).reader())
    }

    /// Opens a stream of events, after the last position that was seen if there is one.
    pub(super) fn open(&self, path: &str, last: Option<&str>) -> Result<Stream, Failure> {
        let response = self.send(Method::GET, path, None, last)?;
        Ok(Stream::new(response.into_body().into_with_config().limit(u64::MAX).reader()))
    }

    fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&[u8]>,
        last: Option<&str>,
    ) -> Result<Response<Body>, Failure> {
        let mut request = self.request(method, path);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let answered = match body {
            Some(body) => {
                let request =
                    request.header("content-type", "application/json").body(body).map_err(cannot_be_sent)?;
                self.agent.run(request)
            }
            None => self.agent.run(request.body(()).map_err(cannot_be_sent)?),
        };
        self.received(answered)
    }

    /// Sends a file, piece by piece, and gives the text of the answer.
    fn upload(&self, path: &str, file: &mut dyn Input) -> Result<String, Failure> {
        let unreadable = |error| Failure::trouble("cli/file", format!("the file could not be read: {error}"));
        let size = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
        file.rewind().map_err(unreadable)?;
        let mut request = self.request(Method::POST, path).header("content-length", size);
        if size > ASKED_FIRST {
            request = request.header("expect", "100-continue");
        }
        let request = request.body(SendBody::from_reader(file)).map_err(cannot_be_sent)?;
        let request = self.agent.configure_request(request).timeout_per_read(Some(IMPORTING)).build();
        let mut response = self.received(self.agent.run(request))?;
        self.text(&mut response)
    }

    fn request(&self, method: Method, path: &str) -> Builder {
        let request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        match &self.key {
            Some(key) => request.header("authorization", format!("Bearer {key}")),
            None => request,
        }
    }

    fn received(&self, answered: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>, Failure> {
        let mut response = answered.map_err(|error| problem::no_answer(&self.url, &error))?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status => Err(problem::failure(&self.url, status, &self.text(&mut response).unwrap_or_default())),
        }
    }

    fn text(&self, response: &mut Response<Body>) -> Result<String, Failure> {
        let body = response.body_mut().with_config().limit(u64::MAX);
        body.read_to_string().map_err(|error| self.broke_off(&error))
    }

    /// The server is of another version, by what it does. Says which, and which this is.
    fn of_another_version(&self, what: &str) -> Failure {
        let description = self.ask(Method::GET, "/openapi.json", None).ok();
        let description: Option<Value> = description.and_then(|text| serde_json::from_str(&text).ok());
        let runs = match description.as_ref().and_then(|it| it["info"]["version"].as_str()) {
            Some(version) => format!("runs Banyan {version}"),
            None => "does not say which Banyan it runs".to_owned(),
        };
        let message = format!(
            "{} {runs}, and {what}; this is Banyan {}: use the `banyan` that the server was installed with",
            self.url,
            env!("CARGO_PKG_VERSION")
        );
        Failure::trouble("http/version", message)
    }

    fn broke_off(&self, error: &dyn std::fmt::Display) -> Failure {
        Failure::trouble("http/unreachable", format!("the answer of {} broke off: {error}", self.url))
    }
}

/// Whether this build has a function.
fn has_function(id: &str) -> bool {
    banyan::functions().iter().any(|function| function.id == id)
}

fn cannot_be_sent(error: ureq::http::Error) -> Failure {
    Failure::usage(format!("the address or the key cannot be sent: {error}"))
}

impl Client for Server {
    fn call(&self, id: &str, body: &[u8]) -> Result<String, Failure> {
        let answer = self.ask(Method::POST, &format!("/v1/call/{}", in_path(id)), Some(body));
        answer.map_err(|failure| match failure.is("call/unknown_function") && has_function(id) {
            true => self.of_another_version(&format!("it has no function `{id}`")),
            false => failure,
        })
    }

    fn unreadable(&self, what: &str, error: &serde_json::Error) -> Failure {
        self.of_another_version(&format!("its answer of {what} cannot be read: {error}"))
    }

    fn subscribe(&self, wanted: Subscribe, until: Until) -> Result<Frames, Failure> {
        let path = events_path(&wanted);
        Ok(Box::new(Follow::begin(self.clone(), path, until, wanted.start)?))
    }

    fn export(
        &self,
        request: &ExportRequest,
        key: Option<Arc<SigningKey>>,
        take: &mut Take<'_>,
    ) -> Result<Option<Written>, Failure> {
        if key.is_some() {
            return Err(Failure::usage("a server does not sign; sign on the data directory, with --data DIR"));
        }
        let plain = if request.plain { "&plain=1" } else { "" };
        let redact = if request.redaction == Redaction::Secrets { "&redact=1" } else { "" };
        let (session, to) = (in_path(request.session_id.as_str()), request.target.as_str());
        let response =
            self.send(Method::GET, &format!("/v1/sessions/{session}/export?to={to}{redact}{plain}"), None, None)?;
        let mut body = response.into_body().into_with_config().limit(u64::MAX).reader();
        let mut piece = vec![0; 64 << 10];
        loop {
            match body.read(&mut piece).map_err(|error| self.broke_off(&error))? {
                0 => return Ok(None),
                read => take(&piece[..read])?,
            }
        }
    }

    fn import(&self, input: &mut dyn Input, mode: Mode) -> Result<ImportResponse, Failure> {
        let path = if mode == Mode::DryRun { "/v1/import?dry_run=1" } else { "/v1/import" };
        let answer = self.upload(path, input)?;
        serde_json::from_str(&answer).map_err(|error| self.unreadable("an import", &error))
    }

    fn take(&self, piece: Batch) -> Result<Taken, Failure> {
        let mut bytes = Vec::new();
        batch::write(&piece, &mut bytes)?;
        drop(piece);
        let answer = self.import(&mut std::io::Cursor::new(bytes), Mode::Write)?;
        let taken = |session: &ImportedSession| Taken {
            created: session.created,
            added: session.added,
            updated: session.updated,
            unchanged: session.unchanged,
            attachments: session.attachments,
        };
        Ok(answer.sessions.first().map(taken).unwrap_or_default())
    }

    fn has_entry(&self, session: &SessionId, entry: &EntryId) -> Result<bool, Failure> {
        let request = GetMessageRequest {
            session_id: session.clone(),
            entry_id: entry.clone(),
            include_image_data: Some(false),
        };
        Ok(ask(self, &request)?.is_some())
    }

    fn flush(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn purge(&self) -> Result<Purged, Failure> {
        let answer = self.ask(Method::POST, "/v1/purge", Some(b"{}"))?;
        serde_json::from_str(&answer)
            .map_err(|error| Failure::storage(format!("the answer of {} could not be read: {error}", self.url)))
    }

    /// Beside the programs' other states, one file for each address.
    fn ledger(&self) -> Result<PathBuf, Failure> {
        let name: String = self.url.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        Ok(state_dir()?.join("imports").join(format!("{name}.jsonl")))
    }

    fn place(&self) -> String {
        self.url.clone()
    }

    fn close(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A word as a part of a path.
pub(crate) fn in_path(word: &str) -> String {
    utf8_percent_encode(word, IN_PATH).to_string()
}

/// Where the events that are wanted are told. The filters are alike but for their types.
fn events_path(wanted: &Subscribe) -> String {
    let value = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let first = wanted.filters.first();
    let session = first.and_then(|filter| filter.session_id.as_ref());
    let mut path = match session {
        Some(session) => format!("/v1/sessions/{}/events?", in_path(session.as_str())),
        None => "/v1/events?".to_owned(),
    };
    let mut parameters: Vec<String> =
        wanted.filters.iter().map(|filter| format!("type={}", value(filter.event_type.as_str()))).collect();
    if let Some(roles) = wanted.filters.iter().find_map(|filter| filter.roles.as_ref()) {
        let roles: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
        parameters.push(format!("roles={}", roles.join(",")));
    }
    if let Some(metadata) = first.and_then(|filter| filter.metadata.as_ref()) {
        parameters.push(format!("metadata={}", value(&serde_json::to_string(metadata).unwrap_or_default())));
    }
    match &wanted.start {
        Start::Now => {}
        Start::After(position) => parameters.push(format!("after={position}")),
        Start::Snapshot(_) => parameters.push("snapshot=1".to_owned()),
    }
    path.push_str(&parameters.join("&"));
    path
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn roots(file: &Path) -> Result<RootCerts, Failure> {
    let wrong = |why: String| Failure::usage(format!("the certificates in {}: {why}", file.display()));
    let pem = fs::read(file).map_err(|error| wrong(error.to_string()))?;
    let mut certificates = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| wrong(error.to_string()))? {
            certificates.push(certificate);
        }
    }
    match certificates.is_empty() {
        true => Err(wrong("there are none; it must be a PEM file".to_owned())),
        false => Ok(RootCerts::new_with_certs(&certificates)),
    }
}

#[cfg(test)]
mod tests {
    use super::in_path;

    #[test]
    fn ids_of_any_form_are_one_part_of_a_path() {
        assert_eq!(in_path("session::append-many"), "session::append-many");
        assert_eq!(in_path("../a b/ü?#%"), "%2E%2E%2Fa%20b%2F%C3%BC%3F%23%25");
    }
}
