//! What people type into a search, read.
//!
//! Words that are separated by blanks must all be there. `"several words"` must stand one after another, `begin*` finds
//! what begins so, `-word` leaves out. What is typed is cut as texts are ([`crate::words`]), and several parts are a row:
//! `src/main.rs` finds the parts `src`, `main`, `rs` one after another. Nothing that is typed is refused for its form.

use crate::words::{Kind, Word, Words, is_word};

/// A search, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// What must be there, each of it.
    pub wanted: Vec<Clause>,
    /// What must not be there.
    pub unwanted: Vec<Clause>,
}

/// One thing that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Parts that stand one after another; at least one.
    pub parts: Vec<String>,
    /// The same as one word, when it was typed as one.
    pub whole: Option<String>,
    /// Whether the last part may go on.
    pub ending: Ending,
}

/// Whether the last part of a clause may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is a word.
    Exact,
    /// It is the beginning of a word.
    Prefix,
}

/// A search has so many clauses at most; more are left out.
const MOST_CLAUSES: usize = 32;
/// A clause has so many parts at most; more are left out.
const MOST_PARTS: usize = 32;

impl Query {
    /// Reads what was typed.
    pub fn parse(typed: &str) -> Self {
        let mut query = Self::default();
        let mut rest = typed.trim_start();
        while !rest.is_empty() && query.wanted.len() + query.unwanted.len() < MOST_CLAUSES {
            let negative = is_negative(rest);
            if negative {
                rest = rest.get(1..).unwrap_or_default();
            }
            let (item, after) = next_item(rest);
            rest = after.trim_start();
            let to = if negative { &mut query.unwanted } else { &mut query.wanted };
            to.extend(Clause::of(item).filter(|clause| !to.contains(clause)));
        }
        query
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }
}

impl Clause {
    fn of(item: &str) -> Option<Self> {
        let item = item.trim_end();
        let stem = item.trim_end_matches('*');
        let is_prefix = stem.len() < item.len() && stem.chars().next_back().is_some_and(is_word);
        let ending = if is_prefix { Ending::Prefix } else { Ending::Exact };
        let words: Vec<Word> = Words::of(stem).collect();
        // It was typed as one word when the first is a whole one, and everything else is inside it.
        let whole = words.first().filter(|first| {
            first.kind == Kind::Whole && words.iter().all(|word| word.from >= first.from && word.to <= first.to)
        });
        let whole = whole.map(|word| word.text.clone());
        let parts = words.into_iter().filter(|word| word.kind == Kind::Part).take(MOST_PARTS);
        let parts: Vec<String> = parts.map(|word| word.text).collect();
        if parts.is_empty() { None } else { Some(Self { parts, whole, ending }) }
    }
}

/// `-word` and `-"two words"`, and neither `--flag` nor a dash alone.
fn is_negative(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next() == Some('-') && chars.next().is_some_and(|c| c == '"' || is_word(c))
}

/// What is typed up to the next blank or, when it is quoted, up to the end of the quotation.
fn next_item(text: &str) -> (&str, &str) {
    if let Some(quoted) = text.strip_prefix('"') {
        let end = quoted.find('"').unwrap_or(quoted.len());
        return (quoted.get(..end).unwrap_or_default(), quoted.get(end + 1..).unwrap_or_default());
    }
    let end = text.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
