//! The lines of one run of aider, taken apart: who said what.
//!
//! By aider's own rules `#### ` begins a line of the user, `> ` a line of the console, and all else is the model's, so that a model
//! that quotes somebody changes roles. We look closer: lines that aider itself wrote for the user and the console end in two
//! blanks, and a console message of several lines has them only at its very end.

use serde::Deserialize;

use super::BEGIN;
use crate::{OWN, Own};

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    User,
    Model,
    Console,
}

/// Something that was said at a stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) who: Who,
    pub(super) text: String,
    /// The lines as they are in the file.
    pub(super) raw: String,
    /// Where it comes from, if we wrote it.
    pub(super) own: Option<Own>,
}

const USER: &str = "#### ";
const CONSOLE: &str = "> ";
/// How a line of ours begins. Aider leaves out all lines that begin like this.
const OURS: &str = "# x_banyan ";
/// A console message has no more lines than this.
const LONGEST: usize = 400;

/// What a line of ours says.
pub(super) fn own(line: &str) -> Option<Own> {
    let json = line.trim_end().strip_prefix(OURS)?;
    let mut reader = serde_json::Deserializer::from_str(json);
    Own::deserialize(&mut reader).ok()
}

/// A line of ours.
pub(super) fn own_line(own: &Own) -> String {
    debug_assert_eq!(OURS.trim_matches(['#', ' ']), OWN);
    format!("{OURS}{}\n", serde_json::to_string(own).unwrap_or_default())
}

/// Takes the lines of a run apart, without the line that it begins with.
pub(super) fn blocks(lines: &[String]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut previous = Who::Console;
    let mut place = 0;
    while let Some(line) = lines.get(place) {
        place += 1;
        if let Some(own) = own(line) {
            previous = Who::Console;
            blocks.push(Block { who: Who::Model, text: String::new(), raw: String::new(), own: Some(own) });
            continue;
        }
        if line.starts_with(BEGIN) {
            previous = Who::Console;
            continue;
        }
        let ended = line.trim_end_matches(['\n', '\r']).ends_with("  ");
        let follows_model = previous == Who::Model && place > 1 && !lines[place - 2].trim().is_empty();
        let who = if line.starts_with(USER) && (ended || !follows_model) {
            Who::User
        } else if line.starts_with(CONSOLE) && (ended || !follows_model) {
            Who::Console
        } else {
            Who::Model
        };
        add(&mut blocks, who, line);
        if who == Who::Console && !ended {
            let more = continued(&lines[place..]);
            for line in &lines[place..place + more] {
                add(&mut blocks, Who::Console, line);
            }
            place += more;
        }
        previous = who;
    }
    for block in &mut blocks {
        let text = std::mem::take(&mut block.text);
        block.text = if block.who == Who::Model { text.trim_matches(['\n', '\r']).to_owned() } else { text };
        if block.who == Who::Model {
            block.text.truncate(block.text.trim_end().len());
            if block.own.is_some() {
                block.text = unprotected(&block.text);
            }
        }
    }
    blocks.retain(|block| !block.text.trim().is_empty());
    blocks
}

/// How many more lines a console message has: up to the first that ends in two blanks, unless that is one of the user's.
fn continued(lines: &[String]) -> usize {
    for (place, line) in lines.iter().take(LONGEST).enumerate() {
        let ended = line.trim_end_matches(['\n', '\r']).ends_with("  ");
        if line.starts_with(USER) && ended || line.starts_with("# ") {
            return 0;
        }
        if ended {
            return place + 1;
        }
    }
    0
}

fn add(blocks: &mut Vec<Block>, who: Who, line: &str) {
    let text = line.trim_end_matches(['\n', '\r']);
    let text = match who {
        Who::User => text.strip_prefix(USER).unwrap_or(text),
        Who::Console => text.strip_prefix(CONSOLE).unwrap_or(text),
        Who::Model => text,
    };
    let text = if who == Who::Model { text } else { text.strip_suffix("  ").unwrap_or(text) };
    match blocks.last_mut() {
        Some(last) if last.own.is_some() && last.text.trim().is_empty() => {
            // What we wrote begins with the first line that says something.
            last.who = who;
            text.clone_into(&mut last.text);
            last.raw.push_str(line);
        }
        Some(last) if last.who == who => {
            last.text.push('\n');
            last.text.push_str(text);
            last.raw.push_str(line);
        }
        _ => blocks.push(Block { who, text: text.to_owned(), raw: line.to_owned(), own: None }),
    }
}

/// A block as aider writes it.
pub(super) fn written(who: Who, text: &str) -> String {
    let line = |prefix: &str, line: &str| format!("{prefix}{line}  \n");
    match who {
        Who::User => format!("\n{}", split_lines(text).map(|text| line(USER, text)).collect::<String>()),
        Who::Console => text.lines().map(|text| line(CONSOLE, text)).collect(),
        Who::Model => format!("\n{}\n\n", text.trim_end()),
    }
}

/// What a model said, so that aider reads it as that: a blank before whatever it would take for something else, and one more
/// where there are blanks already, so that it can be taken away again.
pub(super) fn protected(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for line in text.split_inclusive(ends_line) {
        safe.push_str(if is_danger(line) { " " } else { "" });
        safe.push_str(line);
    }
    safe
}

/// Takes the blanks away again.
fn unprotected(text: &str) -> String {
    let line = |line| if is_danger(line) { line.strip_prefix(' ').unwrap_or(line) } else { line };
    text.split_inclusive(ends_line).map(line).collect()
}

fn is_danger(line: &str) -> bool {
    let line = line.trim_start_matches(' ');
    ["# ", "> ", "#### "].iter().any(|begin| line.starts_with(begin))
}

fn split_lines(text: &str) -> impl Iterator<Item = &str> {
    text.strip_suffix('\n').unwrap_or(text).split(ends_line)
}

/// Whether a letter ends a line in Python, whose idea of a line counts here.
fn ends_line(letter: char) -> bool {
    matches!(letter, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
