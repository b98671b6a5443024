//! The whole state in few bytes, so that a long session comes back without reading its records.
//!
//! A snapshot can always be made again from the records: whatever is wrong with one, it is left aside and they are
//! read. Path, depths and ids are not in it, for they follow from the nodes.

mod history;
mod nodes;
mod wire;

use std::sync::Arc;

use banyan_model::CommitNo;

use super::by_id::ById;
use super::growing::Growing;
use super::node::Source;
use super::{NodeIx, SessionState};
use crate::born::Born;
use crate::fork_ids::InheritedIds;
use crate::record::Attached;
use nodes::{read_ix, write_ix};
use wire::{Reader, Writer};

/// What a snapshot begins with. Its number is raised when the form changes, and whenever the same records would make
/// another state than before.
const FORM: &[u8; 16] = b"banyan state 04\n";

impl SessionState {
    /// Appends the state's snapshot. The growing entry's message is not in it, nor that its line is open: take it where
    /// a line of the log ends, so that what comes later can be applied from there on.
    pub fn to_snapshot(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(FORM);
        self.write(&mut Writer(out));
        let crc = crc32c::crc32c(&out[start..]);
        out.extend_from_slice(&crc.to_le_bytes());
    }

    /// The state that a snapshot tells; `None` when it is not one of this version, or not as it was written. Lines after
    /// it are applied as usual, and then [`SessionState::finish`] ends the load.
    pub fn from_snapshot(bytes: &[u8]) -> Option<Self> {
        let (covered, crc) = bytes.split_last_chunk()?;
        let told = covered.strip_prefix(FORM)?;
        if u32::from_le_bytes(*crc) != crc32c::crc32c(covered) {
            return None;
        }
        let mut input = Reader::new(told);
        let state = Self::read(&mut input)?;
        input.is_at_end().then_some(state)
    }

    fn write(&self, out: &mut Writer<'_>) {
        // Every field is named, so that a new one cannot be forgotten.
        let Self {
            session_id,
            meta,
            metadata: _,
            metadata_in_doubt,
            metadata_bytes: _,
            spare: _,
            exists,
            next_seq,
            slack,
            last_commit,
            nodes,
            by_id: _,
            leaf,
            path: _,
            cyclic: _,
            relink,
            sources,
            base,
            growing,
            history,
            custom_types,
            attachments,
            damaged_lines,
            leaf_at_damage,
            // Only what is a session gets an image.
            importing: _,
            legacy_leaf_pending,
            inherited,
            // Nor does one that a newer Banyan wrote to.
            newer: _,
        } = self;
        out.text(session_id.as_str());
        out.json(meta.as_ref());
        out.json(base);
        out.json(&attachments.values().collect::<Vec<_>>());
        out.number(*metadata_in_doubt);
        out.number(*exists);
        out.number(*next_seq);
        out.number(*slack);
        out.number(last_commit.0);
        out.number(*damaged_lines);
        out.number(*relink);
        out.number(*legacy_leaf_pending);
        out.count(sources.len());
        for source in sources {
            out.text(source.session_id.as_str());
            out.plain(&source.born.0);
            out.number(source.ids.is_some());
            if let Some(ids) = &source.ids {
                out.plain(&ids.to_bytes());
            }
        }
        out.count(custom_types.len());
        for custom_type in custom_types {
            out.text(custom_type);
        }
        nodes::write(nodes, out);
        out.number(*inherited);
        write_ix(*leaf, out);
        out.number(leaf_at_damage.is_some());
        write_ix(leaf_at_damage.flatten(), out);
        write_ix(growing.as_ref().map(Growing::node), out);
        history::write(history, out);
    }

    fn read(input: &mut Reader<'_>) -> Option<Self> {
        let mut state = Self::begin(input.text()?.into());
        state.meta = Arc::new(input.json()?);
        state.base = input.json()?;
        let attachments: Vec<Attached> = input.json()?;
        state.attachments =
            attachments.into_iter().map(|one| (one.attachment.attachment_id.clone(), one)).collect();
        state.share_metadata();
        if input.flag()? {
            state.doubt_metadata(&mut Vec::new());
        }
        state.exists = input.flag()?;
        state.next_seq = input.number()?;
        state.slack = input.number().filter(|slack| *slack <= state.next_seq)?;
        state.last_commit = CommitNo(input.number()?);
        state.damaged_lines = input.number()?;
        let relink = input.flag()?;
        state.legacy_leaf_pending = input.flag()?;
        state.sources = read_sources(input)?;
        for _ in 0..input.count(1)? {
            state.custom_types.push(input.text()?.into());
        }
        state.nodes = nodes::read(input, state.sources.len(), state.custom_types.len())?;
        let count = state.nodes.len();
        state.inherited = input.number32().filter(|inherited| *inherited as usize <= count)?;
        state.leaf = read_ix(input, count)?;
        let damage_was_seen = input.flag()?;
        let leaf_at_damage = read_ix(input, count)?;
        state.leaf_at_damage = damage_was_seen.then_some(leaf_at_damage);
        state.growing = read_ix(input, count)?.map(Growing::unread);
        state.history = history::read(input, state.sources.len(), count)?;
        state.by_id = ids_of(&state)?;
        state.relink(&mut Vec::new());
        state.relink = relink;
        Some(state)
    }
}

fn read_sources(input: &mut Reader<'_>) -> Option<Vec<Source>> {
    let mut sources = Vec::new();
    for _ in 0..input.count(18)? {
        let (session_id, born) = (input.text()?.into(), Born(input.array()?));
        let ids = if input.flag()? { Some(InheritedIds::from_bytes(&input.array()?)) } else { None };
        sources.push(Source { session_id, born, ids });
    }
    (!sources.is_empty()).then_some(sources)
}

/// The entries by id; `None` when two have the same.
fn ids_of(state: &SessionState) -> Option<ById> {
    let mut by_id = ById::default();
    by_id.reserve(state.nodes.len(), &state.nodes);
    let mut all = (0..state.nodes.len() as u32).map(NodeIx);
    all.all(|ix| by_id.add(ix, &state.nodes)).then_some(by_id)
}
