//! Importing what coding agents left: much at once, nothing new among many, and a line that an agent writes right now.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent_files::{Template, rollout, turn, turn_about};
use crate::http_client::{Connection, request};
use crate::http_server::Server;
use crate::machine;
use crate::parsing::parse_all;
use crate::report::{Row, Section};
use crate::rounds::Latencies;
use crate::workbench::{Outcome, Workbench};

/// What threads of the search index are called: the one that reads, and those of tantivy.
const INDEXING: &[&str] = &["banyan-search", "thrd-tantivy", "docstore", "merge_thread", "segment_updater"];
/// The memory that an import may take, in KiB.
const MOST_KIB: u64 = 300 << 10;

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let banyan = beside_this("banyan")?;
    let mut rows = Vec::new();
    much(bench, &banyan, &mut rows)?;
    many(bench, &banyan, &mut rows)?;
    let method = vec![
        "Files of agents: genuine sessions of Codex and Claude Code, repeated with other ids, half of the bytes each, in files of \
         about 2 MB. Both sides read them from the page cache. Seconds are those of the processor, of all threads: a core \
         parses, in a program of its own before each import, and a core imports. The figures are those of the middle one of three rounds. The import ends when everything is flushed and the store is closed."
            .to_owned(),
        "The index's share is the time of its threads. It follows the import as far as it comes, and goes on with the next command \
         or server."
            .to_owned(),
        "A line is heard of when `banyan import --follow --json` says so, after it is flushed. Until a search finds it: a server has \
         the directory, `banyan import --follow --url` brings the line there, and a client asks every 5 ms."
            .to_owned(),
    ];
    Ok(Section { rows, method, losing: vec![] })
}

/// So often is much imported at once.
const ROUNDS: usize = 3;

/// One of them, and what parsing the same lines took right before it.
struct Round {
    parsing: f64,
    /// The same in this program, with its allocator.
    in_here: f64,
    used: Used,
    took: f64,
}

impl Round {
    fn ratio(&self) -> f64 {
        self.parsing / self.used.seconds.max(1e-9)
    }
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
    let parser = beside_this("parse-lines")?;
    let mut lines = 0;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        // On the processor, as the import is: on a busy machine the clock would flatter it.
        let parsing = parsed_by(&parser, &files)?;
        let before = machine::seconds_of("self")?;
        lines = parse_all(&files)?;
        let in_here = machine::seconds_of("self")? - before;
        let data = bench.scratch()?;
        let begun = Instant::now();
        let child = import(banyan, home.path(), &Into::Directory(data.path()), &["codex", "claude", "--json"])?;
        let used = watched(child)?;
        rounds.push(Round { parsing, in_here, used, took: begun.elapsed().as_secs_f64() });
    }
    rounds.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    let spread = rounds.iter().map(|round| format!("{:.2}", round.ratio())).collect::<Vec<_>>().join(", ");
    let most_kib = rounds.iter().map(|round| round.used.most_kib).max().unwrap_or_default();
    let round = rounds.swap_remove(ROUNDS / 2);
    let Round { parsing, in_here, ref used, took } = round;
    let rate = |seconds: f64| format!("{:.0} MB/s", bytes as f64 / 1e6 / seconds.max(1e-9));
    rows.push(
        Row::shown(
            format!("importing {} MB of Codex and Claude Code, {lines} lines, per core", bytes / 1_000_000),
            format!("{} (ratios {spread})", rate(used.seconds)),
        )
        .beside(format!("`serde_json` into values {}", rate(parsing)))
        .ratio(round.ratio())
        .target(">= 0.5x", round.ratio() >= 0.5),
    );
    let with_ours = in_here / used.seconds.max(1e-9);
    rows.push(
        Row::shown("the same beside a parser with the allocator of `banyan`, mimalloc", rate(used.seconds))
            .beside(format!("`serde_json` into values {}", rate(in_here)))
            .ratio(with_ours),
    );
    let without = parsing / (used.seconds - used.indexing).max(1e-9);
    rows.push(
        Row::shown(
            format!(
                "the same without the search index, whose share is {:.1} s of {:.1} s",
                used.indexing, used.seconds
            ),
            rate(used.seconds - used.indexing),
        )
        .beside(format!("`serde_json` into values {}", rate(parsing)))
        .ratio(without)
        .target(">= 0.5x", without >= 0.5),
    );
    rows.push(Row::shown("the same with it, on the clock", format!("{} ({took:.1} s)", rate(took))));
    rows.push(
        Row::shown("resident memory of these imports, at most", format!("{:.0} MiB", most_kib as f64 / 1024.0))
            .target("<= 300 MiB", most_kib <= MOST_KIB),
    );
    Ok(())
}

