//! What a power cut may and may not take.

use super::super::inode::{SECTOR, sectors};
use super::*;

#[test]
fn given_only_synced_data_when_crashed_then_no_fate_loses_it() {
    let disk = MemDisk::crashable(1);
    disk.create_dir("a").unwrap();
    disk.sync_dir("").unwrap();
    put_synced(&disk, "a/f", b"safe");

    let fates = (0..100).map(Fate::Random);
    for fate in fates.chain([Fate::LoseUnsynced, Fate::KeepAll, Fate::TornLast]) {
        let found = disk.after_crash(fate);
        assert_eq!(all(&found), files(&[("a/f", b"safe")]), "{fate:?}");
        assert_eq!(found.ops(), 0);
    }
}

#[test]
fn given_unsynced_changes_when_lost_then_the_file_is_as_at_its_last_sync() {
    let disk = MemDisk::crashable(1);
    put_synced(&disk, "f", b"first");
    let file = disk.open("f").unwrap().unwrap();
    file.write_at(5, b" second").unwrap();
    file.set_len(3).unwrap();

    let lost = disk.after_crash(Fate::LoseUnsynced);
    let kept = disk.after_crash(Fate::KeepAll);

    assert_eq!(all(&lost), files(&[("f", b"first")]));
    assert_eq!(all(&kept), files(&[("f", b"fir")]));
}

#[test]
fn given_a_synced_file_when_its_directory_is_not_synced_then_it_can_be_lost() {
    let disk = MemDisk::crashable(1);
    let file = disk.create("f").unwrap();
    file.write_at(0, b"x").unwrap();
    file.sync().unwrap();

    assert_eq!(all(&disk.after_crash(Fate::LoseUnsynced)), []);
    assert_eq!(outcomes(&disk, all), [files(&[]), files(&[("f", b"x")])].into());
}

#[test]
fn given_a_synced_directory_when_its_parent_is_not_synced_then_it_can_be_lost() {
    let disk = MemDisk::crashable(1);
    disk.create_dir("a").unwrap();
    put_synced(&disk, "a/f", b"x");

    assert_eq!(all(&disk.after_crash(Fate::LoseUnsynced)), []);
    disk.sync_dir("").unwrap();
    let found = disk.after_crash(Fate::LoseUnsynced);
    assert_eq!(all(&found), files(&[("a/f", b"x")]));
}

#[test]
fn given_everything_dirty_when_all_is_synced_then_nothing_can_be_lost() {
    let disk = MemDisk::crashable(1);
    disk.create_dir("a/b").unwrap();
    disk.create("a/b/f").unwrap().write_at(0, b"x").unwrap();
    disk.create("tmp").unwrap().write_at(0, b"y").unwrap();
    disk.rename("tmp", "a/g").unwrap();

    disk.sync_all().unwrap();

    let found = disk.after_crash(Fate::LoseUnsynced);
    assert_eq!(all(&found), files(&[("a/b/f", b"x"), ("a/g", b"y")]));
}

#[test]
fn given_an_unsynced_replacement_when_crashed_then_the_old_or_the_new_file_is_found() {
    let disk = MemDisk::crashable(1);
    put_synced(&disk, "f", b"old");
    let tmp = disk.create("tmp").unwrap();
    tmp.write_at(0, b"new").unwrap();
    tmp.sync().unwrap();
    disk.sync_dir("").unwrap();
    disk.rename("tmp", "f").unwrap();

    let old = files(&[("f", b"old"), ("tmp", b"new")]);
    let new = files(&[("f", b"new")]);
    assert_eq!(all(&disk.after_crash(Fate::LoseUnsynced)), old);
    assert_eq!(all(&disk.after_crash(Fate::KeepAll)), new);
    assert_eq!(outcomes(&disk, all), [old, new].into());
}

#[test]
fn given_a_rename_into_a_new_directory_when_either_side_is_synced_then_the_file_is_in_one_place() {
    for synced in ["", "new/er"] {
        let disk = MemDisk::crashable(1);
        put_synced(&disk, "f", b"x");
        disk.create_dir("new/er").unwrap();
        disk.rename("f", "new/er/f").unwrap();
        let places = [files(&[("f", b"x")]), files(&[("new/er/f", b"x")])];
        assert_eq!(outcomes(&disk, all), places.clone().into());

        disk.sync_dir(synced).unwrap();

        assert_eq!(all(&disk.after_crash(Fate::LoseUnsynced)), places[1]);
    }
}

#[test]
fn given_a_move_made_durable_by_its_source_when_the_target_is_synced_later_then_the_newest_wins() {
    let disk = MemDisk::crashable(1);
    disk.create_dir("a").unwrap();
    disk.sync_dir("").unwrap();
    put_synced(&disk, "f", b"moved");
    disk.create("a/f").unwrap();
    disk.rename("f", "a/f").unwrap();
    disk.sync_dir("").unwrap();

    disk.sync_dir("a").unwrap();

    let found = disk.after_crash(Fate::LoseUnsynced);
    assert_eq!(all(&found), files(&[("a/f", b"moved")]));
}

