//! The table of outcomes in `docs/on-disk.md`.

use std::collections::BTreeMap;

use super::kinds::Kind;

/// What is stated to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing is missing, and nothing needs to be said.
    Unnoticed,
    /// Nothing is missing; the file is made anew.
    Rebuilt,
    /// Nothing is missing; what was damaged is known from elsewhere.
    Repaired,
    /// Something may be missing, in the sessions of that file only, and it is reported.
    Contained,
    /// Commits may be missing that only this file had, and it is reported.
    Lost,
    /// The directory does not open, and nothing is changed.
    Refused,
}

impl Outcome {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unnoticed => "unnoticed",
            Self::Rebuilt => "rebuilt",
            Self::Repaired => "repaired",
            Self::Contained => "contained",
            Self::Lost => "lost",
            Self::Refused => "refused",
        }
    }

    fn named(name: &str) -> Option<Self> {
        let all = [Self::Unnoticed, Self::Rebuilt, Self::Repaired, Self::Contained, Self::Lost, Self::Refused];
        all.into_iter().find(|outcome| outcome.name() == name)
    }
}

/// The outcome for each kind of file and each column.
pub(super) fn table() -> BTreeMap<(Kind, &'static str), Outcome> {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/on-disk.md");
    let text = std::fs::read_to_string(docs).expect("docs/on-disk.md");
    let mut lines = text.lines().skip_while(|line| !line.starts_with("| file | flipped, zeroed |"));
    let head = cells(lines.next().expect("docs/on-disk.md has a table of outcomes"));
    let mut table = BTreeMap::new();
    for row in lines.skip(1).take_while(|line| line.starts_with('|')) {
        let row = cells(row);
        let name = row[0].trim_matches('`');
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        let kind = kind.unwrap_or_else(|| panic!("docs/on-disk.md: {name} is of no kind in kinds.rs"));
        for (column, cell) in head.iter().zip(&row).skip(1) {
            let column: &'static str = column.clone().leak();
            if *cell != "—" {
                let outcome = Outcome::named(cell).unwrap_or_else(|| panic!("docs/on-disk.md: no outcome {cell}"));
                table.insert((kind, column), outcome);
            }
        }
    }
    table
}

fn cells(line: &str) -> Vec<String> {
    line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}
