//! Searching.

use std::ops::RangeInclusive;

use banyan_model::{EntryId, Object, Role, SessionId};
use tantivy::query::{
    BooleanQuery, ConstScoreQuery, FuzzyTermQuery, Occur, PhrasePrefixQuery, PhraseQuery, Query as TantivyQuery,
    TermQuery,
};
use tantivy::schema::{IndexRecordOption, Value};
use tantivy::{Searcher, TantivyDocument, Term};

use crate::document::{Standing, is_active, pair_label, role_bit, role_of, tool_term, workspace_label};
use crate::error::SearchError;
use crate::index::SearchIndex;
use crate::query::{Clause, Ending, Query};
use crate::rank::{Best, CollectNumbers, Numbers, Sieve};
use crate::schema::Fields;
use crate::snippet::{Piece, snippet};

/// What is looked for, and where.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The words.
    pub query: Query,
    /// Only in sessions whose metadata has all of these pairs.
    pub metadata: Object,
    /// Only in sessions that work in this directory, or below.
    pub workspace: Option<String>,
    /// Only in this session.
    pub session_id: Option<SessionId>,
    /// Only what these say; everybody when empty.
    pub roles: Vec<Role>,
    /// Only calls of this function, and their results.
    pub tool: Option<String>,
    /// Only what was said in this time.
    pub time: RangeInclusive<i64>,
    /// Where in a session.
    pub branches: Branches,
    /// What counts as now.
    pub now_ms: i64,
    /// How many of the best are passed over.
    pub skip: usize,
    /// How many are wanted after those.
    pub limit: usize,
}

/// Where in a session is looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branches {
    /// On the active path.
    Active,
    /// On every branch.
    All,
}

/// An entry that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Its session.
    pub session_id: SessionId,
    /// Its id.
    pub entry_id: EntryId,
    /// Who speaks.
    pub role: Option<Role>,
    /// When.
    pub timestamp: i64,
    /// Whether it is on the active path.
    pub standing: Standing,
    /// How well it matches; only to be compared with others of the same answer.
    pub score: f32,
    /// Some of what it says, with what matches marked.
    pub snippet: Vec<Piece>,
}

/// What begins so is found by so many words at most, when it follows other words.
const MOST_EXPANSIONS: u32 = 1_000;

impl SearchIndex {
    /// The best entries for a query, best first. Fewer than asked for when there are no more.
    pub fn find(&self, ask: &Ask) -> Result<Vec<Hit>, SearchError> {
        let searcher = self.reader.searcher();
        let Some(sessions) = self.sessions_with(&searcher, ask)? else { return Ok(Vec::new()) };
        let Some(query) = self.plan(ask)? else { return Ok(Vec::new()) };
        let roles = if ask.roles.is_empty() {
            u64::MAX
        } else {
            ask.roles.iter().map(|role| role_bit(Some(*role))).fold(0, |bits, bit| bits | bit)
        };
        let active_only = ask.branches == Branches::Active;
        let sieve = Sieve { sessions, roles: roles & !1, active_only, time: ask.time.clone() };
        let best = Best::new(sieve, ask.skip.saturating_add(ask.limit).max(1), ask.now_ms);
        searcher.search(query.as_ref(), &best)?;
        let mut hits = Vec::new();
        for found in best.take().into_iter().skip(ask.skip).take(ask.limit) {
            let stored: TantivyDocument = searcher.doc(found.at)?;
            let text = |field| stored.get_first(field).and_then(|value| value.as_str()).unwrap_or_default();
            hits.push(Hit {
                session_id: SessionId::from(text(self.fields.session_id)),
                entry_id: EntryId::from(text(self.fields.entry_id)),
                role: role_of(found.flags),
                timestamp: found.time,
                standing: if is_active(found.flags) { Standing::Active } else { Standing::Aside },
                score: found.score,
                snippet: snippet(text(self.fields.text), &ask.query),
            });
        }
        Ok(hits)
    }

    /// The sessions that are asked about: `None` when there are none, `Some(None)` when it is all of them.
    fn sessions_with(&self, searcher: &Searcher, ask: &Ask) -> Result<Option<Option<Numbers>>, SearchError> {
        let mut labels: Vec<String> = ask.metadata.iter().map(|(key, value)| pair_label(key, value)).collect();
        labels.extend(ask.workspace.as_deref().map(workspace_label));
        if labels.is_empty() {
            return Ok(Some(None));
        }
        let clauses =
            labels.iter().map(|label| exactly(Term::from_field_text(self.fields.label, label))).collect();
        let query = BooleanQuery::intersection(clauses);
        let numbers = searcher.search(&query, &CollectNumbers)?;
        Ok(if numbers.is_empty() { None } else { Some(Some(numbers)) })
    }

    fn plan(&self, ask: &Ask) -> Result<Option<Box<dyn TantivyQuery>>, SearchError> {
        let mut must: Vec<Box<dyn TantivyQuery>> =
            ask.query.wanted.iter().map(|it| said(self.fields, it)).collect();
        if must.is_empty() {
            return Ok(None);
        }
        if let Some(tool) = &ask.tool {
            must.push(exactly(Term::from_field_text(self.fields.tool, &tool_term(tool))));
        }
        if let Some(id) = &ask.session_id {
            let Some(record) = self.session(id)? else { return Ok(None) };
            must.push(exactly(Term::from_field_u64(self.fields.session, record.number.0)));
        }
        if must.len() == 1 && ask.query.unwanted.is_empty() {
            return Ok(must.pop());
        }
        let unwanted = ask.query.unwanted.iter().map(|clause| (Occur::MustNot, said(self.fields, clause)));
        let clauses = must.into_iter().map(|query| (Occur::Must, query)).chain(unwanted).collect();
        Ok(Some(Box::new(BooleanQuery::new(clauses))))
    }
}

/// What an entry must have, without counting for how good it is.
fn exactly(term: Term) -> Box<dyn TantivyQuery> {
    Box::new(ConstScoreQuery::new(Box::new(TermQuery::new(term, IndexRecordOption::Basic)), 0.0))
}

/// What an entry must say.
fn said(fields: Fields, clause: &Clause) -> Box<dyn TantivyQuery> {
    let term = |word: &str| Term::from_field_text(fields.text, word);
    let one = |word: &str| -> Box<dyn TantivyQuery> {
        match clause.ending {
            Ending::Exact => Box::new(TermQuery::new(term(word), IndexRecordOption::WithFreqs)),
            Ending::Prefix => Box::new(FuzzyTermQuery::new_prefix(term(word), 0, true)),
        }
    };
    let row: Box<dyn TantivyQuery> = match clause.parts.as_slice() {
        [word] => one(word),
        parts => {
            let terms: Vec<Term> = parts.iter().map(|part| term(part)).collect();
            match clause.ending {
                Ending::Exact => Box::new(PhraseQuery::new(terms)),
                Ending::Prefix => {
                    let mut query = PhrasePrefixQuery::new(terms);
                    query.set_max_expansions(MOST_EXPANSIONS);
                    Box::new(query)
                }
            }
        }
    };
    match &clause.whole {
        Some(whole) => Box::new(BooleanQuery::union(vec![one(whole), row])),
        None => row,
    }
}
