use std::io;
use std::sync::{Arc, Mutex};

use super::Files;
use crate::disk::{Disk, DiskFile, Listed, LockOutcome, MemDisk};
use crate::fs::fds::Fds;

/// What happens to the disk, once, between the opening of a file and whoever asked for it.
type Meanwhile = Box<dyn FnOnce() + Send>;

struct Interrupted {
    disk: MemDisk,
    meanwhile: Mutex<Option<Meanwhile>>,
}

impl Disk for Interrupted {
    fn open(&self, path: &str) -> io::Result<Option<Arc<dyn DiskFile>>> {
        let file = self.disk.open(path);
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        file
    }
    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(path)
    }
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.disk.create_dir(path)
    }
    fn list(&self, dir: &str) -> io::Result<Vec<Listed>> {
        self.disk.list(dir)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }
    fn sync_all(&self) -> io::Result<()> {
        self.disk.sync_all()
    }
    fn lock(&self, path: &str, owner: &str) -> io::Result<LockOutcome> {
        self.disk.lock(path, owner)
    }
    fn lock_unchanged(&self, path: &str) -> io::Result<LockOutcome> {
        self.disk.lock_unchanged(path)
    }
}

/// Files on a disk where there is `path`, and what happens when it is opened.
fn files(path: &str) -> (Arc<Files>, Arc<Interrupted>) {
    let disk = Arc::new(Interrupted { disk: MemDisk::new(), meanwhile: Mutex::default() });
    disk.disk.create(path).unwrap().write_at(0, b"old").unwrap();
    let files = Arc::new(Files::new(Arc::new(Fds::new(Arc::clone(&disk) as Arc<dyn Disk>, 8))));
    (files, disk)
}

fn interrupt(disk: &Interrupted, meanwhile: impl FnOnce() + Send + 'static) {
    *disk.meanwhile.lock().unwrap() = Some(Box::new(meanwhile));
}

#[test]
fn a_file_that_is_removed_while_it_is_opened_does_not_come_back() {
    let (files, disk) = files("a");
    let remover = Arc::clone(&files);
    interrupt(&disk, move || remover.remove("a").unwrap());
    assert!(files.existing("a").unwrap().is_none());
    assert_eq!(files.ensure("a").unwrap().end(), 0);
}

#[test]
fn what_is_written_under_the_name_of_a_file_that_was_removed_while_it_was_opened_is_in_the_new_one() {
    let (files, disk) = files("a");
    let remover = Arc::clone(&files);
    interrupt(&disk, move || remover.remove("a").unwrap());
    files.fds().get("a").unwrap();
    files.fds().create("a").unwrap().write_at(0, b"new").unwrap();
    let mut found = [0; 3];
    disk.disk.open("a").unwrap().unwrap().read_at(0, &mut found).unwrap();
    assert_eq!(&found, b"new");
}

#[test]
fn a_file_that_is_about_to_be_removed_is_not_found_any_more() {
    let (files, _) = files("a");
    let file = files.existing("a").unwrap().unwrap();
    file.remove().unwrap();
    assert!(files.existing("a").unwrap().is_none());
    assert!(!file.mark_dirty());
}
