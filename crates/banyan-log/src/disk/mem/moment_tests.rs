//! Moments of one run are what many runs leave that end at each operation.

use super::*;

/// A little of everything, with files that are renamed, removed, cut short and never synced.
fn run(disk: &MemDisk) -> io::Result<()> {
    disk.create_dir("d/e")?;
    let log = disk.create("log")?;
    let loose = disk.create("d/loose")?;
    for step in 0..4 {
        log.write_at(step * 700, &[b'a' + step as u8; 700])?;
        loose.write_at(step * 2000, &[b'A' + step as u8; 1500])?;
        log.sync()?;
        let temporary = disk.create("d/tmp")?;
        temporary.set_len(0)?;
        temporary.write_at(0, b"whole")?;
        if step % 2 == 0 {
            temporary.sync()?;
        }
        disk.rename("d/tmp", &format!("d/e/{step}"))?;
        disk.sync_dir("d/e")?;
        loose.set_len(100)?;
        if step == 2 {
            disk.sync_all()?;
            disk.remove("d/e/0")?;
        }
    }
    disk.sync_dir("")
}

#[test]
fn given_a_run_whose_moments_are_kept_then_each_is_what_a_crash_there_leaves() {
    let whole = MemDisk::crashable(9);
    whole.keep_moments(Mishap::PowerCut);
    run(&whole).unwrap();
    let moments = whole.moments();
    assert_eq!(moments.len() as u64, whole.ops());
    assert!(whole.moments().is_empty(), "each is given once");

    for (moment, op) in moments.iter().zip(1..) {
        let crashed = MemDisk::crashable(9);
        crashed.crash_at(op);
        run(&crashed).unwrap_err();
        assert_eq!(moment.op(), op);
        for fate in
            [Fate::LoseUnsynced, Fate::KeepAll, Fate::TornLast].into_iter().chain((0..40).map(Fate::Random))
        {
            let (here, there) = (moment.after_crash(fate), crashed.after_crash(fate));
            assert_eq!(all(&here), all(&there), "operation {op}, {fate:?}");
            assert_eq!(here.fingerprint(""), there.fingerprint(""), "operation {op}, {fate:?}");
        }
    }
}

#[test]
fn given_a_run_whose_moments_are_kept_then_each_is_what_a_kill_before_it_leaves() {
    let whole = MemDisk::crashable(9);
    whole.keep_moments(Mishap::Kill);
    run(&whole).unwrap();

    for (moment, op) in whole.moments().into_iter().zip(1..) {
        let killed = MemDisk::crashable(9);
        killed.crash_at(op);
        run(&killed).unwrap_err();
        let found = moment.after_kill();
        assert_eq!((all(&found), found.ops()), (all(&killed), op - 1));
        assert_eq!(all(&found.after_crash(Fate::LoseUnsynced)), all(&killed.after_crash(Fate::LoseUnsynced)));
        assert_eq!(all(&found.after_crash(Fate::KeepAll)), all(&killed));
        found.sync_all().unwrap();
        assert_eq!(all(&found.after_crash(Fate::LoseUnsynced)), all(&killed), "whoever is next can save it");
    }
}

#[test]
fn given_two_disks_then_their_fingerprints_tell_names_and_contents_apart() {
    let disk = |files: &[(&str, &str)]| {
        let disk = MemDisk::new();
        files.iter().for_each(|(path, bytes)| disk.write_file(path, bytes.as_bytes()));
        disk
    };
    let one = disk(&[("d/a", "x"), ("d/b", "y")]);
    assert_eq!(one.fingerprint(""), disk(&[("d/b", "y"), ("d/a", "x")]).fingerprint(""));
    for other in [&[("d/a", "xb"), ("d/", "y")][..], &[("d/a", "y"), ("d/b", "x")], &[("d/a", "x")]] {
        assert_ne!(one.fingerprint(""), disk(other).fingerprint(""));
    }
    assert_eq!(one.fingerprint("d"), disk(&[("d/c", "z")]).fingerprint("d"));
    assert_ne!(one.fingerprint("e"), disk(&[("d/c", "z")]).fingerprint("e"));
}
