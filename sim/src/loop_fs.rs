//! A real ext4 in a file, whose power can be cut and which can be small. Needs root and loop devices.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A mounted file system, which is unmounted and removed when dropped.
pub struct LoopFs {
    dir: TempDir,
}

/// What the names of all directories with such a file system begin with; the process that made them follows.
const PREFIX: &str = "banyan-sim-";

impl LoopFs {
    /// Makes and mounts an ext4 of this size, or says why that is not possible here.
    pub fn new(megabytes: u64) -> Result<Self, String> {
        clear_up_after_the_dead();
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let dir = tempfile::Builder::new().prefix(&prefix).tempdir().map_err(|error| error.to_string())?;
        let fs = Self { dir };
        let image = File::create(fs.image()).map_err(|error| error.to_string())?;
        image.set_len(megabytes << 20).map_err(|error| error.to_string())?;
        std::fs::create_dir(fs.path()).map_err(|error| error.to_string())?;
        run(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(fs.image()))?;
        fs.mount()?;
        Ok(fs)
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("mounted")
    }

    fn image(&self) -> PathBuf {
        self.dir.path().join("image")
    }

    /// Mounts it again after [`unmount`](Self::unmount).
    pub fn mount(&self) -> Result<(), String> {
        run(Command::new("mount").args(["-o", "loop"]).arg(self.image()).arg(self.path()))
    }

    /// Unmounts it. Nobody may use it any more.
    pub fn unmount(&self) -> Result<(), String> {
        run(Command::new("umount").arg(self.path()))
    }

    /// Cuts the power: what is not on the disk by now never gets there.
    pub fn cut_power(&self) -> Result<(), String> {
        let root = File::open(self.path()).map_err(|error| error.to_string())?;
        shut_down(&root).map_err(|error| format!("this kernel's ext4 cannot be shut down: {error}"))
    }
}

impl Drop for LoopFs {
    fn drop(&mut self) {
        if self.unmount().is_err() && mounted(&self.path()) {
            let _ = run(Command::new("umount").arg("--lazy").arg(self.path()));
        }
    }
}

/// `EXT4_IOC_SHUTDOWN`, without writing the file system's journal first.
#[allow(unsafe_code, reason = "an ioctl has no safe form")]
fn shut_down(root: &File) -> Result<(), rustix::io::Errno> {
    use rustix::ioctl::{Setter, ioctl, opcode};
    const EXT4_IOC_SHUTDOWN: rustix::ioctl::Opcode = opcode::read::<u32>(b'X', 125);
    const WITHOUT_LOG_FLUSH: u32 = 2;
    // SAFETY: the kernel reads one u32 through the pointer, which `Setter` keeps alive during the call.
    unsafe { ioctl(root, Setter::<EXT4_IOC_SHUTDOWN, u32>::new(WITHOUT_LOG_FLUSH)) }
}

/// Unmounts and removes what a process that was killed could not.
fn clear_up_after_the_dead() {
    for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(owner) = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()) else { continue };
        let alive = owner.parse::<u32>().is_err() || Path::new("/proc").join(owner).exists();
        let mount = entry.path().join("mounted");
        if !alive && (!mounted(&mount) || run(Command::new("umount").arg(&mount)).is_ok()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn mounted(path: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(1) == path.to_str())
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