/// Many sessions: nothing new among them, and one that goes on.
fn many(bench: &Workbench, banyan: &Path, rows: &mut Vec<Row>) -> Outcome<()> {
    let sessions: usize = bench.pick(10_000, 1_000);
    let (home, data) = (bench.scratch()?, bench.scratch()?);
    let files: Vec<PathBuf> =
        (0..sessions).map(|number| rollout(home.path(), number)).collect::<Outcome<Vec<_>>>()?;
    let into = Into::Directory(data.path());
    watched(import(banyan, home.path(), &into, &["codex", "--json"])?)?;
    let mut again = Vec::new();
    for _ in 0..bench.rounds() {
        let begun = Instant::now();
        watched(import(banyan, home.path(), &into, &["--yes"])?)?;
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
    let (mut child, mut told) = following(banyan, home.path(), &into)?;
    let mut line = String::new();
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
    rows.push(found(bench, banyan, home.path(), &files, data.path())?);
    Ok(())
}

/// A turn that an agent writes, until a search over HTTP finds it.
fn found(bench: &Workbench, banyan: &Path, home: &Path, files: &[PathBuf], data: &Path) -> Outcome<Row> {
    let server = Server::start(data)?;
    let into = Into::Server(format!("http://{}", server.address));
    let (mut child, mut told) = following(banyan, home, &into)?;
    server.wait_for_index()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut connection = runtime.block_on(Connection::open(server.address))?;
    let (mut took, mut line) = (Latencies::default(), String::new());
    for number in 0..bench.pick(200, 50) {
        let word = format!("unheard{number}of");
        let search = request("POST", "/v1/call/session::search", json!({"query": word}).to_string().as_bytes());
        let file = &files[(number * 7919) % files.len()];
        File::options().append(true).open(file)?.write_all(turn_about(&word).as_bytes())?;
        took.time(|| {
            loop {
                let answer: Value = serde_json::from_slice(runtime.block_on(connection.ask(&search))?)?;
                if answer["hits"].as_array().is_some_and(|hits| !hits.is_empty()) {
                    return Ok(());
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        })?;
        line.clear();
        told.read_line(&mut line)?;
    }
    child.kill()?;
    child.wait()?;
    server.stop()?;
    let (p50, p95) = (took.percentile(0.5), took.percentile(0.95));
    let sessions = files.len();
    Ok(Row::shown(
        format!("a turn that an agent writes among {sessions} sessions, p95 until a search over HTTP finds it"),
        format!("{:.0} ms, p50 {:.0} ms", p95 / 1e3, p50 / 1e3),
    )
    .target("<= 1 s", p95 <= 1_000_000.0))
}

/// An import that has taken everything, and follows.
fn following(banyan: &Path, home: &Path, into: &Into) -> Outcome<(Child, BufReader<ChildStdout>)> {
    let mut child = import(banyan, home, into, &["codex", "--follow", "--json"])?;
    let mut told = BufReader::new(child.stdout.take().ok_or("the import has no output")?);
    let mut line = String::new();
    while !line.contains("\"summary\"") {
        line.clear();
        if told.read_line(&mut line)? == 0 {
            return Err("the import ended instead of following".into());
        }
    }
    Ok((child, told))
}

/// The seconds that a program takes which only parses.
fn parsed_by(parser: &Path, files: &[PathBuf]) -> Outcome<f64> {
    let mut child = Command::new(parser).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    let mut names = BufWriter::new(child.stdin.take().ok_or("the parser has no input")?);
    for file in files {
        writeln!(names, "{}", file.display())?;
    }
    names.flush()?;
    drop(names);
    Ok(watched(child)?.seconds)
}

/// Where an import goes.
enum Into<'a> {
    Directory(&'a Path),
    Server(String),
}

fn import(banyan: &Path, home: &Path, into: &Into<'_>, words: &[&str]) -> Outcome<Child> {
    let mut command = Command::new(banyan);
    for name in ["CODEX_HOME", "CLAUDE_CONFIG_DIR", "BANYAN_URL", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
        command.env_remove(name);
    }
    command.env("HOME", home).arg("import").args(words);
    match into {
        Into::Directory(data) => command.arg("--data").arg(data),
        Into::Server(url) => command.arg("--url").arg(url),
    };
    let output = if words.contains(&"--follow") { Stdio::piped() } else { Stdio::null() };
    Ok(command.stdin(Stdio::null()).stdout(output).stderr(Stdio::null()).spawn()?)
}

/// What a process took.
struct Used {
    /// Of the processor, over all threads.
    seconds: f64,
    /// The part of it that the search index took.
    indexing: f64,
    most_kib: u64,
}

/// Waits for a process, and looks at it meanwhile.
fn watched(mut child: Child) -> Outcome<Used> {
    let id = child.id().to_string();
    let mut used = Used { seconds: 0.0, indexing: 0.0, most_kib: 0 };
    // Threads of the index come and go.
    let mut indexing: HashMap<u32, f64> = HashMap::new();
    loop {
        if let Some(status) = child.try_wait()? {
            return if status.success() {
                Ok(Used { indexing: indexing.values().sum(), ..used })
            } else {
                Err(format!("it ended with {status}").into())
            };
        }
        if let (Ok(seconds), Ok(most)) = (machine::seconds_of(&id), machine::most_resident_kib_of(&id)) {
            used = Used { seconds, most_kib: most, ..used };
        }
        for (thread, name, seconds) in machine::seconds_of_threads(&id).unwrap_or_default() {
            if INDEXING.iter().any(|known| name.starts_with(known)) {
                indexing.insert(thread, seconds);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A program as it was built along with this one.
fn beside_this(name: &str) -> Outcome<PathBuf> {
    let program = std::env::current_exe()?.with_file_name(name);
    match program.exists() {
        true => Ok(program),
        false => {
            let build = "cargo build --release --package banyan-cli --package banyan-bench";
            Err(format!("`{name}` is not built; run `{build}`").into())
        }
    }
}

/// A file that is written piece by piece.
pub(crate) fn create(path: &Path) -> Outcome<BufWriter<File>> {
    fs::create_dir_all(path.parent().ok_or("a file lies in a folder")?)?;
    Ok(BufWriter::new(File::create(path)?))
}
