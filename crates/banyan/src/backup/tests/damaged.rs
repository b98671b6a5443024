//! Interrupted backups and restores, damaged sources, damaged backups.

use banyan_log::disk::Fate;

use super::*;

#[test]
fn a_stream_that_breaks_off_anywhere_changes_nothing() {
    let (data, backup) = (MemDisk::new(), MemDisk::new());
    let store = open(&data);
    call(&store, "ensure", json!({"session_id": "a"}));
    say(&store, "a", "one");
    back_up(&store, &backup, None);
    say(&store, "a", "two");
    let repository = Repository::create_on(Arc::new(backup.clone())).unwrap();
    let stream = stream(&store, &repository, Wanted::default());
    for len in 0..stream.len() {
        let cut = receive(&repository, &mut stream.as_slice().take(len as u64), ReceiveOptions::default(), &());
        assert!(matches!(cut, Err(BackupError::BrokenOff(_))), "{len}: {cut:?}");
    }
    assert_eq!(repository.newest().unwrap().unwrap().generation, 1);
    drop(repository);
    let (target, _) = restored(&backup, &everything());
    assert_eq!(texts(&open(&target), "a"), ["one"]);
    back_up(&store, &backup, None);
    let (target, _) = restored(&backup, &everything());
    assert_eq!(texts(&open(&target), "a"), ["one", "two"]);
}

#[test]
fn a_power_cut_during_a_backup_leaves_the_one_before() {
    let (data, first) = (MemDisk::new(), MemDisk::new());
    let store = open(&data);
    for session in ["a", "b"] {
        call(&store, "ensure", json!({"session_id": session}));
        say(&store, session, "one");
    }
    back_up(&store, &first, None);
    say(&store, "a", "two");
    let counted = MemDisk::crashable(1);
    copy(&first, &counted);
    let before = counted.ops();
    back_up(&store, &counted, Some(1));
    let ops = counted.ops() - before;
    assert!(ops > 10, "{ops}");
    for op in 1..=ops {
        let disk = MemDisk::crashable(op);
        copy(&first, &disk);
        disk.crash_at(disk.ops() + op);
        let repository = Repository::create_on(Arc::new(disk.clone()));
        if let Ok(repository) = repository {
            let mut known = Vec::new();
            if have(&repository, Wanted::default(), &mut known).is_ok()
                && let Ok(backup) = store.backup(&mut known.as_slice(), None)
            {
                let stream = collect(backup);
                let options = ReceiveOptions { keep: Some(1), rate: None };
                let _ = receive(&repository, &mut stream.as_slice(), options, &());
            }
        }
        let left = disk.after_crash(Fate::LoseUnsynced);
        let (target, restored) = restored(&left, &everything());
        let said = texts(&open(&target), "a");
        let expected = if restored.generation == 1 { vec!["one"] } else { vec!["one", "two"] };
        assert_eq!(said, expected, "operation {op}");
    }
}

#[test]
fn a_damaged_or_missing_source_keeps_its_good_copy() {
    let (data, backup) = (MemDisk::new(), MemDisk::new());
    let store = open(&data);
    for session in ["tail", "gone", "short", "good"] {
        call(&store, "ensure", json!({"session_id": session}));
        say(&store, session, "one");
        say(&store, session, "two");
    }
    back_up(&store, &backup, None);
    store.close().unwrap();
    let text = String::from_utf8(data.read_file("tail.jsonl").unwrap()).unwrap();
    data.write_file("tail.jsonl", text.replace("\"two\"", "\"tw0\"").as_bytes());
    let short = data.read_file("short.jsonl").unwrap();
    data.write_file("short.jsonl", &short[..short.len() / 2]);
    data.remove_file("gone.jsonl");
    let store = open(&data);
    say(&store, "good", "three");
    let wanted = Wanted { reread: true, keys: false };
    let received = back_up_with(&store, &backup, Some(1), wanted);
    let mut files: Vec<&str> = received.damage.iter().map(|damage| damage.file.as_str()).collect();
    files.dedup();
    files.sort_unstable();
    files.dedup();
    assert_eq!(files, ["gone.jsonl", "short.jsonl", "tail.jsonl"], "{:?}", received.damage);
    // The last sound generation stays, whatever `keep` says.
    assert_eq!(received.removed, 0);
    let (target, _) = restored(&backup, &everything());
    let then = open(&target);
    for session in ["tail", "gone", "short"] {
        assert_eq!(texts(&then, session), ["one", "two"], "{session}");
    }
    assert_eq!(texts(&then, "good"), ["one", "two", "three"]);
}

