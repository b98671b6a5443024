//! Who calls: the key that a request carries, as the handle on the store that it may use.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use banyan::{Access, Banyan, Scope};
use hyper::header::{AUTHORIZATION, CONNECTION, HeaderMap, HeaderValue};
use hyper::http::Uri;
use hyper::http::request::Parts;

use crate::app::{App, Shared};
use crate::budget::{Holder, Peer};
use crate::keys::{Key, Reach};
use crate::observe::MadeWith;
use crate::ocp;
use crate::problem::Problem;
use crate::response;

/// Who calls. Handlers reach the store through this, and so see and change only what the key may.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) store: Banyan,
    /// None while the server has no key, and takes everyone who reaches loopback for its owner.
    pub(crate) key: Option<Arc<Key>>,
    /// The connection that the request came by.
    pub(crate) peer: Option<Peer>,
}

impl Caller {
    /// Who the caller's use of budgets is accounted to.
    pub(crate) fn holder(&self) -> Holder {
        Holder::of_parts(self.key.as_deref(), self.peer.as_ref())
    }

    /// Whether the caller may see what is about the whole server: the other keys, its metrics.
    pub(crate) fn is_operator(&self) -> bool {
        self.key.as_ref().is_none_or(|key| key.is_operator())
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| Problem::unauthenticated("this request has no key"))
    }
}

/// Lets a request through when its key is known.
pub(crate) async fn authenticate(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    match identify(&app, &request) {
        Ok(caller) => {
            let key = caller.key.clone();
            let place = key.as_ref().zip(caller.peer.as_ref()).map_or(Ok(()), |(key, peer)| peer.charge_to(key));
            if let Err(refusal) = place {
                let mut response = Problem::from(refusal).into_response();
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                return made_with(key, response);
            }
            if let Err(problem) = app.rates.check(key.as_deref()) {
                return made_with(key, problem.into_response());
            }
            let mut room = None;
            if response::must_wait(&app, request.method(), request.uri().path()) {
                match response::room(&app, caller.holder()).await {
                    Ok(lease) => room = Some(lease),
                    Err(refusal) => return made_with(key, Problem::from(refusal).into_response()),
                }
            }
            let response = if ocp::carried(request.headers()) {
                let carried = ocp::take(&app, &caller, request.headers()).await;
                request.extensions_mut().insert(caller.clone());
                let mut response = next.run(request).await;
                carried.answer(&caller, &mut response).await;
                response::account(&app, response, || caller.holder())
            } else {
                let (key, peer) = (caller.key.clone(), caller.peer.clone());
                request.extensions_mut().insert(caller);
                let response = next.run(request).await;
                response::account(&app, response, || Holder::of_parts(key.as_deref(), peer.as_ref()))
            };
            drop(room);
            made_with(key, response)
        }
        Err(problem) => problem.into_response(),
    }
}

/// Leaves the key's id on the answer, for the log.
fn made_with(key: Option<Arc<Key>>, mut response: Response) -> Response {
    if let Some(key) = key {
        response.extensions_mut().insert(MadeWith(key.id.clone()));
    }
    response
}

fn identify(app: &App, request: &Request) -> Result<Caller, Problem> {
    let peer = request.extensions().get::<Peer>().cloned();
    let key = key_of(app, request.headers(), request.uri())?;
    let Some(key) = key else { return Ok(Caller { store: app.store.clone(), key: None, peer }) };
    let access = Access { scope: Scope::of(key.scope.clone()), read_only: key.read_only };
    Ok(Caller { store: app.store.with_access(access), key: Some(key), peer })
}

/// The key of a request. `None` on a server that is open to everyone on this machine.
pub(crate) fn key_of(app: &App, headers: &HeaderMap, uri: &Uri) -> Result<Option<Arc<Key>>, Problem> {
    if app.open() {
        return Ok(None);
    }
    let given = token(headers, uri);
    if let Some(key) = given.as_deref().and_then(|given| app.keys.find(given)) {
        return Ok(Some(key));
    }
    Err(Problem::unauthenticated(match (app.keys.reach(), given) {
        (Reach::NoOne(reason), _) => format!(
            "every call is refused: {reason}; make a key with `banyan key create --name NAME`, or open the directory with `banyan key reset --open`"
        ),
        (_, Some(_)) => "this key is not known here; `banyan key ls` lists the keys that are".to_owned(),
        (_, None) => {
            "send the key as `Authorization: Bearer KEY`; `banyan key create --name NAME` makes one".to_owned()
        }
    }))
}

/// The key as it was sent: in its header, or, from where no header can be set (`EventSource`, `WebSocket`), in the query.
fn token(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let value = value.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned());
    }
    let query = uri.query()?;
    query.split('&').find_map(|pair| pair.strip_prefix("access_token=")).map(str::to_owned)
}