#[test]
fn given_two_renames_when_only_the_second_survives_then_both_names_are_the_same_file() {
    let disk = MemDisk::crashable(1);
    put_synced(&disk, "a", b"x");
    disk.rename("a", "b").unwrap();
    disk.rename("b", "c").unwrap();

    let mut found = (0..400).map(|seed| disk.after_crash(Fate::Random(seed)));
    let both = found.find(|found| found.paths() == ["a", "c"]).unwrap();
    both.open("a").unwrap().unwrap().write_at(0, b"y").unwrap();

    assert_eq!(all(&both), files(&[("a", b"y"), ("c", b"y")]));
}

#[test]
fn given_names_that_come_and_go_when_synced_then_removed_ones_are_not_remembered_for_ever() {
    let disk = MemDisk::crashable(1);
    for round in 0..200 {
        let name = format!("tmp-{round}");
        disk.create(&name).unwrap();
        disk.sync_dir("").unwrap();
        disk.remove(&name).unwrap();
        disk.sync_dir("").unwrap();
    }

    assert_eq!(all(&disk.after_crash(Fate::LoseUnsynced)), []);
    assert!(read(&disk.0.tree).dirs[""].durable.len() < 20);
    assert!(read(&disk.0.tree).pending.is_empty());
}

#[test]
fn given_unsynced_writes_when_fate_is_random_then_they_are_lost_kept_torn_and_reordered() {
    let disk = MemDisk::crashable(1);
    put_synced(&disk, "f", b"");
    let file = disk.open("f").unwrap().unwrap();
    file.write_at(0, &[1; 2 * SECTOR]).unwrap();
    file.write_at(2 * SECTOR as u64, &[2; SECTOR]).unwrap();

    let found = outcomes(&disk, |disk| {
        let bytes = disk.read_file("f").unwrap();
        let sectors = bytes.chunks(SECTOR);
        let whole = |sector: &[u8]| {
            assert_eq!(sector, [sector[0]; SECTOR], "a sector is never torn");
            sector[0]
        };
        sectors.map(whole).collect::<Vec<_>>()
    });

    let expected: [&[u8]; 7] = [&[], &[1], &[1, 1], &[1, 1, 2], &[0, 0, 2], &[0, 1], &[0, 0, 0]];
    for outcome in expected {
        assert!(found.contains(outcome), "{outcome:?} is not in {found:?}");
    }
}

#[test]
fn given_a_write_that_starts_within_a_sector_when_torn_then_the_tear_is_at_the_files_sectors() {
    assert_eq!(sectors(500, 600), [0..12, 12..524, 524..600]);
    assert_eq!(sectors(512, 1024), [0..512, 512..1024]);
    assert_eq!(sectors(7, 0), []);
}

#[test]
fn given_an_unsynced_cut_when_fate_is_random_then_the_length_is_old_or_new() {
    let disk = MemDisk::crashable(1);
    put_synced(&disk, "f", b"abc");
    disk.open("f").unwrap().unwrap().set_len(1).unwrap();

    let found = outcomes(&disk, |disk| disk.read_file("f").unwrap());

    assert_eq!(found, [b"abc".to_vec(), b"a".to_vec()].into());
}

#[test]
fn given_the_same_seeds_when_crashed_again_then_the_same_disk_is_found() {
    let run = || {
        let disk = MemDisk::crashable(7);
        for name in ["a", "b", "c"] {
            disk.create(name).unwrap().write_at(9, &[1; 3000]).unwrap();
        }
        (0..50).map(|seed| all(&disk.after_crash(Fate::Random(seed)))).collect::<Vec<_>>()
    };

    assert_eq!(run(), run());
}

#[test]
fn given_a_crash_in_a_write_when_the_power_is_back_then_the_fate_decides_how_much_was_done() {
    let disk = MemDisk::crashable(1);
    put_synced(&disk, "f", b"old");
    disk.crash_at(0);
    let file = disk.open("f").unwrap().unwrap();
    file.write_at(3, b"new").unwrap_err();

    let found = |fate| disk.after_crash(fate).read_file("f").unwrap();
    assert_eq!(found(Fate::LoseUnsynced), b"old");
    assert_eq!(found(Fate::KeepAll), b"old");
    let torn = found(Fate::TornLast);
    assert!(torn.len() < 6 && b"oldnew".starts_with(&torn));
    let random = outcomes(&disk, |disk| disk.read_file("f").unwrap());
    let expected = [b"old".to_vec(), b"old\0\0\0".to_vec(), b"oldnew".to_vec()];
    assert_eq!(random, expected.into());
}