#[test]
fn damage_in_a_first_backup_is_named_and_the_rest_is_there() {
    let (data, backup) = (MemDisk::new(), MemDisk::new());
    let store = open(&data);
    call(&store, "ensure", json!({"session_id": "a"}));
    say(&store, "a", "one");
    say(&store, "a", "two");
    store.close().unwrap();
    let text = String::from_utf8(data.read_file("a.jsonl").unwrap()).unwrap();
    data.write_file("a.jsonl", text.replace("\"one\"", "\"0ne\"").as_bytes());
    let store = open(&data);
    for _ in 0..2 {
        let received = back_up(&store, &backup, None);
        assert_eq!(received.damage.len(), 1);
        assert_eq!(received.damage[0].file, "a.jsonl");
    }
    let (target, restored) = restored(&backup, &everything());
    assert_eq!(restored.report.findings.len(), 1);
    assert_eq!(target.read_file("a.jsonl"), data.read_file("a.jsonl"));
}

#[test]
fn every_damage_of_a_backup_is_found_and_refused() {
    let (data, backup) = (MemDisk::new(), MemDisk::new());
    let store = open(&data);
    call(&store, "ensure", json!({"session_id": "a"}));
    say(&store, "a", &"content ".repeat(8_000));
    back_up(&store, &backup, None);
    let files: Vec<String> = backup.paths().into_iter().filter(|path| path.contains(['/', '-'])).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    for path in files {
        let whole = backup.read_file(&path).unwrap();
        let damages =
            [whole[..whole.len() - 1].to_vec(), flipped(&whole, 0), flipped(&whole, whole.len() / 2), Vec::new()];
        for damaged in damages {
            backup.write_file(&path, &damaged);
            refused(&backup, &path);
        }
        backup.remove_file(&path);
        if path.contains('/') {
            refused(&backup, &path);
        }
        backup.write_file(&path, &whole);
    }
    restored(&backup, &everything());
}

fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1;
    bytes
}

fn refused(backup: &MemDisk, path: &str) {
    let repository = Repository::on(Arc::new(backup.clone()));
    let report = check(&repository, &()).unwrap();
    assert!(
        !report.is_sound() && report.findings.iter().any(|finding| finding.file == path),
        "{path}: {report:?}"
    );
    let target = MemDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(target.clone());
    assert!(!matches!(restore(&repository, &disk, &everything(), &()), Ok(Ok(_))), "{path}");
    assert_eq!(target.paths(), [""; 0]);
}

#[test]
fn a_restore_that_did_not_end_is_no_directory() {
    let (data, backup) = (MemDisk::new(), MemDisk::new());
    let store = open(&data);
    call(&store, "ensure", json!({"session_id": "a"}));
    say(&store, "a", "one");
    back_up(&store, &backup, None);
    let whole = MemDisk::crashable(3);
    let disk: Arc<dyn Disk> = Arc::new(whole.clone());
    restore(&Repository::on(Arc::new(backup.clone())), &disk, &everything(), &()).unwrap().unwrap();
    for op in 1..=whole.ops() {
        let target = MemDisk::crashable(op);
        target.crash_at(op);
        let disk: Arc<dyn Disk> = Arc::new(target.clone());
        let _ = restore(&Repository::on(Arc::new(backup.clone())), &disk, &everything(), &());
        let left = target.after_crash(Fate::LoseUnsynced);
        match Banyan::open_on(Arc::new(left), None, options()) {
            // Nothing was restored yet, or everything.
            Ok(store) => {
                let found = call(&store, "list", json!({}))["sessions"].as_array().unwrap().len();
                assert!(found == 0 || texts(&store, "a") == ["one"], "operation {op}");
            }
            Err(error) => assert!(error.to_string().contains("restore"), "operation {op}: {error}"),
        }
    }
}
