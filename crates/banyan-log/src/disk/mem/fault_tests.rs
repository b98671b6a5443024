//! Operations that are counted, and made to fail.

use super::super::shared::EIO;
use super::*;

#[test]
fn given_a_planned_crash_when_its_operation_comes_then_it_and_all_later_ones_fail() {
    let disk = MemDisk::crashable(1);
    let file = disk.create("f").unwrap();
    disk.crash_at(3);
    file.write_at(0, b"done").unwrap();

    let failures = [
        file.write_at(4, b"more").unwrap_err(),
        file.sync().unwrap_err(),
        file.len().unwrap_err(),
        file.modified().unwrap_err(),
        file.read_at(0, &mut [0]).unwrap_err(),
        file.set_len(0).unwrap_err(),
        disk.open("f").map(drop).unwrap_err(),
        disk.create("f").map(drop).unwrap_err(),
        disk.create_dir("").unwrap_err(),
        disk.list("").unwrap_err(),
        disk.rename("f", "g").unwrap_err(),
        disk.remove("f").unwrap_err(),
        disk.sync_dir("").unwrap_err(),
        disk.sync_all().unwrap_err(),
        disk.lock("lock", "me").map(drop).unwrap_err(),
    ];

    for failure in failures {
        assert!(MemDisk::is_crash(&failure));
        assert_eq!(failure.to_string(), "simulated crash");
    }
    assert!(!MemDisk::is_crash(&ErrorKind::Other.into()));
    assert!(disk.crashed());
    assert_eq!(disk.ops(), 3);
    assert_eq!(all(&disk), files(&[("f", b"done")]));
}

#[test]
fn given_every_operation_when_counted_then_each_changing_one_is_one() {
    let disk = MemDisk::crashable(1);
    let counted = |act: &dyn Fn()| {
        let before = disk.ops();
        act();
        disk.ops() - before
    };
    let file = disk.create("f").unwrap();
    assert_eq!(disk.ops(), 1);
    assert_eq!(counted(&|| disk.create("f").map(drop).unwrap()), 1);
    assert_eq!(counted(&|| disk.create_dir("a/b").unwrap()), 2);
    assert_eq!(counted(&|| disk.create_dir("a/b").unwrap()), 0);
    assert_eq!(counted(&|| file.write_at(0, b"x").unwrap()), 1);
    assert_eq!(counted(&|| file.set_len(0).unwrap()), 1);
    assert_eq!(counted(&|| file.sync().unwrap()), 1);
    assert_eq!(counted(&|| disk.rename("f", "g").unwrap()), 1);
    assert_eq!(counted(&|| disk.remove("none").unwrap()), 1);
    assert_eq!(counted(&|| disk.sync_dir("").unwrap()), 1);
    assert_eq!(counted(&|| disk.sync_all().unwrap()), 1);
    assert_eq!(counted(&|| drop(disk.lock("lock", "me").unwrap())), 0);
    assert_eq!(counted(&|| drop((file.len(), disk.list(""), disk.open("g")))), 0);
    assert_eq!(counted(&|| disk.write_file("h", b"x")), 0);
    assert_eq!(counted(&|| disk.remove_file("h")), 0);
}

#[test]
fn given_a_failed_sync_when_a_later_one_succeeds_then_the_failed_data_is_read_but_never_durable() {
    let disk = MemDisk::crashable(1);
    put_synced(&disk, "f", b"safe");
    let file = disk.open("f").unwrap().unwrap();
    file.write_at(4, b"gone").unwrap();
    disk.fail_sync_at(disk.ops() + 1);

    assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(EIO));
    file.write_at(8, b"more").unwrap();
    file.sync().unwrap();

    assert_eq!(disk.read_file("f").unwrap(), b"safegonemore");
    for fate in [Fate::LoseUnsynced, Fate::KeepAll, Fate::Random(1)] {
        let found = disk.after_crash(fate);
        assert_eq!(all(&found), files(&[("f", b"safe\0\0\0\0more")]));
    }
}

