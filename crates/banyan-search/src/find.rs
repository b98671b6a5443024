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
use crate::line::Where;
use crate::query::{Clause, Ending, Query};
use crate::rank::{Best, CollectNumbers, Constants, Numbers, Sieve};
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
    /// What scores come from.
    pub ranking: Ranking,
    /// What counts as now.
    pub now_ms: i64,
    /// How many of the best are passed over.
    pub skip: usize,
    /// How many are wanted after those.
    pub limit: usize,
}

/// What scores come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// How rare a word is, and how long an entry is, among all entries of the index.
    Index,
    /// Constants, so that a score depends on the entry and the query alone.
    Constants,
}

/// Where in a session is looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branches {
    /// On the active path.
    Active,
    /// On every branch.
    All,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The best entries, best first.
    pub hits: Vec<Hit>,
    /// The session that was asked about, and after it those from which it has the beginning of its path, nearest first.
    /// Empty when no session was asked about.
    pub line: Vec<SessionId>,
}

/// An entry that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The session that said it.
    pub session_id: SessionId,
    /// Its id there.
    pub entry_id: EntryId,
    /// Which session of the [`Answer::line`] that is; 0 when there is none.
    pub link: usize,
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
    pub fn find(&self, ask: &Ask) -> Result<Answer, SearchError> {
        let searcher = self.reader.searcher();
        let Some(place) = self.where_to_look(&searcher, ask)? else { return Ok(Answer::default()) };
        let Some(query) = self.plan(ask, &place) else { return Ok(Answer::default()) };
        let roles = if ask.roles.is_empty() {
            u64::MAX
        } else {
            ask.roles.iter().map(|role| role_bit(Some(*role))).fold(0, |bits, bit| bits | bit)
        };
        let sieve = Sieve { place, roles: roles & !1, branches: ask.branches, time: ask.time.clone() };
        let best = Best::new(sieve, ask.ranking, ask.skip.saturating_add(ask.limit).max(1), ask.now_ms);
        match ask.ranking {
            Ranking::Index => searcher.search(query.as_ref(), &best)?,
            Ranking::Constants => {
                searcher.search_with_statistics_provider(query.as_ref(), &best, &Constants)?;
            }
        }
        let (found, place) = best.take();
        let mut hits = Vec::new();
        for found in found.into_iter().skip(ask.skip).take(ask.limit) {
            let stored: TantivyDocument = searcher.doc(found.at)?;
            let text = |field| stored.get_first(field).and_then(|value| value.as_str()).unwrap_or_default();
            hits.push(Hit {
                session_id: SessionId::from(text(self.fields.session_id)),
                entry_id: EntryId::from(text(self.fields.entry_id)),
                link: place.link_of(found.session),
                role: role_of(found.flags),
                timestamp: found.time,
                standing: if is_active(found.flags) { Standing::Active } else { Standing::Aside },
                score: found.score,
                snippet: snippet(text(self.fields.text), &ask.query),
            });
        }
        let line = match place {
            Where::Line(line) => line.into_ids(),
            Where::Everywhere | Where::In(_) => Vec::new(),
        };
        Ok(Answer { hits, line })
    }

    /// Where is looked; `None` when that is nowhere.
    fn where_to_look(&self, searcher: &Searcher, ask: &Ask) -> Result<Option<Where>, SearchError> {
        let Some(sessions) = self.sessions_with(searcher, ask)? else { return Ok(None) };
        let Some(id) = &ask.session_id else {
            return Ok(Some(sessions.map_or(Where::Everywhere, Where::In)));
        };
        let line = self.line(searcher, id)?;
        // The metadata is asked about of the session itself, not of those from which it has its beginning.
        let wanted = line.own().is_some_and(|own| sessions.is_none_or(|sessions| sessions.has(own)));
        Ok(wanted.then_some(Where::Line(line)))
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

    fn plan(&self, ask: &Ask, place: &Where) -> Option<Box<dyn TantivyQuery>> {
        let mut must: Vec<Box<dyn TantivyQuery>> =
            ask.query.wanted.iter().map(|it| said(self.fields, it)).collect();
        if must.is_empty() {
            return None;
        }
        if let Some(tool) = &ask.tool {
            must.push(exactly(Term::from_field_text(self.fields.tool, &tool_term(tool))));
        }
        if let Where::Line(line) = place {
            let sessions = line.numbers().map(|number| exactly(Term::from_field_u64(self.fields.session, number)));
            must.push(Box::new(BooleanQuery::union(sessions.collect())));
        }
        if must.len() == 1 && ask.query.unwanted.is_empty() {
            return must.pop();
        }
        let unwanted = ask.query.unwanted.iter().map(|clause| (Occur::MustNot, said(self.fields, clause)));
        let clauses = must.into_iter().map(|query| (Occur::Must, query)).chain(unwanted).collect();
        Some(Box::new(BooleanQuery::new(clauses)))
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
