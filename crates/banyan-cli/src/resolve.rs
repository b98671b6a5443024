//! Finding the session that somebody means by the beginning of its id.

use banyan::model::{Error, GetRequest, ListRequest, SessionId, SessionMeta};

use crate::calls::ask;
use crate::client::Client;
use crate::failure::Failure;
use crate::words::{ago, one_line};

/// How many candidates are worth listing.
const CANDIDATES: usize = 8;

/// The one session whose id is this, or begins with it.
pub(crate) fn resolve(client: &dyn Client, text: &str) -> Result<SessionMeta, Failure> {
    let not_found = || Failure::from(Error::not_found(&text.into()));
    find(client, text)?.ok_or_else(not_found)
}

/// The one session whose id is this, or begins with it, if there is one. Several are an error.
pub(crate) fn find(client: &dyn Client, text: &str) -> Result<Option<SessionMeta>, Failure> {
    if text.is_empty() {
        return Err(Failure::usage("the id of a session is missing; pass an id or its beginning"));
    }
    if let Some(found) = ask(client, &GetRequest { session_id: SessionId::from(text) })? {
        return Ok(Some(found.meta));
    }
    let mut candidates = beginning_with(client, text)?;
    match candidates.len() {
        0 | 1 => Ok(candidates.pop()),
        _ => Err(ambiguous(text, &candidates)),
    }
}

/// Sessions whose id begins with this; no more than are worth listing, and one.
fn beginning_with(client: &dyn Client, text: &str) -> Result<Vec<SessionMeta>, Failure> {
    let mut found = Vec::new();
    let mut request = ListRequest { limit: Some(500), ..ListRequest::default() };
    loop {
        let page = ask(client, &request)?;
        found.extend(page.sessions.into_iter().filter(|meta| meta.session_id.as_str().starts_with(text)));
        if page.next_cursor.is_none() || found.len() > CANDIDATES {
            return Ok(found);
        }
        request.cursor = page.next_cursor;
    }
}

fn ambiguous(text: &str, candidates: &[SessionMeta]) -> Failure {
    let mut message = format!("several sessions begin with `{text}`; type more of the id:");
    for meta in candidates.iter().take(CANDIDATES) {
        let (id, title) = (one_line(meta.session_id.as_str()), one_line(&meta.title));
        message.push_str(&format!("\n  {id}  {title} ({})", ago(meta.updated_at)));
    }
    if candidates.len() > CANDIDATES {
        message.push_str("\n  and more");
    }
    Failure::usage(message)
}
