use super::*;
use crate::disk::MemDisk;

fn id() -> DirectoryId {
    "00112233445566778899aabbccddeeff".parse().unwrap()
}

fn file(length: u64, commit: u64) -> RegisteredFile {
    RegisteredFile { length, commit: CommitNo(commit), first: None, begins: None }
}

/// A register with two files, one of which is a fork and grew, and one that was removed.
fn written() -> MemDisk {
    let disk = MemDisk::new();
    disk.create_dir(layout::STATE).unwrap();
    let register = Register::default();
    register.open(&disk, id(), false).unwrap();
    let fork = RegisteredFile { begins: Some("{\"base\":1}\n".into()), ..file(10, 1) };
    register.note(&disk, id(), vec![("a.jsonl".into(), file(5, 2)), ("f.jsonl".into(), fork)]).unwrap();
    register.note(&disk, id(), vec![("f.jsonl".into(), file(30, 3)), ("g.jsonl".into(), file(1, 3))]).unwrap();
    register.note_removed("g.jsonl", CommitNo(4)).unwrap();
    disk
}

#[test]
fn the_last_line_of_a_file_counts_and_a_fork_keeps_its_beginning() {
    let contents = read(&written(), id()).unwrap();
    let fork = RegisteredFile { begins: Some("{\"base\":1}\n".into()), ..file(30, 3) };
    let expected = HashMap::from([("a.jsonl".to_owned(), file(5, 2)), ("f.jsonl".to_owned(), fork)]);
    assert_eq!(contents.files, expected);
    assert_eq!(contents.removed, HashMap::from([("g.jsonl".to_owned(), CommitNo(4))]));
}

#[test]
fn a_damaged_line_never_says_more_than_was_written() {
    let disk = written();
    let whole = disk.read_file(layout::REGISTER).unwrap();
    let known = read(&disk, id()).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        disk.write_file(layout::REGISTER, &bytes);
        match read(&disk, id()) {
            Ok(contents) => {
                assert!(!contents.damaged.is_empty(), "bit {bit}");
                for (path, found) in &contents.files {
                    // The removal may be what is lost: the journal and the log know of it as well.
                    let most = known.files.get(path).map_or(1, |known| known.length);
                    assert!(found.length <= most, "bit {bit}: {path} {found:?}");
                }
            }
            Err(absent) => assert!(matches!(absent, Absent::Unusable(_)), "bit {bit}"),
        }
    }
}

#[test]
fn a_register_of_another_directory_is_not_believed() {
    let other = "ff112233445566778899aabbccddeeff".parse().unwrap();
    assert!(matches!(read(&written(), other), Err(Absent::Unusable(_))));
    assert_eq!(read(&MemDisk::new(), other).unwrap_err(), Absent::Missing);
}

#[test]
fn a_register_that_is_opened_again_goes_on() {
    let disk = written();
    let register = Register::default();
    register.open(&disk, id(), true).unwrap();
    register.note(&disk, id(), vec![("h.jsonl".into(), file(7, 9))]).unwrap();
    let contents = read(&disk, id()).unwrap();
    assert_eq!((contents.files.len(), &contents.files["h.jsonl"]), (3, &file(7, 9)));
}
