//! What was measured, as a table for people.

use std::fmt::Write;

use crate::machine;
use crate::workbench::{Outcome, Workbench};

/// Whether a figure is as good as it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    Missed,
    /// Nothing is asked of it.
    Shown,
}

impl Verdict {
    pub(crate) fn of(met: bool) -> Self {
        if met { Self::Met } else { Self::Missed }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "**missed**",
            Self::Shown => "",
        }
    }
}

/// One line of the table.
pub(crate) struct Row {
    pub(crate) work: String,
    pub(crate) figure: String,
    pub(crate) peers: String,
    pub(crate) ratio: String,
    pub(crate) target: String,
    pub(crate) verdict: Verdict,
}

impl Row {
    /// A row that shows a figure and compares it with nothing.
    pub(crate) fn shown(work: impl Into<String>, figure: impl Into<String>) -> Self {
        Self {
            work: work.into(),
            figure: figure.into(),
            peers: String::new(),
            ratio: String::new(),
            target: String::new(),
            verdict: Verdict::Shown,
        }
    }

    pub(crate) fn beside(self, peers: impl Into<String>) -> Self {
        Self { peers: peers.into(), ..self }
    }

    pub(crate) fn ratio(self, ratio: f64) -> Self {
        Self { ratio: format!("{ratio:.2}"), ..self }
    }

    pub(crate) fn target(self, target: impl Into<String>, met: bool) -> Self {
        Self { target: target.into(), verdict: Verdict::of(met), ..self }
    }

    fn as_line(&self) -> String {
        let Self { work, figure, peers, ratio, target, verdict } = self;
        format!("| {work} | {figure} | {peers} | {ratio} | {target} | {} |\n", verdict.as_str())
    }
}

/// The rows of one kind of work, and what a reader should know about them.
#[derive(Default)]
pub(crate) struct Section {
    pub(crate) rows: Vec<Row>,
    pub(crate) method: Vec<String>,
    /// Where Banyan is slower, or larger, than one might hope.
    pub(crate) losing: Vec<String>,
}

impl Section {
    pub(crate) fn as_text(&self) -> String {
        let mut text: String = self.rows.iter().map(Row::as_line).collect();
        for note in self.method.iter().chain(&self.losing) {
            let _ = writeln!(text, "  - {note}");
        }
        text
    }
}

/// A whole run.
pub(crate) struct Report {
    pub(crate) load_before: String,
    pub(crate) load_after: String,
    pub(crate) sections: Vec<Section>,
    machine: String,
    rounds: usize,
    quick: bool,
}

impl Report {
    pub(crate) fn begin(bench: &Workbench) -> Outcome<Self> {
        let machine = format!("{}, {}", machine::description()?, machine::file_system(bench.path())?);
        Ok(Self {
            load_before: machine::load_average()?,
            load_after: String::new(),
            sections: Vec::new(),
            machine,
            rounds: bench.rounds(),
            quick: bench.quick(),
        })
    }

    pub(crate) fn end(&mut self) -> Outcome<()> {
        self.load_after = machine::load_average()?;
        Ok(())
    }

    pub(crate) fn as_page(&self) -> String {
        let mut page = String::from("# Benchmarks\n\n");
        page.push_str("Written by `make bench`: Banyan and its peers in one process, in one run.\n\n");
        if self.quick {
            page.push_str("**A quick run**, with fewer rounds and smaller sizes: a first impression only.\n\n");
        }
        page.push_str("| work | Banyan | peers | ratio | target | |\n|---|---|---|---|---|---|\n");
        for row in self.sections.iter().flat_map(|section| &section.rows) {
            page.push_str(&row.as_line());
        }
        self.write_method(&mut page);
        self.write_losing(&mut page);
        page
    }

    fn write_method(&self, page: &mut String) {
        let _ = write!(
            page,
            "\n## Method\n\n- {}. Load average (1, 5, 15 minutes) {} before and {} after the run.\n\
             - A figure is the median of {} rounds; in a round everything that is compared takes its turn, one after \
             another. The figures of the slowest and the fastest round are in brackets.\n\
             - Text is 1 KiB a message. Answers leave after the flush, unless a row says otherwise.\n",
            self.machine, self.load_before, self.load_after, self.rounds
        );
        for note in self.sections.iter().flat_map(|section| &section.method) {
            let _ = writeln!(page, "- {note}");
        }
    }

    fn write_losing(&self, page: &mut String) {
        page.push_str("\n## Losing cases\n\n");
        let missed =
            self.sections.iter().flat_map(|section| &section.rows).filter(|row| row.verdict == Verdict::Missed);
        let missed: Vec<String> =
            missed.map(|row| format!("{}: {}, asked for {}.", row.work, row.figure, row.target)).collect();
        let losing = self.sections.iter().flat_map(|section| &section.losing);
        let mut any = false;
        for note in missed.iter().chain(losing) {
            any = true;
            let _ = writeln!(page, "- {note}");
        }
        if !any {
            page.push_str("None in this run.\n");
        }
    }
}
