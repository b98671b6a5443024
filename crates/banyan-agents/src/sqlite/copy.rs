//! Copies of databases that cannot be read without being changed.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::Stamp;

/// What a copy is called.
const COPY: &str = "database";

/// A folder with a copy of a database, which goes when nobody needs it any more.
pub(super) struct Copy(PathBuf);

thread_local! {
    /// The last copy that was made: the sessions of a database are read one after another.
    static LAST: RefCell<Option<(PathBuf, Stamp, Rc<Copy>)>> = const { RefCell::new(None) };
}

impl Copy {
    /// A copy of a database and of the file beside it as they are now.
    pub(super) fn of(path: &Path, end: &str) -> std::io::Result<Rc<Self>> {
        let stamp = Stamp::of_file(path)?.and(Stamp::of_file(&beside(path, end))?);
        let last = LAST.with_borrow(|last| {
            let last = last.as_ref().filter(|(of, at, _)| of == path && *at == stamp);
            last.map(|(.., copy)| Rc::clone(copy))
        });
        if let Some(last) = last {
            return Ok(last);
        }
        let folder = std::env::temp_dir().join(format!("banyan-{}", uuid::Uuid::now_v7().simple()));
        private_folder(&folder)?;
        let copy = Rc::new(Self(folder));
        std::fs::copy(path, copy.0.join(COPY))?;
        std::fs::copy(beside(path, end), copy.0.join(format!("{COPY}{end}")))?;
        LAST.set(Some((path.to_owned(), stamp, Rc::clone(&copy))));
        Ok(copy)
    }

    /// The database.
    pub(super) fn file(&self) -> PathBuf {
        self.0.join(COPY)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // Best effort: it is in the system's place for such files.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A file beside a database.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Makes a folder that only this user can look into.
fn private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