#[test]
fn given_a_crash_in_a_change_of_names_when_the_power_is_back_then_it_may_have_been_done() {
    type Act = fn(&MemDisk) -> io::Result<()>;
    let acts: [(Act, &[&str]); 4] = [
        (|disk| disk.create("g").map(drop), &["f", "g"]),
        (|disk| disk.rename("f", "g"), &["g"]),
        (|disk| disk.remove("f"), &[]),
        (|disk| disk.create_dir("d"), &["f"]),
    ];
    for (act, done) in acts {
        let disk = MemDisk::crashable(1);
        put_synced(&disk, "f", b"x");
        disk.crash_at(disk.ops() + 1);
        assert!(MemDisk::is_crash(&act(&disk).unwrap_err()));

        assert_eq!(disk.after_crash(Fate::KeepAll).paths(), ["f"]);
        let expected: BTreeSet<Vec<String>> =
            [vec!["f".to_owned()], done.iter().map(|path| path.to_string()).collect()].into();
        assert_eq!(outcomes(&disk, MemDisk::paths), expected);
    }
}

#[test]
fn given_many_unsynced_writes_when_the_last_is_torn_then_all_before_it_are_whole() {
    let mut cuts = BTreeSet::new();
    for seed in 0..200 {
        let disk = MemDisk::crashable(seed);
        disk.create("a").unwrap().write_at(0, b"one").unwrap();
        disk.create("b").unwrap().write_at(0, b"two").unwrap();

        let found = disk.after_crash(Fate::TornLast);

        assert_eq!(found.read_file("a").unwrap(), b"one");
        cuts.insert(found.read_file("b").unwrap());
    }
    assert_eq!(cuts, [b"".to_vec(), b"t".to_vec(), b"tw".to_vec()].into());
}

/// One operation picked by chance, on six files in two directories. What cannot be done is not.
fn random_operation(disk: &MemDisk, dice: &mut Dice) {
    let mut path = || join(["", "a"][dice.below(2)], ["x", "y", "z"][dice.below(3)]);
    let (path, other) = (path(), path());
    let (act, at) = (dice.below(9), dice.below(2000) as u64);
    match (act, disk.open(&path).unwrap()) {
        (0, _) => disk.create_dir("a").unwrap(),
        (1, _) => drop(disk.rename(&path, &other)),
        (2, _) => drop(disk.remove(&path)),
        (3, _) => drop(disk.sync_dir(split(&path).0)),
        (_, None) => drop(disk.create(&path)),
        (4, Some(file)) => file.set_len(at).unwrap(),
        (5, Some(file)) => file.sync().unwrap(),
        (6, Some(file)) => file.write_at(at, &[1; 700]).unwrap(),
        (_, Some(file)) => file.write_at(at, &[2; 10]).unwrap(),
    }
}

#[test]
fn given_random_operations_when_crashed_after_any_then_the_laws_of_every_fate_hold() {
    for seed in 0..300 {
        let disk = MemDisk::crashable(seed);
        let mut dice = Dice::new(seed, 1);
        for _ in 0..40 {
            random_operation(&disk, &mut dice);

            let kept = disk.after_crash(Fate::KeepAll);
            assert_eq!(all(&kept), all(&disk));
            assert_eq!(kept.0.used.load(SeqCst), disk.0.used.load(SeqCst));
            let found = disk.after_crash(Fate::Random(seed));
            assert_eq!(all(&found.after_crash(Fate::LoseUnsynced)), all(&found));
        }
        disk.sync_all().unwrap();
        assert_eq!(all(&disk.after_crash(Fate::LoseUnsynced)), all(&disk));
        assert_eq!(all(&disk.after_crash(Fate::Random(seed))), all(&disk));
    }
}

/// Every crash point of one run, on a disk that goes on and on one that is stopped there.
#[test]
fn given_a_run_when_stopped_at_each_operation_then_what_is_kept_is_the_run_until_there() {
    let run = |disk: &MemDisk, steps: u64| -> io::Result<()> {
        let log = disk.create("log")?;
        for step in 0..steps {
            log.write_at(step * 3, b"abc")?;
            log.sync()?;
            disk.create("tmp")?.write_at(0, b"x")?;
            disk.rename("tmp", "index")?;
            disk.sync_dir("")?;
        }
        Ok(())
    };
    let whole = MemDisk::crashable(1);
    run(&whole, 5).unwrap();

    for op in 1..=whole.ops() {
        let disk = MemDisk::crashable(1);
        disk.crash_at(op);
        assert!(MemDisk::is_crash(&run(&disk, 5).unwrap_err()));
        assert_eq!(disk.ops(), op);

        let seen = all(&disk);
        assert_eq!(all(&disk.after_crash(Fate::KeepAll)), seen);
        let synced_steps = op.saturating_sub(2) / 6;
        for fate in (0..20).map(Fate::Random).chain([Fate::LoseUnsynced]) {
            let log = disk.after_crash(fate).read_file("log").unwrap_or_default();
            assert!(log.starts_with(&b"abc".repeat(synced_steps as usize)));
        }
    }
}
