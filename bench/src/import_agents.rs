//! Importing what coding agents left: much at once, nothing new among many, and a line that an agent writes right now.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::agent_files::{Template, rollout, turn};
use crate::machine;
use crate::report::{Row, Section};
use crate::rounds::Latencies;
use crate::workbench::{Outcome, Workbench};

/// The memory that an import may take, in KiB.
const MOST_KIB: u64 = 300 << 10;

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let banyan = command_beside_this()?;
    let mut rows = Vec::new();
    much(bench, &banyan, &mut rows)?;
    many(bench, &banyan, &mut rows)?;
    let method = vec![
        "Files of agents: genuine sessions of Codex and Claude Code, repeated with other ids, half of the bytes each, in files of \
         about 2 MB. Both sides read them from the page cache. Seconds are those of the processor, of all threads: a core \
         parses, and a core imports. The import ends when everything is flushed and the store is closed."
            .to_owned(),
        "A line is heard of when `banyan import --follow --json` says so, after it is flushed.".to_owned(),
    ];
    Ok(Section { rows, method, losing: vec![] })
}

/// Much at once, beside parsing the same lines.
fn much(bench: &Workbench, banyan: &Path, rows: &mut Vec<Row>) -> Outcome<()> {
    let home = bench.scratch()?;
    let wanted: u64 = bench.pick(2 << 30, 64 << 20);
    let mut files = Vec::new();
    for (agent, name) in [("codex", ".codex"), ("claude", ".claude")] {
        files.extend(Template::of(agent)?.write(&home.path().join(name), wanted / 2)?);
    }
    let bytes: u64 = files.iter().map(|file| file.metadata().map_or(0, |metadata| metadata.len())).sum();
    let begun = Instant::now();
    let lines = parse_all(&files)?;
    let parsing = begun.elapsed().as_secs_f64();
    let data = bench.scratch()?;
    let begun = Instant::now();
    let child = import(banyan, home.path(), data.path(), &["codex", "claude", "--json"])?;
    let used = watched(child)?;
    let took = begun.elapsed().as_secs_f64();
    let rate = |seconds: f64| format!("{:.0} MB/s", bytes as f64 / 1e6 / seconds.max(1e-9));
    let ratio = parsing / used.seconds.max(1e-9);
    rows.push(
        Row::shown(
            format!("importing {} MB of Codex and Claude Code, {lines} lines, per core", bytes / 1_000_000),
            rate(used.seconds),
        )
        .beside(format!("`serde_json` into values {}", rate(parsing)))
        .ratio(ratio)
        .target(">= 0.5x", ratio >= 0.5),
    );
    rows.push(Row::shown("the same, on the clock", format!("{} ({took:.1} s)", rate(took))));
    rows.push(
        Row::shown("resident memory of that import, at most", format!("{:.0} MiB", used.most_kib as f64 / 1024.0))
            .target("<= 300 MiB", used.most_kib <= MOST_KIB),
    );
    Ok(())
}

