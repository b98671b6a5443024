//! Calls as Cline 2.x has models write them: XML in the text, one call a message.

use serde_json::{Map, Value};

/// A call that was found in a text.
pub(super) struct Found<'t> {
    /// What stands before it.
    pub(super) before: &'t str,
    pub(super) name: &'t str,
    pub(super) arguments: Value,
    /// What stands after it, which Cline does not look at.
    pub(super) after: &'t str,
}

/// The first call in a text: an element whose name is a function's, and which holds nothing but elements.
pub(super) fn call(text: &str) -> Option<Found<'_>> {
    let mut from = 0;
    while let Some(start) = text[from..].find('<').map(|at| from + at) {
        from = start + 1;
        let Some((name, inside, end)) = element(text, start) else { continue };
        // Thoughts and answers are elements too, but functions have an underscore and parameters.
        if !name.contains('_') {
            continue;
        }
        if let Some(arguments) = parameters(inside) {
            return Some(Found { before: text[..start].trim_end(), name, arguments, after: text[end..].trim() });
        }
    }
    None
}

/// The element that begins at a place: its name, what is in it, and where it ends.
fn element(text: &str, start: usize) -> Option<(&str, &str, usize)> {
    let rest = &text[start + 1..];
    let name = &rest[..rest.find('>')?];
    let is_name = name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    if !is_name {
        return None;
    }
    let inside = start + name.len() + 2;
    let close = format!("</{name}>");
    // What a file is to say may have the same element in it: the last one closes.
    let end = inside + text[inside..].rfind(&close)?;
    Some((name, &text[inside..end], end + close.len()))
}

/// The parameters of a call; none if there is anything else.
fn parameters(inside: &str) -> Option<Value> {
    let mut arguments = Map::new();
    let mut rest = inside.trim();
    while !rest.is_empty() {
        let name = rest.strip_prefix('<')?;
        let name = &name[..name.find('>')?];
        let close = format!("</{name}>");
        let begin = name.len() + 2;
        let end = begin + rest[begin..].find(&close)?;
        let is_name =
            !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if !is_name {
            return None;
        }
        let value = &rest[begin..end];
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        arguments.insert(name.to_owned(), value.into());
        rest = rest[end + close.len()..].trim_start();
    }
    (!arguments.is_empty()).then_some(Value::Object(arguments))
}

/// What a text says came of a call: the function, and the beginning of what it gave back.
pub(super) fn result(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix('[')?;
    let at = rest.find("] Result:")?;
    let described = &rest[..at];
    let name = described.split([' ', ']']).next()?;
    let is_name = name.contains('_') && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
    is_name.then(|| (name, rest[at + "] Result:".len()..].trim_start_matches('\n')))
}

/// What an element of this name holds, if the text has one.
pub(super) fn inside<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let begin = text.find(&open)? + open.len();
    let end = begin + text[begin..].rfind(&close)?;
    Some(text[begin..end].trim_matches('\n'))
}
