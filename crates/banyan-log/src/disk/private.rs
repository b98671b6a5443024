//! Files and directories that only their owner may read: 0600 and 0700 where a system has such modes.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Options for writing that make a new file private.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Writes a whole file, private if it is new.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = options().create(true).truncate(true).open(path)?;
    io::Write::write_all(&mut file, content)
}

/// Makes a directory and its missing parents, all of them private.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes a private directory. Its missing parents are made as any program makes them.
pub fn create_root(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    create_dir_all(path)
}

/// Makes a data directory private that others may enter, with all that is in it. What belongs to somebody else is left, and named.
/// The directory is closed first and its state directory last, so that whatever interrupts this, it is done again.
#[cfg(unix)]
pub(super) fn tighten_tree(root: &Path, state: &str) -> Vec<String> {
    let state = root.join(state);
    let mut kept = Kept::default();
    let was_wide = is_wide(root);
    kept.tighten(root);
    let closed_now = was_wide && !is_wide(root);
    if !closed_now && !is_wide(&state) {
        return kept.warnings();
    }
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            // A link may lead anywhere.
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if path == state {
                dirs.push(path);
            } else if kind.is_dir() && (dir != *root) {
                kept.tighten(&path);
                dirs.push(path);
            } else if kind.is_file() && (dir != *root || path.extension().is_some_and(|end| end == "jsonl")) {
                kept.tighten(&path);
            }
        }
    }
    kept.tighten(&state);
    kept.warnings()
}

/// Makes an open file private that others may read. What belongs to somebody else is left.
#[cfg(unix)]
pub(super) fn tighten_file(file: &File) {
    use std::os::unix::fs::PermissionsExt;
    if let Ok(found) = file.metadata()
        && found.permissions().mode() & 0o077 != 0
    {
        let _ = file.set_permissions(fs::Permissions::from_mode(found.permissions().mode() & 0o700));
    }
}

#[cfg(not(unix))]
pub(super) fn tighten_tree(_root: &Path, _state: &str) -> Vec<String> {
    Vec::new()
}

#[cfg(not(unix))]
pub(super) fn tighten_file(_file: &File) {}

#[cfg(unix)]
fn is_wide(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

/// What could not be made private.
#[cfg(unix)]
#[derive(Default)]
struct Kept {
    first: Option<String>,
    count: u64,
}

#[cfg(unix)]
impl Kept {
    fn tighten(&mut self, path: &Path) {
        use std::os::unix::fs::PermissionsExt;
        let tighten = || {
            let mode = fs::metadata(path)?.permissions().mode();
            if mode & 0o077 == 0 {
                return Ok(());
            }
            fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700))
        };
        match tighten() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                self.count += 1;
                self.first.get_or_insert_with(|| format!("{}: {error}", path.display()));
            }
            _ => {}
        }
    }

    fn warnings(self) -> Vec<String> {
        let more = self.count.saturating_sub(1);
        let tell = |first| match more {
            0 => format!("others may read a part of the directory, which cannot be changed: {first}"),
            _ => format!(
                "others may read parts of the directory, which cannot be changed: {first}, and {more} more"
            ),
        };
        self.first.map(tell).into_iter().collect()
    }
}
