//! Some of what an entry says, around what was looked for.

use crate::query::{Clause, Ending, Query};
use crate::words::{Kind, Word, Words};

/// A piece of a snippet. Pieces in a row are the text; it is plain text, whatever it looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// Whether it is what was looked for.
    pub kind: PieceKind,
}

/// Whether a piece is what was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
    /// It matches.
    Match,
    /// It stands around what matches.
    Around,
}

/// About so many bytes are shown.
const WIDTH: usize = 240;
/// So many of them stand before the first match.
const BEFORE: usize = 60;
/// So many matches are looked at before the best place is chosen.
const MOST_MATCHES: usize = 500;

/// What matches, and which clause it is for.
struct Mark {
    from: usize,
    to: usize,
    clause: usize,
}

/// Some of a text around what a query looks for.
pub(crate) fn snippet(text: &str, query: &Query) -> Vec<Piece> {
    let marks = marks(text, query);
    let first = best_start(&marks, query.wanted.len());
    let from = marks.get(first).map_or(0, |mark| start_before(text, mark.from));
    let mut end = text.floor_char_boundary((from + WIDTH).min(text.len()));
    if let Some(mark) = marks.get(first) {
        end = end.max(mark.to);
    }
    let mut pieces = Vec::new();
    let mut put = |text: &str, kind: PieceKind| {
        let text = on_one_line(text);
        if !text.is_empty() {
            pieces.push(Piece { text, kind });
        }
    };
    if from > 0 {
        put("… ", PieceKind::Around);
    }
    let mut at = from;
    for mark in marks.iter().skip(first).filter(|mark| mark.to <= end) {
        if mark.from < at {
            continue;
        }
        put(&text[at..mark.from], PieceKind::Around);
        put(&text[mark.from..mark.to], PieceKind::Match);
        at = mark.to;
    }
    put(&text[at..end], PieceKind::Around);
    if end < text.len() {
        put(" …", PieceKind::Around);
    }
    pieces
}

/// Where the text has what is looked for, in order, without overlaps of the same clause.
fn marks(text: &str, query: &Query) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    // How far each clause has been seen: how many of its parts, and where the first of them starts.
    let mut rows: Vec<(usize, usize)> = vec![(0, 0); query.wanted.len()];
    let mut seen = vec![false; query.wanted.len()];
    for word in Words::of(text) {
        for (at, clause) in query.wanted.iter().enumerate() {
            let found = match word.kind {
                Kind::Whole => is_whole(clause, &word).then_some((word.from, word.to)),
                Kind::Part => follow(clause, &mut rows[at], &word).map(|from| (from, word.to)),
            };
            if let Some((from, to)) = found {
                marks.push(Mark { from, to, clause: at });
                seen[at] = true;
            }
        }
        let near = marks.first().is_some_and(|first| word.from > first.from + WIDTH);
        if (near && seen.iter().all(|seen| *seen)) || marks.len() > MOST_MATCHES {
            break;
        }
    }
    marks.sort_by_key(|mark| (mark.from, std::cmp::Reverse(mark.to)));
    marks
}

fn is_whole(clause: &Clause, word: &Word) -> bool {
    // A single part may have been typed for a whole word, for example in lower case.
    let typed = match (&clause.whole, clause.parts.as_slice()) {
        (Some(whole), _) => whole,
        (None, [part]) => part,
        (None, _) => return false,
    };
    matches(typed, &word.text, clause.ending)
}

/// Takes the next part of a text. Where the row starts, when it is complete with this part.
fn follow(clause: &Clause, row: &mut (usize, usize), word: &Word) -> Option<usize> {
    let is_next = |at: usize| {
        let ending = if at + 1 == clause.parts.len() { clause.ending } else { Ending::Exact };
        clause.parts.get(at).is_some_and(|part| matches(part, &word.text, ending))
    };
    if row.0 > 0 && !is_next(row.0) {
        row.0 = 0;
    }
    if row.0 == 0 {
        if !is_next(0) {
            return None;
        }
        row.1 = word.from;
    }
    row.0 += 1;
    (row.0 == clause.parts.len()).then(|| {
        row.0 = 0;
        row.1
    })
}

fn matches(typed: &str, word: &str, ending: Ending) -> bool {
    match ending {
        Ending::Exact => word == typed,
        Ending::Prefix => word.starts_with(typed),
    }
}

/// The mark from which most different clauses are near.
fn best_start(marks: &[Mark], clauses: usize) -> usize {
    let mut best = (0, 0);
    for (at, first) in marks.iter().enumerate() {
        let mut near = vec![false; clauses];
        for mark in marks[at..].iter().take_while(|mark| mark.to <= first.from + WIDTH - BEFORE) {
            near[mark.clause] = true;
        }
        let count = near.iter().filter(|near| **near).count();
        if count > best.0 {
            best = (count, at);
        }
        if best.0 == clauses {
            break;
        }
    }
    best.1
}

/// Where to start, so that something is seen of what stands before a match: at a word.
fn start_before(text: &str, at: usize) -> usize {
    if at <= BEFORE {
        return 0;
    }
    let from = text.ceil_char_boundary(at - BEFORE);
    text[from..at].find(char::is_whitespace).map_or(from, |blank| from + blank + 1).min(at)
}

/// The text without line breaks and control characters, which would spoil a list of results.
fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        let blank = c.is_whitespace() || c.is_control();
        if !blank {
            line.push(c);
        } else if !line.ends_with(' ') {
            line.push(' ');
        }
    }
    line
}

#[cfg(test)]
#[path = "snippet_tests.rs"]
mod tests;
