use super::*;
use crate::disk::MemDisk;

/// A directory that was opened once, and its id.
fn opened() -> (MemDisk, DirectoryId) {
    let disk = MemDisk::new();
    disk.create_dir(layout::STATE).unwrap();
    let (id, warnings) = open(&disk);
    assert_eq!(warnings, Vec::<String>::new());
    (disk, id)
}

fn open(disk: &MemDisk) -> (DirectoryId, Vec<String>) {
    let mut said = Recovered::default();
    let id = settle(disk, check(disk).unwrap(), &mut said).unwrap();
    (id, [said.warnings, said.notes].concat())
}

fn newer(read_by: u32, write_by: u32) -> Vec<u8> {
    checked_line::encode(&Format {
        format: 9,
        read_by,
        write_by,
        directory: "new form".into(),
        banyan: "9.9.9".into(),
    })
}

#[test]
fn the_id_stays_and_is_in_two_files() {
    let (disk, id) = opened();
    assert_eq!(disk.read_file(layout::FORMATS[0]), disk.read_file(layout::FORMATS[1]));
    assert_eq!(open(&disk), (id, Vec::new()));
    let text = String::from_utf8(disk.read_file(layout::FORMATS[0]).unwrap()).unwrap();
    assert!(
        text.starts_with(&format!("{{\"format\":1,\"read_by\":1,\"write_by\":1,\"directory\":\"{id}\",")),
        "{text}"
    );
}

#[test]
fn whichever_bit_is_flipped_in_one_copy_the_other_restores_it() {
    for path in layout::FORMATS {
        let (disk, id) = opened();
        let whole = disk.read_file(path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            disk.write_file(path, &bytes);
            let (found, warnings) = open(&disk);
            assert_eq!(found, id, "bit {bit} of {path}");
            assert!(warnings.len() == 1 && warnings[0].starts_with(path), "{warnings:?}");
            assert_eq!(disk.read_file(path).unwrap(), whole);
        }
        disk.remove_file(path);
        assert_eq!(open(&disk).0, id);
        assert_eq!(disk.read_file(path).unwrap(), whole);
    }
}

#[test]
fn two_damaged_copies_are_refused_and_left() {
    let (disk, _) = opened();
    for path in layout::FORMATS {
        disk.write_file(path, b"{\"format\":1}");
    }
    let error = check(&disk).err().unwrap();
    assert!(matches!(&error, LogError::Damaged { path, .. } if path == layout::FORMATS[0]), "{error}");
    assert_eq!(disk.read_file(layout::FORMATS[1]).unwrap(), b"{\"format\":1}");
}

#[test]
fn a_newer_directory_is_refused_by_its_number_and_says_who_wrote_it() {
    for (read_by, write_by) in [(9, 9), (1, 9)] {
        let (disk, _) = opened();
        // One copy is enough: the other may have been restored by an older build.
        disk.write_file(layout::FORMATS[1], &newer(read_by, write_by));
        let error = check(&disk).err().unwrap().to_string();
        assert!(error.contains("9.9.9") && error.contains("format 9"), "{error}");
    }
}

#[test]
fn a_newer_format_that_this_build_may_write_is_opened() {
    let disk = MemDisk::new();
    let id = "00112233445566778899aabbccddeeff";
    let text = checked_line::encode(&Format {
        format: 9,
        read_by: 1,
        write_by: 1,
        directory: id.into(),
        banyan: "9.9.9".into(),
    });
    disk.write_file(layout::FORMATS[0], &text);
    let (found, _) = open(&disk);
    assert_eq!(found.to_string(), id);
    assert_eq!(disk.read_file(layout::FORMATS[1]).unwrap(), text, "the number is not lowered");
}

#[test]
fn a_directory_without_the_file_is_taken_over_once() {
    let disk = MemDisk::new();
    disk.create_dir(layout::WAL).unwrap();
    let (id, warnings) = open(&disk);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(open(&disk), (id, Vec::new()));
}

#[test]
fn an_id_has_one_form() {
    let id: DirectoryId = "00112233445566778899aabbccddeeff".parse().unwrap();
    assert_eq!(id.to_string(), "00112233445566778899aabbccddeeff");
    for wrong in [
        "",
        "0011",
        "00112233445566778899AABBCCDDEEFF",
        "+0112233445566778899aabbccddeeff",
        "0 112233445566778899aabbccddeeff",
    ] {
        assert_eq!(wrong.parse::<DirectoryId>(), Err(NotADirectoryId));
    }
}
