use proptest::prelude::*;

use super::super::frame::FrameWriter;
use super::*;

const ID: u64 = 9;
const FIRST: u64 = 5_000;
const SIZE: usize = 16 << 10;

/// A segment of zeros with frames of these lengths in it, each a batch of its own, and where each frame starts.
fn written(segment: u64, lengths: &[usize]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = header(segment).to_vec();
    let mut starts = Vec::new();
    for (commit, len) in (FIRST..).zip(lengths) {
        starts.push(bytes.len());
        let mut frame = FrameWriter::begin(&mut bytes, segment, CommitNo(commit));
        frame.push(&Op::Flushed { through: CommitNo(commit - 1) });
        frame.push(&Op::Write { path: "a session.jsonl", offset: commit * 700, bytes: &vec![b'x'; *len] });
        frame.push(&Op::Write { path: ".banyan/journal/0.log", offset: commit * 60, bytes: &[b'j'; 60] });
        frame.finish();
    }
    starts.push(bytes.len());
    bytes.resize(SIZE, 0);
    (bytes, starts)
}

fn header(segment: u64) -> [u8; HEADER] {
    let disk = crate::disk::MemDisk::new();
    let file = crate::disk::Disk::create(&disk, "x").unwrap();
    let directory = "00112233445566778899aabbccddeeff".parse().unwrap();
    segment::Segment { id: segment, file, size: 0, at: 0 }.header(CommitNo(FIRST), directory)
}

fn used(bytes: &[u8], next: Option<u64>) -> Scanned {
    match scan(ID, bytes, next.map(CommitNo)).unwrap() {
        Contents::Used(scanned) => scanned,
        other => panic!("{other:?}"),
    }
}

fn commits(scanned: &Scanned) -> Vec<u64> {
    scanned.frames.iter().map(|span| span.commit.0 - FIRST).collect()
}

fn lost(scanned: &Scanned) -> Vec<(u64, u64, bool)> {
    scanned.holes.iter().map(|hole| (hole.first.0 - FIRST, hole.last.0 - FIRST, hole.was_whole)).collect()
}

#[test]
fn every_flip_in_the_header_leaves_all_frames() {
    let (bytes, _) = written(ID, &[10, 20, 30]);
    for bit in 0..28 * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        for next in [Some(FIRST), None] {
            let scanned = used(&bytes, next);
            assert!(scanned.header_damaged && scanned.holes.is_empty(), "bit {bit}: {scanned:?}");
            assert_eq!(commits(&scanned), [0, 1, 2]);
        }
    }
}

#[test]
fn whichever_bit_is_flipped_its_commit_alone_is_lost_and_is_named() {
    let (bytes, starts) = written(ID, &[10, 500, 3, 1200, 40]);
    for bit in HEADER * 8..starts[5] * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let scanned = used(&bytes, None);
        let hit = starts.iter().rposition(|start| bit / 8 >= *start).unwrap() as u64;
        let others: Vec<u64> = (0..5).filter(|commit| *commit != hit).collect();
        assert_eq!((commits(&scanned), lost(&scanned)), (others, vec![(hit, hit, true)]), "bit {bit}");
    }
}

#[test]
fn the_file_that_a_lost_commit_wrote_to_is_named() {
    let (mut bytes, starts) = written(ID, &[10, 500, 3]);
    bytes[starts[2] - 1] ^= 4;
    let hole = used(&bytes, None).holes.remove(0);
    assert_eq!((hole.at, hole.end), (starts[1], starts[2]));
    assert_eq!(hole.files, [("a session.jsonl".to_owned(), (FIRST + 1) * 700)]);
}

#[test]
fn a_write_that_was_cut_off_is_no_damage() {
    let (bytes, starts) = written(ID, &[700, 900]);
    for end in starts[1]..starts[2] {
        let mut bytes = bytes.clone();
        bytes[end..].fill(0);
        let scanned = used(&bytes, None);
        assert_eq!(commits(&scanned), [0]);
        assert!(scanned.holes.iter().all(|hole| !hole.was_whole), "cut at {end}: {scanned:?}");
    }
}

