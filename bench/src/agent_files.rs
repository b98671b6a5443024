//! Files as coding agents leave them, made of genuine ones.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::import_agents::create;
use crate::workbench::Outcome;

/// About how many bytes a file gets.
const FILE: usize = 2_000_000;
/// The length of a UUID as text.
const UUID: usize = 36;

/// A genuine session, to be repeated.
pub(crate) struct Template {
    /// Where it lies below its agent's home.
    path: PathBuf,
    text: String,
}

impl Template {
    /// The largest of an agent's genuine sessions.
    pub(crate) fn of(agent: &str) -> Outcome<Self> {
        let home =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/banyan-agents/tests/fixtures").join(agent);
        let mut found = Vec::new();
        gather(&home, &mut found)?;
        let largest = found.into_iter().max_by_key(|path| path.metadata().map_or(0, |metadata| metadata.len()));
        let path = largest.ok_or_else(|| format!("there are no sessions of {agent} in {}", home.display()))?;
        let text = fs::read_to_string(&path)?;
        Ok(Self { path: path.strip_prefix(&home)?.to_owned(), text })
    }

    /// Writes sessions like it into a home until there are so many bytes.
    pub(crate) fn write(&self, home: &Path, bytes: u64) -> Outcome<Vec<PathBuf>> {
        let (mut files, mut written, mut number) = (Vec::new(), 0, 0);
        let name = self.path.to_str().ok_or("the name is no text")?;
        while written < bytes {
            let path = home.join(renamed(name, number, 0, &BTreeSet::new()));
            written += self.write_one(&path, number)?;
            files.push(path);
            number += 1;
        }
        Ok(files)
    }

    fn write_one(&self, path: &Path, number: u64) -> Outcome<u64> {
        let mut file = create(path)?;
        let name = self.path.to_string_lossy();
        // What names the session stays the same throughout its file.
        let kept: BTreeSet<&str> = uuids(&name).map(|at| &name[at..at + UUID]).collect();
        let (first, body) = self.text.split_once('\n').ok_or("the session has one line")?;
        let first = renamed(first, number, 0, &kept);
        writeln!(file, "{first}")?;
        let (mut size, mut round, mut last) = (first.len(), 0, None);
        while size < FILE {
            let mut text = renamed(body, number, round, &kept);
            if let Some(last) = last {
                // It goes on from where the round before ended.
                text = text.replacen("\"parentUuid\":null", &format!("\"parentUuid\":\"{last}\""), 1);
            }
            file.write_all(text.as_bytes())?;
            last = text.rfind("\"uuid\":\"").map(|at| text[at + 8..at + 8 + UUID].to_owned());
            size += text.len();
            round += 1;
        }
        file.flush()?;
        Ok(size as u64)
    }
}

fn gather(folder: &Path, found: &mut Vec<PathBuf>) -> Outcome<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_aside = path.to_string_lossy().contains("subagents") || path.ends_with("session_index.jsonl");
        if path.is_dir() {
            gather(&path, found)?;
        } else if path.extension().is_some_and(|end| end == "jsonl") && !is_aside {
            found.push(path);
        }
    }
    Ok(())
}

/// Where UUIDs are in a text.
fn uuids(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    let is_uuid = move |at: &usize| {
        bytes.get(*at..*at + UUID).is_some_and(|part| {
            part.iter().enumerate().all(|(place, byte)| match place {
                8 | 13 | 18 | 23 => *byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            })
        })
    };
    (8..bytes.len()).filter(move |at| bytes[*at] == b'-').map(|at| at - 8).filter(is_uuid)
}

/// A text with other UUIDs: the same ones for the same number and round, but for those that are kept for the number alone.
fn renamed(text: &str, number: u64, round: u64, kept: &BTreeSet<&str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for at in uuids(text).filter(|at| text.is_char_boundary(*at)) {
        if at < from {
            continue;
        }
        let own = &text[at..at + UUID];
        let round = if kept.contains(own) { 0 } else { round };
        let half = |salt: u64| {
            let mut hasher = DefaultHasher::new();
            (own, number, round, salt).hash(&mut hasher);
            hasher.finish()
        };
        let hex = format!("{:016x}{:016x}", half(1), half(2));
        out.push_str(&text[from..at]);
        out.push_str(&format!(
            "{}-{}-7{}-a{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[13..16],
            &hex[17..20],
            &hex[20..32]
        ));
        from = at + UUID;
    }
    out.push_str(&text[from..]);
    out
}

/// A short rollout of Codex.
pub(crate) fn rollout(home: &Path, number: usize) -> Outcome<PathBuf> {
    let id = format!("01a1e056-{:04x}-7272-a2a2-{number:012x}", number % 65536);
    let day = number % 28 + 1;
    let path = home.join(format!(".codex/sessions/2026/01/{day:02}/rollout-2026-01-{day:02}T03-04-05-{id}.jsonl"));
    let mut file = create(&path)?;
    writeln!(
        file,
        r#"{{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{{"id":"{id}","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/work","originator":"codex_cli_rs","cli_version":"0.166.0","source":"cli"}}}}"#
    )?;
    file.write_all(turn(number).as_bytes())?;
    file.flush()?;
    Ok(path)
}

/// A turn as Codex writes it.
pub(crate) fn turn(number: usize) -> String {
    turn_about(&number.to_string())
}

/// The same about something.
pub(crate) fn turn_about(what: &str) -> String {
    let line = |role: &str, kind: &str, text: &str| {
        format!(
            r#"{{"timestamp":"2026-01-02T03:04:06.000Z","type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text} {what}"}}]}}}}"#
        ) + "\n"
    };
    line("user", "input_text", "ask") + &line("assistant", "output_text", "answer")
}
