//! What the machine says of itself, and how it is made to forget.

use std::fs::{self, File};
use std::path::Path;

use rustix::fs::{Advice, fadvise, statfs};

use crate::workbench::Outcome;

const TMPFS: i64 = 0x0102_1994;
const RAMFS: i64 = 0x8584_58f6;

/// Whether a directory's files live in memory only.
pub(crate) fn is_in_memory(dir: &Path) -> Outcome<bool> {
    let kind = statfs(dir)?.f_type;
    Ok(kind == TMPFS || kind == RAMFS)
}

/// The name of the file system that a directory is on.
pub(crate) fn file_system(dir: &Path) -> Outcome<String> {
    Ok(match statfs(dir)?.f_type {
        0xef53 => "ext4".to_owned(),
        0x5846_5342 => "xfs".to_owned(),
        0x9123_683e => "btrfs".to_owned(),
        other => format!("a file system of type {other:#x}"),
    })
}

/// How busy the machine was over the last 1, 5 and 15 minutes.
pub(crate) fn load_average() -> Outcome<String> {
    let text = fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').take(3).collect::<Vec<_>>().join(" "))
}

/// Cores, memory and kernel, in a few words.
pub(crate) fn description() -> Outcome<String> {
    let cores = std::thread::available_parallelism()?;
    let memory = fs::read_to_string("/proc/meminfo")?;
    let gib =
        number_after(&memory, "MemTotal:").ok_or("the memory's size is not known")? as f64 / f64::from(1 << 20);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let kernel: Vec<&str> = kernel.trim().split('.').take(2).collect();
    Ok(format!("{cores} cores, {gib:.0} GiB of memory, Linux {}", kernel.join(".")))
}

/// Memory of this process that is resident, in KiB.
pub(crate) fn resident_kib() -> Outcome<u64> {
    resident_kib_of("self")
}

/// The same of another process.
pub(crate) fn resident_kib_of(process: &str) -> Outcome<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    number_after(&status, "VmRSS:").ok_or_else(|| "the resident memory is not known".into())
}

/// The most that was ever resident of another process.
pub(crate) fn most_resident_kib_of(process: &str) -> Outcome<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    number_after(&status, "VmHWM:").ok_or_else(|| "the resident memory is not known".into())
}

/// Seconds of the processor that another process has used so far, over all of its threads.
pub(crate) fn seconds_of(process: &str) -> Outcome<f64> {
    seconds_in(&fs::read_to_string(format!("/proc/{process}/stat"))?)
}

/// The same of each of its threads that is there, by number, with what the thread is called.
pub(crate) fn seconds_of_threads(process: &str) -> Outcome<Vec<(u32, String, f64)>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may end meanwhile.
        let Ok(stat) = fs::read_to_string(entry?.path().join("stat")) else { continue };
        let known = stat.split_once(" (").zip(stat.rsplit_once(')'));
        if let Some(((number, rest), _)) = known {
            let name = rest.rsplit_once(')').map_or("", |(name, _)| name).to_owned();
            threads.push((number.parse()?, name, seconds_in(&stat)?));
        }
    }
    Ok(threads)
}

fn seconds_in(stat: &str) -> Outcome<f64> {
    // The name may hold anything, and ends with the last bracket.
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
    let (user, system) = (ticks(11), ticks(12));
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    user.zip(system)
        .map(|(user, system)| (user + system) / per_second)
        .ok_or_else(|| "its time is not known".into())
}

/// Bytes that this process has handed to the kernel so far.
pub(crate) fn bytes_written() -> Outcome<u64> {
    let io = fs::read_to_string("/proc/self/io")?;
    number_after(&io, "wchar:").ok_or_else(|| "the bytes written are not known".into())
}

fn number_after(text: &str, label: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(label))?;
    line[label.len()..].split_whitespace().next()?.parse().ok()
}

/// How much the kernel was made to forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgotten {
    /// The contents of the files.
    Contents,
    /// Contents, names and attributes, of everything.
    Everything,
}

impl Forgotten {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Contents => "`POSIX_FADV_DONTNEED`",
            Self::Everything => "`drop_caches`",
        }
    }
}

/// Makes the kernel forget the files of a directory; as root, and when asked to, everything else too.
pub(crate) fn forget(dir: &Path, wanted: Forgotten) -> Outcome<Forgotten> {
    rustix::fs::sync();
    if wanted == Forgotten::Everything && fs::write("/proc/sys/vm/drop_caches", "3").is_ok() {
        return Ok(Forgotten::Everything);
    }
    forget_files(dir)?;
    Ok(Forgotten::Contents)
}

fn forget_files(dir: &Path) -> Outcome<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            forget_files(&entry.path())?;
        } else {
            fadvise(File::open(entry.path())?, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}
