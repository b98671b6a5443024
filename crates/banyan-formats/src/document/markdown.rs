//! A session as Markdown.

use std::fmt::Write as _;
use std::io::{self, Write};

use banyan_model::SessionEntry;

use super::Head;
use super::words::{self, Block, Kind, Shown};
use crate::redact::Finding;

/// Writes Markdown: the active path first, then the other branches.
pub struct Markdown<W> {
    out: W,
    branches: usize,
}

impl<W: Write> Markdown<W> {
    /// Begins a document with what is known of the session.
    pub fn new(mut out: W, head: &Head) -> io::Result<Self> {
        writeln!(out, "# {}\n", inline(&words::title(head)))?;
        if !head.meta.description.trim().is_empty() {
            writeln!(out, "{}\n", closed(head.meta.description.trim_end()))?;
        }
        for (name, value) in words::about(head) {
            writeln!(out, "- {name}: {}", inline(&value))?;
        }
        Ok(Self { out, branches: 0 })
    }

    /// Writes an entry.
    pub fn entry(&mut self, entry: &SessionEntry) -> io::Result<()> {
        let Some(Shown { speaker, kind, time, blocks }) = words::shown(entry) else { return Ok(()) };
        // What a tool gave back belongs to the answer that asked for it.
        if kind != Kind::Tool {
            writeln!(self.out, "\n## {} · {time}", inline(&speaker))?;
        }
        let mut text = String::new();
        blocks.iter().for_each(|block| write_block(block, &mut text));
        self.out.write_all(text.as_bytes())
    }

    /// A branch begins that is not the active one.
    pub fn branch(&mut self, entries: usize) -> io::Result<()> {
        self.branches += 1;
        let entries = if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") };
        writeln!(self.out, "\n---\n\n# Other branch {} ({entries})", self.branches)
    }

    /// Where it is written to.
    pub fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Ends the document, and lists what was taken out.
    pub fn finish(mut self, redactions: &[Finding]) -> io::Result<W> {
        if !redactions.is_empty() {
            writeln!(self.out, "\n---\n\nTaken out of this document:\n")?;
            for line in words::taken_out(redactions) {
                writeln!(self.out, "- {}", inline(&line))?;
            }
        }
        Ok(self.out)
    }
}

fn write_block(block: &Block, out: &mut String) {
    // Writing to a string does not fail.
    let _ = match block {
        Block::Text(text) if text.trim().is_empty() => Ok(()),
        Block::Text(text) => writeln!(out, "\n{}", closed(text.trim_end())),
        Block::Thinking(text) if text.trim().is_empty() => Ok(()),
        Block::Thinking(text) => {
            writeln!(out, "\n{}", quoted(&format!("*Thinking*\n\n{}", closed(text.trim_end()))))
        }
        Block::Call { name, arguments } => {
            writeln!(out, "\n**Call** {}\n\n{}", code(name), fenced(arguments, "json"))
        }
        Block::Result { name, failed, blocks } => {
            let verdict = if *failed { " failed" } else { "" };
            let _ = writeln!(out, "\n**Result** {}{verdict}", code(name));
            for block in blocks {
                match block {
                    Block::Text(text) => {
                        let _ = writeln!(out, "\n{}", fenced(text, ""));
                    }
                    other => write_block(other, out),
                }
            }
            Ok(())
        }
        Block::Image { mime, data, .. } => {
            writeln!(out, "\n*[Picture: {}, {}]*", inline(mime), words::size(words::decoded(data)))
        }
        Block::File { name, about, .. } => writeln!(out, "\n*[File: {}, {}]*", inline(name), inline(about)),
        Block::Error(text) => writeln!(out, "\n> **Error:** {}", inline(text)),
        Block::Remark(text) => writeln!(out, "\n*{text}*"),
    };
}

/// A text on one line, in which nothing has a meaning of its own.
fn inline(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::with_capacity(one_line.len());
    for c in one_line.chars() {
        if "\\`*_[]<>#|".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A name as code on one line.
fn code(name: &str) -> String {
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let ticks = "`".repeat(longest_run(&name, '`') + 1);
    let edge = if name.starts_with('`') || name.ends_with('`') || name.is_empty() { " " } else { "" };
    format!("{ticks}{edge}{name}{edge}{ticks}")
}

/// A text between fences that it does not have itself.
fn fenced(text: &str, language: &str) -> String {
    let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("> {line}").trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// A text whose code blocks all have an end, so that what follows is not taken for code.
fn closed(text: &str) -> String {
    let mut open: Option<(char, usize)> = None;
    for line in text.lines() {
        let line = line.trim_start();
        for mark in ['`', '~'] {
            let run = line.chars().take_while(|c| *c == mark).count();
            let rest = &line[run..];
            match open {
                None if run >= 3 && (mark == '~' || !rest.contains('`')) => open = Some((mark, run)),
                Some((known, least)) if known == mark && run >= least && rest.trim().is_empty() => open = None,
                _ => continue,
            }
            break;
        }
    }
    match open {
        Some((mark, run)) => format!("{text}\n{}", mark.to_string().repeat(run)),
        None => text.to_owned(),
    }
}

fn longest_run(text: &str, of: char) -> usize {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == of { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}
