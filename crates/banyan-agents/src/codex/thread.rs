//! A thread: its rollouts one after another, each after the prefix that it goes on from.

use std::path::Path;

use banyan_model::Json;
use serde::{Deserialize, Serialize};

use super::lineage::{self, Names, Prefix};
use super::meta::Meta;
use super::read::{Finished, Rollout, State, ids_of};
use crate::lines::{Between, Lines};
use crate::telling::{Telling, parse};
use crate::{Mark, Note, Problem, Sink, Source};

/// Where the reading of a thread was left off.
#[derive(Debug, Serialize, Deserialize)]
struct Left {
    telling: Telling,
    files: Vec<LeftFile>,
}

/// Where the reading of one rollout was left off.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LeftFile {
    id: String,
    /// From where it is read again: a response that may not be complete is read again from its beginning.
    from: Between,
    /// Whatever begins before was told.
    told: u64,
    state: State,
}

/// Reads a thread, or what is new in it.
pub(super) fn read(source: &Source, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
    let files = lineage::files_of(source);
    let left: Option<Left> = parse(mark);
    let first = Meta::of(&lineage::first_line(&source.path)?);
    let name = lineage::home_of(&source.path).map(Names::of);
    let (_, thread) = ids_of(&source.path);
    let name = name.and_then(|names| names.of_thread(&thread));
    let shown = source.path.to_string_lossy();
    let mut telling = first.telling(&thread, &shown, lineage::is_archived(&source.path), name);
    if let Some(left) = &left {
        telling.resume(&left.telling);
    }
    let known = left.map(|left| left.files).unwrap_or_default();
    if known.iter().any(|file| file.told > 0) {
        telling.tell(sink)?;
    }
    let mut read = Vec::new();
    for file in &files {
        let (id, _) = ids_of(file);
        let known = known.iter().find(|known| known.id == id);
        read.push(rollout(file, id, known, read.is_empty(), &mut telling, sink)?);
    }
    if let Some(tip) = read.iter().rev().find_map(|(_, tip)| tip.as_ref()) {
        sink.leaf(&telling.head.session, tip)?;
    }
    telling.end(sink)?;
    let files = read.into_iter().map(|(left, _)| left).collect();
    Ok(Mark(Json::of(&Left { telling, files })?))
}

type Read = (LeftFile, Option<banyan_model::EntryId>);

fn rollout(
    path: &Path,
    id: String,
    known: Option<&LeftFile>,
    is_first: bool,
    telling: &mut Telling,
    sink: &mut dyn Sink,
) -> Result<Read, Problem> {
    let session = telling.head.session.clone();
    let mut lines = Lines::open(path, known.map(|known| known.from).unwrap_or_default())?;
    let mut told = 0;
    // Until its first line is there, nobody knows what a rollout goes on from.
    let state = match known.filter(|known| known.told > 0 && !lines.anew()) {
        Some(known) => {
            told = known.told;
            known.state.clone()
        }
        None => {
            lines = Lines::open(path, Between::default())?;
            before(path, is_first, telling, sink)?
        }
    };
    let mut rollout = Rollout::new(session, &id, telling, state);
    rollout.told = told;
    let end = lines.each(sink, |line, sink| rollout.line(line, sink))?;
    let Finished { from, before: state, now } = rollout.finish(sink)?;
    telling.head.updated_at = telling.head.updated_at.max(now.at());
    let from = match from {
        Some((offset, lines)) => Lines::between(path, offset, lines)?,
        None => end,
    };
    Ok((LeftFile { id, from, told: end.offset, state }, now.tip))
}

/// What a rollout goes on from: told as part of this session, unless an earlier rollout of the thread did that.
fn before(path: &Path, is_first: bool, telling: &mut Telling, sink: &mut dyn Sink) -> Result<State, Problem> {
    let meta = Meta::of(&lineage::first_line(path)?);
    let (prefixes, missing) = lineage::prefixes(path, &meta)?;
    if let Some(missing) = missing {
        let what = format!("it goes on from rollout {missing}, which is not there");
        sink.note(Note { place: path.display().to_string(), what, lost: true });
    }
    let mut state = State::default();
    for Prefix { path, ordinal, offset } in prefixes {
        let (id, _) = ids_of(&path);
        let mut rollout = Rollout::new(telling.head.session.clone(), &id, telling, state);
        rollout.told = if is_first { 0 } else { u64::MAX };
        rollout.end = ordinal;
        let lines = Lines::open(&path, Between::default())?.until(offset);
        lines.each(sink, |line, sink| rollout.line(line, sink))?;
        state = rollout.finish(sink)?.now;
    }
    Ok(state)
}
