//! Text laid out for reading: words wrapped to the screen, code left as it is.

use crate::screen::{Screen, Style};
use crate::words::{clip, count, safe, width};

/// Lines longer than this are hard to read, however wide the terminal is.
const COMFORTABLE: usize = 100;
/// How wide a short form is where there is no terminal.
const WIDE: usize = 120;
/// How many lines of something long are shown.
const LINES: usize = 8;

/// How much of something long is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// Its beginning.
    Short,
    /// All of it.
    Full,
}

/// What somebody said, whole: prose wrapped, headings and code set off.
pub(crate) fn said(text: &str, screen: &Screen) -> Vec<String> {
    let text = safe(text);
    let mut fence = None;
    let mut lines = Vec::new();
    for line in text.trim_end().lines() {
        let mark = fence_mark(line);
        match fence {
            Some(open) => {
                lines.push(screen.paint(Style::Code, line));
                if mark.is_some_and(|mark| mark.0 == open && mark.1.is_empty()) {
                    fence = None;
                }
            }
            None if mark.is_some() => {
                fence = mark.map(|mark| mark.0);
                lines.push(screen.paint(Style::Code, line));
            }
            None => {
                let wrapped = wrap(line, comfortable(screen));
                let title = line.starts_with('#') && line.trim_start_matches('#').starts_with(' ');
                match title {
                    true => lines.extend(wrapped.iter().map(|line| screen.paint(Style::Heading, line))),
                    false => lines.extend(wrapped),
                }
            }
        }
    }
    lines
}

/// An aside, each line behind a mark: wrapped, and cut when it is long.
pub(crate) fn aside(text: &str, mark: &str, length: Length, screen: &Screen) -> Vec<String> {
    let text = safe(text);
    let room = comfortable(screen).map(|room| room.saturating_sub(width(mark)));
    let lines: Vec<String> = text.trim().lines().flat_map(|line| wrap(line, room)).collect();
    cut(lines, length).into_iter().map(|line| format!("{mark}{line}").trim_end().to_owned()).collect()
}

/// Output of a program: its first lines, each cut to the screen, or all of it.
pub(crate) fn output(text: &str, indent: &str, length: Length, screen: &Screen) -> Vec<String> {
    let text = safe(text).replace('\t', "    ");
    let room = short_width(screen).saturating_sub(width(indent));
    let shown = |line: &str| match length {
        Length::Short => clip(line.trim_end(), room),
        Length::Full => line.trim_end().to_owned(),
    };
    let lines = text.trim_matches('\n').lines().map(shown).collect();
    cut(lines, length).into_iter().map(|line| format!("{indent}{line}")).collect()
}

/// How wide a line may be that is cut rather than wrapped.
pub(crate) fn short_width(screen: &Screen) -> usize {
    screen.columns().unwrap_or(WIDE)
}

/// A fence around code: its mark, and the language after it.
fn fence_mark(line: &str) -> Option<(char, &str)> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    (line.len() - rest.len() >= 3 && !rest.contains(mark)).then(|| (mark, rest.trim()))
}

fn comfortable(screen: &Screen) -> Option<usize> {
    screen.columns().map(|columns| columns.min(COMFORTABLE))
}

fn cut(mut lines: Vec<String>, length: Length) -> Vec<String> {
    // One line more is not worth a line about it.
    if length == Length::Short && lines.len() > LINES + 1 {
        let more = lines.len() - LINES;
        lines.truncate(LINES);
        lines.push(format!("… {} more (--full shows all)", count(more as u64, "line")));
    }
    lines
}

/// Breaks a line between words. What follows a list's mark or an indent stays below where it began.
fn wrap(line: &str, room: Option<usize>) -> Vec<String> {
    let line = line.trim_end();
    let Some(room) = room.filter(|room| width(line) > *room) else { return vec![line.to_owned()] };
    let hang = hang(line).min(room / 2);
    let mut lines = Vec::new();
    let mut now = line[..line.len() - line.trim_start().len()].to_owned();
    let mut empty = true;
    for word in line.split_whitespace() {
        // A word that no line can hold, such as a sentence without blanks, begins where there is room.
        if !empty && width(&now) + 1 + width(word) > room && hang + width(word) <= room {
            lines.push(std::mem::replace(&mut now, " ".repeat(hang)));
            empty = true;
        }
        if !empty {
            now.push(' ');
        }
        empty = false;
        for c in word.chars() {
            if width(&now) + width(c.encode_utf8(&mut [0; 4])) > room {
                lines.push(std::mem::replace(&mut now, " ".repeat(hang)));
            }
            now.push(c);
        }
    }
    lines.push(now);
    lines
}

/// How far the lines after the first are set in.
fn hang(line: &str) -> usize {
    let text = line.trim_start();
    let indent = width(line) - width(text);
    let (mark, _) = text.split_once(' ').unwrap_or((text, ""));
    let numbered = mark.strip_suffix(['.', ')']).is_some_and(|number| number.parse::<u32>().is_ok());
    match numbered || matches!(mark, "-" | "*" | "+" | ">") {
        true => indent + width(mark) + 1,
        false => indent,
    }
}

#[cfg(test)]
mod tests {
    use super::{fence_mark, wrap};

    #[test]
    fn lines_break_between_words_and_lists_hang() {
        assert_eq!(wrap("one two three", Some(8)), ["one two", "three"]);
        assert_eq!(wrap("  1. one two three", Some(12)), ["  1. one two", "     three"]);
        assert_eq!(wrap("- one two", Some(6)), ["- one", "  two"]);
        assert_eq!(wrap("one two three", None), ["one two three"]);
        assert_eq!(wrap("", Some(8)), [""]);
    }

    #[test]
    fn what_has_no_blanks_breaks_at_the_edge() {
        assert_eq!(wrap("abcdefghij", Some(4)), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("天気予報", Some(5)), ["天気", "予報"]);
        assert_eq!(wrap("a 天気予報", Some(6)), ["a 天気", "予報"]);
    }

    #[test]
    fn a_fence_has_three_marks_and_nothing_of_them_after() {
        assert_eq!(fence_mark("```rust"), Some(('`', "rust")));
        assert_eq!(fence_mark("  ~~~~"), Some(('~', "")));
        assert_eq!(fence_mark("```one``` line"), None);
        assert_eq!(fence_mark("``two"), None);
    }
}
