//! The nodes of a snapshot. Each is told by how it differs from what would follow the one before.

use super::wire::{Reader, Writer};
use crate::id_key::IdKey;
use crate::node_kind::NodeKind;
use crate::state::node::{NO_PARENT, NO_TYPE, Node, NodeIx, Place, SourceIx, flag};

/// The fewest bytes that a node has: eleven numbers, one of them the length of an id.
const LEAST: usize = 11;

/// The first number of a node: its kind in three bits, whether its id is canonical in one, its flags in the others.
const CANONICAL: u32 = 1 << 3;
const FLAGS_AT: u32 = 4;
/// Which flags are told. The others come with the tree.
const FLAGS: u8 = flag::DAMAGED | flag::HAS_ORIGIN | flag::GROWN | flag::UNCOMMITTED | flag::PLACEHOLDER;

/// Kinds by the number that stands for them.
const KINDS: [NodeKind; 6] = [
    NodeKind::User,
    NodeKind::Assistant,
    NodeKind::FunctionResult,
    NodeKind::CustomMessage,
    NodeKind::CustomEntry,
    NodeKind::Lost,
];

pub(super) fn write(nodes: &[Node], out: &mut Writer<'_>) {
    out.count(nodes.len());
    let (mut places, mut seq, mut time) = (Places::default(), 0, 0);
    for (node, ix) in nodes.iter().zip(0_u32..) {
        let kind = KINDS.iter().position(|kind| *kind == node.kind).unwrap_or_default() as u32;
        let flags = u32::from(node.flags & FLAGS) << FLAGS_AT;
        match &node.key {
            IdKey::Canonical(bytes) => {
                out.number(kind | flags | CANONICAL);
                out.plain(bytes);
            }
            IdKey::Other(text) => {
                out.number(kind | flags);
                out.text(text);
            }
        }
        // Counted from one, since a root has none. Most entries follow the one before.
        out.difference(node.parent().map_or(0, |parent| u64::from(parent.0) + 1), u64::from(ix));
        places.write(node.place(), out);
        out.difference(node.body_seq, seq);
        out.difference(node.timestamp as u64, time);
        out.number(node.weight);
        out.number(node.revision);
        out.number(node.custom_type.wrapping_sub(NO_TYPE));
        seq = node.body_seq.wrapping_add(1);
        time = node.timestamp as u64;
    }
}

/// The nodes, with their depths still to be computed.
pub(super) fn read(input: &mut Reader<'_>, sources: usize, custom_types: usize) -> Option<Vec<Node>> {
    let count = input.count(LEAST)?;
    let mut nodes = Vec::with_capacity(count);
    let (mut places, mut seq, mut time) = (Places::among(sources), 0, 0);
    for ix in 0..u32::try_from(count).ok()? {
        let first = input.number32()?;
        let kind = *KINDS.get((first & (CANONICAL - 1)) as usize)?;
        let flags = u8::try_from(first >> FLAGS_AT).ok().filter(|flags| flags & !FLAGS == 0)?;
        let key = match first & CANONICAL {
            0 => IdKey::of(input.text()?),
            _ => IdKey::Canonical(input.array()?),
        };
        let parent = input.difference(u64::from(ix)).filter(|parent| *parent <= count as u64)?;
        let place = places.read(input)?;
        let body_seq = input.difference(seq)?;
        let timestamp = input.difference(time)?;
        seq = body_seq.wrapping_add(1);
        time = timestamp;
        nodes.push(Node {
            key,
            offset: place.offset,
            len: place.len,
            source: place.source.0,
            body_seq,
            timestamp: timestamp as i64,
            parent: parent.checked_sub(1).map_or(NO_PARENT, |parent| parent as u32),
            depth: 0,
            messages: 0,
            weight: input.number32()?,
            revision: input.number32()?,
            custom_type: read_custom_type(input, custom_types)?,
            kind,
            flags,
        });
    }
    Some(nodes)
}

fn read_custom_type(input: &mut Reader<'_>, custom_types: usize) -> Option<u16> {
    let index = input.number16()?.wrapping_add(NO_TYPE);
    (index == NO_TYPE || usize::from(index) < custom_types).then_some(index)
}

pub(super) fn write_ix(ix: Option<NodeIx>, out: &mut Writer<'_>) {
    out.number(ix.map_or(0, |ix| u64::from(ix.0) + 1));
}

/// An entry's number, or `None`; it must be one of `nodes`.
pub(super) fn read_ix(input: &mut Reader<'_>, nodes: usize) -> Option<Option<NodeIx>> {
    match input.number()?.checked_sub(1) {
        None => Some(None),
        Some(ix) => (ix < nodes as u64).then_some(Some(NodeIx(ix as u32))),
    }
}

/// Places one after the other, which in most files is where they are.
#[derive(Default)]
pub(super) struct Places {
    sources: usize,
    next: u64,
}

impl Places {
    /// Places to be read, in so many files.
    pub(super) fn among(sources: usize) -> Self {
        Self { sources, next: 0 }
    }

    pub(super) fn write(&mut self, place: Place, out: &mut Writer<'_>) {
        out.number(place.source.0);
        out.difference(place.offset, self.next);
        out.number(place.len);
        self.next = place.offset.wrapping_add(u64::from(place.len));
    }

    pub(super) fn read(&mut self, input: &mut Reader<'_>) -> Option<Place> {
        let source = input.number16().filter(|source| usize::from(*source) < self.sources)?;
        let offset = input.difference(self.next)?;
        let len = input.number32()?;
        self.next = offset.wrapping_add(u64::from(len));
        Some(Place { source: SourceIx(source), offset, len })
    }
}