/// Many sessions: nothing new among them, and one that goes on.
fn many(bench: &Workbench, banyan: &Path, rows: &mut Vec<Row>) -> Outcome<()> {
    let sessions: usize = bench.pick(10_000, 1_000);
    let (home, data) = (bench.scratch()?, bench.scratch()?);
    let files: Vec<PathBuf> =
        (0..sessions).map(|number| rollout(home.path(), number)).collect::<Outcome<Vec<_>>>()?;
    watched(import(banyan, home.path(), data.path(), &["codex", "--json"])?)?;
    let mut again = Vec::new();
    for _ in 0..bench.rounds() {
        let begun = Instant::now();
        watched(import(banyan, home.path(), data.path(), &["--yes"])?)?;
        again.push(begun.elapsed().as_secs_f64());
    }
    let again = crate::rounds::measured(again)?;
    rows.push(
        Row::shown(
            format!("`banyan import` with nothing new among {sessions} sessions"),
            format!("{:.0} ms ({:.0} to {:.0})", again.median * 1e3, again.lowest * 1e3, again.highest * 1e3),
        )
        .target("<= 1 s", again.median <= 1.0),
    );
    let mut child = import(banyan, home.path(), data.path(), &["codex", "--follow", "--json"])?;
    let mut told = BufReader::new(child.stdout.take().ok_or("the import has no output")?);
    let mut line = String::new();
    while !line.contains("\"summary\"") {
        line.clear();
        if told.read_line(&mut line)? == 0 {
            return Err("the import ended instead of following".into());
        }
    }
    let mut heard = Latencies::default();
    for number in 0..bench.pick(200, 50) {
        let file = &files[(number * 7919) % files.len()];
        File::options().append(true).open(file)?.write_all(turn(number).as_bytes())?;
        heard.time(|| {
            line.clear();
            Ok(told.read_line(&mut line)?)
        })?;
    }
    let most = machine::resident_kib_of(&child.id().to_string())?;
    child.kill()?;
    child.wait()?;
    let (p50, p95) = (heard.percentile(0.5), heard.percentile(0.95));
    rows.push(
        Row::shown(
            format!("a turn that an agent writes among {sessions} sessions, p95 until it is in the store"),
            format!("{:.0} ms, p50 {:.0} ms, {:.0} MiB resident", p95 / 1e3, p50 / 1e3, most as f64 / 1024.0),
        )
        .target("<= 300 ms", p95 <= 300_000.0),
    );
    Ok(())
}

fn parse_all(files: &[PathBuf]) -> Outcome<u64> {
    let (mut lines, mut text) = (0, Vec::new());
    for file in files {
        let mut reader = BufReader::with_capacity(1 << 18, File::open(file)?);
        loop {
            text.clear();
            if reader.read_until(b'\n', &mut text)? == 0 {
                break;
            }
            let value: serde_json::Value = serde_json::from_slice(&text)?;
            std::hint::black_box(&value);
            lines += 1;
        }
    }
    Ok(lines)
}

fn import(banyan: &Path, home: &Path, data: &Path, words: &[&str]) -> Outcome<Child> {
    let mut command = Command::new(banyan);
    for name in ["CODEX_HOME", "CLAUDE_CONFIG_DIR", "BANYAN_URL", "XDG_DATA_HOME"] {
        command.env_remove(name);
    }
    command.env("HOME", home).arg("import").args(words).arg("--data").arg(data);
    let output = if words.contains(&"--follow") { Stdio::piped() } else { Stdio::null() };
    Ok(command.stdin(Stdio::null()).stdout(output).stderr(Stdio::null()).spawn()?)
}

/// What a process took.
struct Used {
    /// Of the processor, over all threads.
    seconds: f64,
    most_kib: u64,
}

/// Waits for a process, and looks at it meanwhile.
fn watched(mut child: Child) -> Outcome<Used> {
    let id = child.id().to_string();
    let mut used = Used { seconds: 0.0, most_kib: 0 };
    loop {
        if let Some(status) = child.try_wait()? {
            return if status.success() {
                Ok(used)
            } else {
                Err(format!("the import ended with {status}").into())
            };
        }
        if let (Ok(seconds), Ok(most)) = (machine::seconds_of(&id), machine::most_resident_kib_of(&id)) {
            used = Used { seconds, most_kib: most };
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The command as it was built along with this program.
fn command_beside_this() -> Outcome<PathBuf> {
    let banyan = std::env::current_exe()?.with_file_name("banyan");
    match banyan.exists() {
        true => Ok(banyan),
        false => Err("the `banyan` command is not built; run `cargo build --release --package banyan-cli`".into()),
    }
}

/// A file that is written piece by piece.
pub(crate) fn create(path: &Path) -> Outcome<BufWriter<File>> {
    fs::create_dir_all(path.parent().ok_or("a file lies in a folder")?)?;
    Ok(BufWriter::new(File::create(path)?))
}
