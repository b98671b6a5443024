//! Batches: a piece of a session on its way into a store, as lines of JSON. `docs/formats/batch.md` describes them.
//!
//! The first line says what is known of the session, what was told of it before, and where its active path ends now; each line after
//! it is an entry. Somebody who keeps a session up to date sends batch after batch.

use std::io::{BufRead, Write};

use banyan_model::{EntryId, LastTold, SessionEntry, SessionMeta};
use serde::{Deserialize, Serialize};

/// The version that the first line says.
pub const VERSION: u32 = 1;

/// How every batch begins.
const BEGINNING: &[u8] = b"{\"banyan_batch\":";

/// A piece of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// What the session is known by now.
    pub meta: SessionMeta,
    /// What was told of it before; nothing if it never was.
    pub told: Vec<LastTold>,
    /// Where its active path ends.
    pub leaf: Option<EntryId>,
    /// Entries, each after the one that it follows, unless the store has that one.
    pub entries: Vec<SessionEntry>,
}

#[derive(Serialize, Deserialize)]
struct First<Meta, List> {
    banyan_batch: u32,
    meta: Meta,
    told: List,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leaf: Option<EntryId>,
}

/// Whether something that begins like this is a batch.
pub fn recognise(beginning: &[u8]) -> bool {
    beginning.starts_with(BEGINNING)
}

/// Writes a batch.
pub fn write(batch: &Batch, out: &mut impl Write) -> std::io::Result<()> {
    let Batch { meta, told, leaf, entries } = batch;
    let first = First { banyan_batch: VERSION, meta, told, leaf: leaf.clone() };
    serde_json::to_writer(&mut *out, &first)?;
    for entry in entries {
        out.write_all(b"\n")?;
        serde_json::to_writer(&mut *out, entry)?;
    }
    out.write_all(b"\n")
}

/// Reads a batch, or says what is wrong with it.
pub fn read(input: impl BufRead) -> Result<Batch, String> {
    let mut lines = input.lines().enumerate();
    let wrong = |at: usize, why: &dyn std::fmt::Display| format!("line {} of the batch: {why}", at + 1);
    let Some((_, first)) = lines.next() else { return Err("the batch is empty".to_owned()) };
    let first = first.map_err(|error| wrong(0, &error))?;
    let first: First<SessionMeta, Vec<LastTold>> =
        serde_json::from_str(&first).map_err(|error| wrong(0, &error))?;
    if first.banyan_batch != VERSION {
        return Err(format!("the batch is of version {}, and only {VERSION} is known", first.banyan_batch));
    }
    let mut entries = Vec::new();
    for (at, line) in lines {
        let line = line.map_err(|error| wrong(at, &error))?;
        if !line.is_empty() {
            entries.push(serde_json::from_str(&line).map_err(|error| wrong(at, &error))?);
        }
    }
    Ok(Batch { meta: first.meta, told: first.told, leaf: first.leaf, entries })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_batch_is_read_as_it_was_written_and_a_broken_one_is_refused_by_line() {
        let meta = serde_json::json!({"session_id": "s", "title": "t", "description": "", "status": "idle",
            "message_count": 0, "created_at": 1, "updated_at": 2});
        let entry = serde_json::json!({"kind": "custom", "id": "e", "parent_id": null, "timestamp": 3, "revision": 0,
            "custom_type": "a.b", "data": {"x": 1}});
        let batch = Batch {
            meta: serde_json::from_value(meta).unwrap(),
            told: vec![LastTold { title: "old".to_owned(), ..LastTold::default() }],
            leaf: Some("e".into()),
            entries: vec![serde_json::from_value(entry).unwrap()],
        };
        let mut text = Vec::new();
        write(&batch, &mut text).unwrap();
        assert!(recognise(&text));
        assert_eq!(read(text.as_slice()).unwrap(), batch);
        text.extend_from_slice(b"{}\n");
        assert!(read(text.as_slice()).unwrap_err().starts_with("line 3 of the batch: "));
        assert_eq!(read(&b""[..]).unwrap_err(), "the batch is empty");
    }
}