#[test]
fn given_a_failed_sync_of_a_directory_when_it_is_synced_again_then_its_changes_stay_lost() {
    type Sync = fn(&MemDisk) -> io::Result<()>;
    let syncs: [Sync; 2] = [|disk| disk.sync_dir(""), MemDisk::sync_all];
    for sync in syncs {
        let disk = MemDisk::crashable(1);
        disk.create("f").unwrap();
        disk.fail_sync_at(2);

        assert_eq!(sync(&disk).unwrap_err().raw_os_error(), Some(EIO));
        sync(&disk).unwrap();

        assert_eq!(disk.paths(), ["f"]);
        assert_eq!(all(&disk.after_crash(Fate::KeepAll)), []);
    }
}

#[test]
fn given_a_sync_planned_to_fail_when_that_operation_is_no_sync_then_it_succeeds() {
    let disk = MemDisk::crashable(1);
    disk.fail_sync_at(1);

    disk.create("f").unwrap();

    disk.sync_all().unwrap();
}

#[test]
fn given_a_full_disk_when_a_file_grows_then_it_is_refused_and_overwriting_is_not() {
    for disk in [MemDisk::new(), MemDisk::crashable(1)] {
        let file = disk.create("f").unwrap();
        file.write_at(0, b"12345678").unwrap();
        disk.set_capacity(Some(8));

        let full = |result: io::Result<()>| {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::StorageFull);
        };
        full(file.write_at(8, b"9"));
        full(file.set_len(9));
        full(disk.create("g").map(drop));
        full(disk.create_dir("d"));
        file.write_at(0, b"abcdefgh").unwrap();
        file.sync().unwrap();
        disk.create("f").unwrap();
        disk.rename("f", "h").unwrap();

        assert_eq!(all(&disk), files(&[("h", b"abcdefgh")]));
    }
}

#[test]
fn given_a_nearly_full_disk_when_a_write_does_not_fit_then_at_most_what_fits_is_written() {
    let mut lengths = BTreeSet::new();
    for seed in 0..100 {
        let disk = MemDisk::crashable(seed);
        disk.set_capacity(Some(3));
        let file = disk.create("f").unwrap();

        let refused = file.write_at(0, b"12345").unwrap_err();

        assert_eq!(refused.kind(), ErrorKind::StorageFull);
        let written = disk.read_file("f").unwrap();
        assert!(b"123".starts_with(&written));
        lengths.insert(written.len());
    }
    assert_eq!(lengths, [0, 1, 2, 3].into());
}

#[test]
fn given_a_full_disk_when_files_go_or_shrink_or_it_gets_larger_then_there_is_room_again() {
    let disk = MemDisk::crashable(1);
    for name in ["a", "b", "c"] {
        disk.create(name).unwrap().write_at(0, b"1234").unwrap();
    }
    let a = disk.open("a").unwrap().unwrap();
    disk.set_capacity(Some(12));
    let grow = |by: u64| a.set_len(a.len().unwrap() + by);
    assert_eq!(grow(1).unwrap_err().kind(), ErrorKind::StorageFull);

    disk.remove("b").unwrap();
    grow(4).unwrap();
    disk.open("c").unwrap().unwrap().set_len(1).unwrap();
    grow(3).unwrap();
    disk.rename("c", "a").unwrap();
    // The file replaced is open still, but takes no room any more.
    grow(100).unwrap();
    disk.open("a").unwrap().unwrap().set_len(12).unwrap();
    disk.write_file("a", b"");
    disk.create("d").unwrap().set_len(12).unwrap();
    disk.set_capacity(None);
    disk.create("e").unwrap().set_len(1000).unwrap();

    assert_eq!(disk.0.used.load(SeqCst), 1012);
    let found = disk.after_crash(Fate::KeepAll);
    assert_eq!(found.0.used.load(SeqCst), 1012);
}

#[test]
fn given_a_capacity_when_crashed_then_the_disk_found_is_as_full() {
    let disk = MemDisk::crashable(1);
    put_synced(&disk, "f", b"1234");
    disk.set_capacity(Some(4));

    let found = disk.after_crash(Fate::LoseUnsynced);

    let refused = found.create("g").map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::StorageFull);
}
