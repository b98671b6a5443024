//! Standard output, and how it may be written to.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Standard output: buffered, coloured only for people.
pub(crate) struct Screen {
    out: BufWriter<Stdout>,
    columns: Option<usize>,
    coloured: bool,
}

/// What a piece of text is, for its colour.
#[derive(Clone, Copy)]
pub(crate) enum Style {
    /// The name of what follows.
    Heading,
    /// The person who speaks.
    User,
    /// The assistant who speaks.
    Assistant,
    /// Not prose.
    Code,
    /// Less important than the rest.
    Aside,
    /// Well.
    Good,
    /// Going on.
    Busy,
    /// Not well.
    Bad,
}

impl Screen {
    pub(crate) fn new() -> Self {
        let terminal = io::stdout().is_terminal();
        let columns = terminal.then(|| terminal_size::terminal_size().map_or(80, |(width, _)| width.0.into()));
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { out: BufWriter::new(io::stdout()), columns, coloured: terminal && !plain }
    }

    /// How wide the terminal is; none when output does not go to one.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// Whether a person is looking.
    pub(crate) fn is_terminal(&self) -> bool {
        self.columns.is_some()
    }

    /// Text in its colour, when there is colour.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Heading => "1",
            Style::User => "1;36",
            Style::Assistant => "1;35",
            Style::Code => "36",
            Style::Aside => "2",
            Style::Good => "32",
            Style::Busy => "33",
            Style::Bad => "31",
        };
        // Each line for itself, so that a reader that cuts lines out keeps whole colours.
        let painted = |line: &str| format!("\x1b[{code}m{line}\x1b[0m");
        match self.coloured && !text.is_empty() {
            true => text.split('\n').map(painted).collect::<Vec<_>>().join("\n"),
            false => text.to_owned(),
        }
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, line: &str) -> Result<(), Failure> {
        Ok(writeln!(self.out, "{line}")?)
    }

    /// Writes a value as one line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.out, value).map_err(io::Error::from)?;
        self.line("")
    }

    /// Writes text that has no end of line yet, and shows it at once.
    pub(crate) fn now(&mut self, text: &str) -> Result<(), Failure> {
        self.out.write_all(text.as_bytes())?;
        self.flush()
    }

    /// Writes bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.out.write_all(bytes)?)
    }

    /// Leaves out what could not be written.
    pub(crate) fn forget(&mut self) {
        self.out = BufWriter::new(io::stdout());
    }

    /// Hands on what was written.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}