#[test]
fn a_batch_with_a_sector_that_was_never_written_is_no_damage() {
    let mut bytes = header(ID).to_vec();
    let mut starts = Vec::new();
    for commit in FIRST..FIRST + 4 {
        starts.push(bytes.len());
        let mut frame = FrameWriter::begin(&mut bytes, ID, CommitNo(commit));
        frame.push(&Op::Write { path: "a", offset: 0, bytes: &[b'x'; 2000] });
        frame.finish();
    }
    bytes.resize(SIZE, 0);
    let sector = (starts[1] + 600) / SECTOR * SECTOR;
    bytes[sector..sector + SECTOR].fill(0);
    assert_eq!(lost(&used(&bytes, None)), [(1, 1, false)]);
}

#[test]
fn what_an_earlier_segment_left_in_the_file_is_passed_over() {
    let (old, _) = written(ID - 2, &[600; 20]);
    let (new, starts) = written(ID, &[50; 10]);
    let mut bytes = old;
    bytes[..starts[10]].copy_from_slice(&new[..starts[10]]);
    let scanned = used(&bytes, None);
    assert_eq!(commits(&scanned), (0..10).collect::<Vec<_>>());
    assert!(scanned.holes.iter().all(|hole| !hole.was_whole), "{:?}", scanned.holes);
}

#[test]
fn a_file_without_frames_is_known_for_what_it_is() {
    let zeros = vec![0; SIZE];
    let (other, _) = written(ID - 2, &[10]);
    let mut begun = zeros.clone();
    begun[..20].copy_from_slice(&header(ID)[..20]);
    let mut torn = zeros.clone();
    torn[700..800].fill(7);
    let garbage = vec![0x5a; SIZE];
    let is = |bytes: &[u8]| scan(ID, bytes, None).unwrap();
    assert!(matches!(is(&zeros), Contents::Unused));
    assert!(matches!(is(&[]), Contents::Unused));
    assert!(matches!(is(&other), Contents::Unused));
    assert!(matches!(is(&begun), Contents::Unfinished));
    assert!(matches!(is(&torn), Contents::Unfinished));
    assert!(matches!(is(&garbage), Contents::Unreadable));
    let mut newer = garbage;
    newer[..8].copy_from_slice(b"BANYANW2");
    assert!(matches!(scan(ID, &newer, None), Err(LogError::Newer { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every frame that no damage touched is found, and nothing else.
    #[test]
    fn frames_that_damage_did_not_touch_are_found(
        lengths in proptest::collection::vec(0..900_usize, 1..12),
        at in 0..8_000_usize,
        len in 1..1_500_usize,
        fill in any::<u8>(),
    ) {
        let (mut bytes, starts) = written(ID, &lengths);
        let before = bytes.clone();
        let end = (at + len).min(SIZE);
        bytes[at..end].fill(fill);
        let whole: Vec<u64> = (0..lengths.len())
            .filter(|n| bytes[starts[*n]..starts[n + 1]] == before[starts[*n]..starts[n + 1]])
            .map(|n| n as u64)
            .collect();
        match scan(ID, &bytes, Some(CommitNo(FIRST))).unwrap() {
            Contents::Used(scanned) => prop_assert_eq!(commits(&scanned), whole),
            _ => prop_assert!(whole.is_empty()),
        }
    }
}

#[test]
fn a_frame_that_was_moved_is_found_and_what_it_was_written_over_is_damage() {
    let (bytes, starts) = written(ID, &[10, 20, 300]);
    // The second frame changes places with the beginning of the last one.
    let len = starts[2] - starts[1];
    let mut moved = bytes.clone();
    let (before, after) = moved.split_at_mut(starts[2]);
    before[starts[1]..starts[1] + len].swap_with_slice(&mut after[..len]);
    let scanned = used(&moved, Some(FIRST));
    assert_eq!(commits(&scanned), [0, 1]);
    assert_eq!(lost(&scanned), [(2, 2, true)]);
}
