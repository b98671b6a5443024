//! The history of a snapshot.

use banyan_model::SessionStatus;
use hashbrown::HashMap;

use super::nodes::Places;
use super::wire::{Reader, Writer};
use crate::state::history::{History, OldBody};
use crate::state::node::{Line, Place};

/// Statuses by the number that stands for them.
const STATUSES: [SessionStatus; 4] =
    [SessionStatus::Idle, SessionStatus::Working, SessionStatus::Done, SessionStatus::Error];

pub(super) fn write(history: &History, out: &mut Writer<'_>) {
    let History { bodies, growths, before_growth, births, metas, legacy_meta_last, statuses } = history;
    let mut places = Places::default();
    write_by_entry(bodies, out, |bodies, out| {
        out.count(bodies.len());
        for body in bodies {
            write_line((body.seq, body.place), &mut places, out);
            out.number(body.revision);
            out.number(body.weight);
            out.number(body.damaged);
        }
    });
    write_by_entry(growths, out, |lines, out| write_lines(lines, &mut places, out));
    write_by_entry(before_growth, out, |(weight, revision), out| {
        out.number(*weight);
        out.number(*revision);
    });
    write_by_entry(births, out, |line, out| write_line((line.seq.0, line.place), &mut places, out));
    write_lines(metas, &mut places, out);
    out.number(*legacy_meta_last);
    out.count(statuses.len());
    for (seq, status) in statuses {
        out.number(*seq);
        out.count(STATUSES.iter().position(|known| known == status).unwrap_or_default());
    }
}

pub(super) fn read(input: &mut Reader<'_>, sources: usize, nodes: usize) -> Option<History> {
    let places = &mut Places::among(sources);
    Some(History {
        bodies: read_by_entry(input, nodes, |input| {
            read_list(input, |input| {
                let (seq, place) = read_line(places, input)?;
                let (revision, weight) = (input.number32()?, input.number32()?);
                Some(OldBody { seq, place, revision, weight, damaged: input.flag()? })
            })
        })?,
        growths: read_by_entry(input, nodes, |input| read_list(input, |input| read_line(places, input)))?,
        before_growth: read_by_entry(input, nodes, |input| Some((input.number32()?, input.number32()?)))?,
        births: read_by_entry(input, nodes, |input| {
            let (seq, place) = read_line(places, input)?;
            Some(Line::new(seq, place))
        })?,
        metas: read_list(input, |input| read_line(places, input))?,
        legacy_meta_last: input.flag()?,
        statuses: read_list(input, |input| {
            let seq = input.number()?;
            let status = STATUSES.get(usize::from(input.number16()?))?;
            Some((seq, *status))
        })?,
    })
}

/// In the order of the entries, so that one state always gives the same bytes.
fn write_by_entry<T>(map: &HashMap<u32, T>, out: &mut Writer<'_>, mut write: impl FnMut(&T, &mut Writer<'_>)) {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(ix, _)| **ix);
    out.count(entries.len());
    for (ix, value) in entries {
        out.number(*ix);
        write(value, out);
    }
}

fn read_by_entry<T>(
    input: &mut Reader<'_>,
    nodes: usize,
    mut read: impl FnMut(&mut Reader<'_>) -> Option<T>,
) -> Option<HashMap<u32, T>> {
    let count = input.count(2)?;
    let mut map = HashMap::with_capacity(count);
    for _ in 0..count {
        let ix = input.number32().filter(|ix| (*ix as usize) < nodes)?;
        map.insert(ix, read(input)?);
    }
    (map.len() == count).then_some(map)
}

fn read_list<T>(input: &mut Reader<'_>, mut read: impl FnMut(&mut Reader<'_>) -> Option<T>) -> Option<Vec<T>> {
    let count = input.count(2)?;
    (0..count).map(|_| read(input)).collect()
}

fn write_lines(lines: &[(u64, Place)], places: &mut Places, out: &mut Writer<'_>) {
    out.count(lines.len());
    for line in lines {
        write_line(*line, places, out);
    }
}

fn write_line((seq, place): (u64, Place), places: &mut Places, out: &mut Writer<'_>) {
    out.number(seq);
    places.write(place, out);
}

fn read_line(places: &mut Places, input: &mut Reader<'_>) -> Option<(u64, Place)> {
    Some((input.number()?, places.read(input)?))
}
