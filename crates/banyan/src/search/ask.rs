//! `session::search`.

use std::sync::Arc;
use std::time::Duration;

use banyan_core::cursor::SearchCursor;
use banyan_core::filter;
use banyan_core::fork_ids::ForkIds;
use banyan_model::{CommitNo, Error, Object, SearchHit, SearchRequest, SearchResponse, SessionId, SnippetPiece};
use banyan_search::{Ask, Branches, Hit, PieceKind, Query, Ranking, Standing};
use serde_json::Value;

use super::Home;
use crate::Banyan;
use crate::access::Access;
use crate::clock::now_ms;
use crate::store::Store;

/// How many hits a call that names no number gets.
const USUAL: usize = 20;
/// How many it gets at most.
const MOST: usize = 100;
/// So many hits can be paged through.
const DEEPEST: usize = 10_000;
/// The longest query, in bytes.
const LONGEST: usize = 4096;
/// Times are told apart by their minute when it comes to what is newer, so that asking twice gives the same scores.
const RECENT_MS: i64 = 60_000;
/// The longest time that a call waits.
const LONGEST_WAIT: u64 = 60_000;

impl Banyan {
    /// The entries that match a query best, best first, within what this handle may see.
    pub async fn search(&self, request: SearchRequest) -> Result<SearchResponse, Error> {
        let mut answer = Ok(SearchResponse::default());
        (self.store.settings.may_block)(&mut || answer = self.store.search(&self.access, &request));
        answer
    }
}

impl Banyan {
    /// The last commit that searches find, of whatever session; 0 while the index is made.
    pub fn searchable(&self) -> CommitNo {
        self.store.search.visible()
    }

    /// How many documents the index has: one for each entry that it finds, and one for each session. For tests.
    #[doc(hidden)]
    pub fn search_documents(&self) -> u64 {
        self.store.search.lock().index.as_ref().map_or(0, |index| index.len())
    }
}

impl Store {
    fn search(self: &Arc<Self>, access: &Access, request: &SearchRequest) -> Result<SearchResponse, Error> {
        let cursor = request.cursor.as_deref().map(SearchCursor::decode).transpose()?;
        let query = query_of(request)?;
        if matches!(self.search.home, Home::Nowhere) {
            return Err(Error::storage("this store has no search"));
        }
        self.begin_indexing();
        let wait = Duration::from_millis(request.wait_ms.unwrap_or(0).min(LONGEST_WAIT));
        let (index, complete) = self.search.ready(wait)?;
        // Whoever asks for what cannot be in their scope finds nothing.
        let metadata = metadata_of(request).and_then(|wanted| access.scope.within(Some(wanted)));
        let Some(metadata) = metadata else { return Ok(SearchResponse { complete, ..SearchResponse::default() }) };
        let limit = request.limit.unwrap_or(USUAL).clamp(1, MOST);
        let (skip, now_ms) = cursor.map_or_else(
            || (0, now_ms() / RECENT_MS * RECENT_MS),
            |cursor| (cursor.skip.min(DEEPEST), cursor.now_ms),
        );
        let ask = Ask {
            query,
            metadata: metadata.unwrap_or_default(),
            workspace: request.workspace.clone(),
            session_id: request.session_id.clone(),
            roles: request.roles.clone().unwrap_or_default(),
            tool: request.tool.clone(),
            time: request.since.unwrap_or(i64::MIN)
                ..=request.until.map_or(i64::MAX, |until| until.saturating_sub(1)),
            ranking: if access.scope.is_everything() { Ranking::Index } else { Ranking::Constants },
            branches: if request.all_branches == Some(true) { Branches::All } else { Branches::Active },
            now_ms,
            skip,
            limit: limit + 1,
        };
        let found = index.find(&ask).map_err(|error| Error::storage(error.to_string()))?;
        let line: Vec<ForkIds> = found.line.iter().map(ForkIds::new).collect();
        let mut found: Vec<Hit> = found.hits.into_iter().map(|hit| cited(hit, &found.line, &line)).collect();
        let more = found.len() > limit && skip + limit < DEEPEST;
        found.truncate(limit);
        let next_cursor = more.then(|| SearchCursor { skip: skip + limit, now_ms }.encode());
        let mut hits = Vec::with_capacity(found.len());
        for hit in found {
            hits.extend(self.seen(access, &ask.metadata, hit)?);
        }
        Ok(SearchResponse { hits, next_cursor, complete })
    }

    /// A hit as the caller may see it. The index is a moment behind, so the catalogue has the last word: a session that
    /// was deleted or given to somebody else is not shown.
    fn seen(&self, access: &Access, wanted: &Object, hit: Hit) -> Result<Option<SearchHit>, Error> {
        let Some(row) = self.ask_catalogue(|catalogue| catalogue.get(&hit.session_id))? else { return Ok(None) };
        let known = row.known_metadata();
        if !access.scope.covers(known) || !filter::metadata_matches(wanted, known) {
            return Ok(None);
        }
        let text = |key: &str| row.meta.metadata.as_ref()?.get(key)?.as_str().map(str::to_owned);
        let piece = |piece: banyan_search::Piece| SnippetPiece {
            is_match: piece.kind == PieceKind::Match,
            text: piece.text,
        };
        Ok(Some(SearchHit {
            title: row.meta.title.clone(),
            agent: text("agent"),
            workspace: text("cwd"),
            session_id: hit.session_id,
            entry_id: hit.entry_id,
            role: hit.role,
            timestamp: hit.timestamp,
            score: f64::from(hit.score),
            active: hit.standing == Standing::Active,
            snippet: hit.snippet.into_iter().map(piece).collect(),
        }))
    }
}

/// A hit as an entry of the session that was asked about, which may have it from another. Its id there follows from the
/// original one, fork by fork.
fn cited(hit: Hit, line: &[SessionId], ids: &[ForkIds]) -> Hit {
    let Some(session_id) = line.first() else { return hit };
    let forks = ids.iter().take(hit.link).rev();
    let entry_id = forks.fold(hit.entry_id, |id, fork| fork.derive(&id));
    Hit { session_id: session_id.clone(), entry_id, ..hit }
}

fn query_of(request: &SearchRequest) -> Result<Query, Error> {
    let typed = match (&request.query, &request.q) {
        (Some(query), None) | (None, Some(query)) => query,
        (None, None) => return Err(Error::invalid_request("`query` is missing; pass the words to look for")),
        (Some(_), Some(_)) => return Err(Error::invalid_request("`q` is short for `query`; pass one of them")),
    };
    if typed.len() > LONGEST {
        return Err(Error::invalid_request(format!("the query has {} bytes; the most is {LONGEST}", typed.len())));
    }
    let query = Query::parse(typed);
    if query.is_empty() {
        return Err(Error::invalid_request(format!("`{typed}` has no word to look for; type at least one")));
    }
    Ok(query)
}

/// What a session's metadata must have. `None` when no metadata can.
fn metadata_of(request: &SearchRequest) -> Option<Object> {
    let mut wanted = request.metadata.clone().unwrap_or_default();
    if let Some(agent) = &request.agent {
        let agent = Value::String(agent.clone());
        if wanted.get("agent").is_some_and(|other| *other != agent) {
            return None;
        }
        wanted.insert("agent".to_owned(), agent);
    }
    Some(wanted)
}
