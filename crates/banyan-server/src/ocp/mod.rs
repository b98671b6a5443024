//! Contexts of the Open Context Protocol: what a call brings along in its `OCP-…` headers, and `/v1/sessions/{session_id}/ocp-context`.
//!
//! A call that names a context is tied to that context's session, among those that the key reaches: a header is never a credential.
//! Whatever is wrong with the headers, the call goes on; what was left out is named in the answer's `Banyan-OCP-Ignored` and counted.
//! A call without such headers is asked for them once, and pays nothing else.

mod resource;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use banyan::Tied;
use banyan::import::Mode;
use banyan::model::{Error, ErrorCode, SessionId};
use banyan_formats::ocp::{self, Headers, Ignored, Reading, Received, from_headers, header};
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

use crate::app::{App, Shared};
use crate::caller::Caller;
use crate::metrics::{ContextCall, LeftOut};
use crate::path::segment;

/// Where a session is read and written as a context.
pub(crate) const CONTEXT: &str = "/v1/sessions/{session_id}/ocp-context";

/// Says what of the headers was left out, and why.
pub(crate) const IGNORED: HeaderName = HeaderName::from_static("banyan-ocp-ignored");
/// Says which session the call was tied to.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("banyan-session-id");

const OCP_CONTEXT_ID: HeaderName = HeaderName::from_static(header::CONTEXT_ID);
const OCP_SESSION: HeaderName = HeaderName::from_static(header::SESSION);

pub(crate) fn routes() -> Router<Shared> {
    Router::new().route(CONTEXT, get(resource::get).put(resource::put))
}

/// Whether a call brings a context along.
pub(crate) fn carried(headers: &HeaderMap) -> bool {
    headers.contains_key(OCP_CONTEXT_ID) || headers.contains_key(OCP_SESSION)
}

/// What a call brought along, while it is being answered.
pub(crate) struct Carried {
    session_id: Option<SessionId>,
    ignored: Vec<Ignored>,
}

/// Takes in the context of a call.
pub(crate) async fn take(app: &App, caller: &Caller, headers: &HeaderMap) -> Carried {
    let Reading { received, mut ignored } = read(headers);
    let mut outcome = "unreadable";
    let mut session_id = None;
    if let Some(received) = received {
        match tie(app, caller, &received).await {
            Ok(Some((found, stored))) => {
                session_id = Some(found);
                outcome = "tied";
                match stored {
                    Ok(created) => outcome = if created { "created" } else { outcome },
                    Err(error) => ignored.push(not_stored(&error)),
                }
            }
            Ok(None) => {
                outcome = "no-session";
                ignored.push(Ignored { what: header::CONTEXT_ID, why: "no-session" });
            }
            Err(error) => {
                outcome = "not-stored";
                ignored.push(not_stored(&error));
            }
        }
    }
    app.metrics.contexts.get_or_create(&ContextCall { outcome }).inc();
    count(app, &ignored);
    Carried { session_id, ignored }
}

/// The session of a context, and whether it began with it or why nothing could be stored in it. None when there is none and none may begin.
async fn tie(
    app: &App,
    caller: &Caller,
    received: &Received,
) -> Result<Option<(SessionId, Result<bool, Error>)>, Error> {
    let store = &caller.store;
    if let Some(found) = store.session_of_context(&received.context.context_id).await? {
        let stored = store.add_context(&found, received, Mode::Write).await.map(|tied| tied.created);
        return Ok(Some((found, stored)));
    }
    if !app.settings.create_context_sessions {
        return Ok(None);
    }
    let Tied { session_id, created, .. } = store.keep_context(received, Mode::Write).await?;
    Ok(Some((session_id, Ok(created))))
}

/// Why nothing was stored, in a word.
fn not_stored(error: &Error) -> Ignored {
    let why = match error.code {
        ErrorCode::Forbidden => "read-only",
        ErrorCode::TooLarge => "too-large",
        ErrorCode::Conflict => "conflict",
        _ => "not-stored",
    };
    Ignored { what: header::SESSION, why }
}

fn read(headers: &HeaderMap) -> Reading {
    let mut twice = Vec::new();
    let mut only = |name: &'static str| {
        let mut given = headers.get_all(name).iter();
        let first = given.next()?;
        // Which of two is meant, nobody knows.
        if given.any(|other| other != first) {
            twice.push(Ignored { what: name, why: "given-twice" });
            return None;
        }
        Some(first.as_bytes())
    };
    let given = Headers {
        context_id: only(header::CONTEXT_ID),
        agent_type: only(header::AGENT_TYPE),
        current_goal: only(header::CURRENT_GOAL),
        agent_goal: only(header::AGENT_GOAL),
        session: only(header::SESSION),
        user: only(header::USER),
        workspace: only(header::WORKSPACE),
    };
    let mut reading = from_headers(&given, banyan::now_ms());
    reading.ignored.splice(0..0, twice);
    reading
}

fn count(app: &App, ignored: &[Ignored]) {
    for Ignored { what, why } in ignored {
        app.metrics.left_out_of_contexts.get_or_create(&LeftOut { what, why }).inc();
    }
}

/// Says on an answer what was left out.
fn say_ignored(ignored: &[Ignored], headers: &mut HeaderMap) {
    if ignored.is_empty() {
        return;
    }
    let said: Vec<String> = ignored.iter().map(|Ignored { what, why }| format!("{what}={why}")).collect();
    // The words are the server's own.
    if let Ok(value) = HeaderValue::from_str(&said.join(", ")) {
        headers.insert(IGNORED, value);
    }
}

impl Carried {
    /// Puts the context as it is after the call on the answer.
    pub(crate) async fn answer(self, caller: &Caller, response: &mut Response) {
        say_ignored(&self.ignored, response.headers_mut());
        let Some(session_id) = self.session_id else { return };
        let (store, id) = (caller.store.clone(), session_id.clone());
        // Reading may wait for a disk. A session that the call has ended has no context any more.
        let told = tokio::task::spawn_blocking(move || {
            let (told, uncounted) = store.newest_context(&id).ok()?;
            Some(ocp::to_headers(&told.context, uncounted))
        });
        let Ok(Some(lines)) = told.await else { return };
        let headers = response.headers_mut();
        for (name, value) in lines {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        if let Ok(value) = HeaderValue::from_str(&segment(session_id.as_str())) {
            headers.insert(SESSION_ID, value);
        }
    }
}
