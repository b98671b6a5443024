//! Search over very many messages, beside `rg` on the same session files; how fast the index is made, and what that
//! costs those who append meanwhile.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use banyan::{Banyan, Options, SearchIndexing, block_on};
use banyan_model::{AppendManyRequest, CreateRequest, Object, SearchRequest, SessionId};

use crate::report::{Row, Section};
use crate::rounds::{Latencies, Turn, interleaved};
use crate::session;
use crate::workbench::{Outcome, Workbench};
use crate::writers::{While, as_threads};

const IN_SESSION: usize = 100;
/// Words of a message; every one is drawn from the vocabulary, common ones far more often.
const WORDS: usize = 50;
const VOCABULARY: usize = 50_000;
/// A word that only a few messages have.
const RARE: &str = "quixotically";
const FEW: usize = 7;

/// What is typed, and what it is an example of.
const QUERIES: [(&str, &str); 6] = [
    ("a common word", "w0"),
    ("a rare word", RARE),
    ("two common words", "w0 w1"),
    ("a phrase of common words", "\"w0 w1\""),
    ("a beginning", "quixo*"),
    ("a common word of one agent in ten", "w2"),
];

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let messages = bench.pick(1_000_000, 100_000);
    let dir = bench.path().join("search");
    make(&dir, messages)?;
    let mut section = Section::default();
    let built = build(&dir)?;
    let rate = messages as f64 / built.as_secs_f64();
    section.rows.push(
        Row::shown(format!("making the search index of {messages} messages"), format!("{rate:.0} messages/s"))
            .target(">= 20,000/s", rate >= 20_000.0),
    );
    search(bench, &dir, messages, &mut section)?;
    let bytes = |dir: &Path| -> Outcome<u64> {
        let files = std::fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
        Ok(files.iter().filter_map(|file| file.metadata().ok()).filter(|it| it.is_file()).map(|it| it.len()).sum())
    };
    section.method.push(format!(
        "Search: {messages} messages of {WORDS} words in sessions of {IN_SESSION}, words drawn by Zipf's law from \
         {VOCABULARY}. Session files {} MB, index {} MB.",
        bytes(&dir)? / 1_000_000,
        bytes(&index_of(&dir))? / 1_000_000
    ));
    // It is made anew for each of these.
    appends(bench, &dir, &mut section)?;
    std::fs::remove_dir_all(&dir)?;
    Ok(section)
}

fn index_of(dir: &Path) -> PathBuf {
    dir.join(".banyan/index/search")
}

fn open(dir: &Path, search: SearchIndexing) -> Outcome<Banyan> {
    Ok(Banyan::open(dir, Options { search, ..Options::default() })?)
}

/// A word by Zipf's law: the first is in nearly every message, the last in a few.
fn word(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let unit = (*state >> 11) as f64 / (1_u64 << 53) as f64;
    ((VOCABULARY as f64).powf(unit) - 1.0) as usize
}

fn make(dir: &Path, messages: usize) -> Outcome<()> {
    let options =
        Options { durability: banyan::Durability::Buffered, search: SearchIndexing::Off, ..Options::default() };
    let store = Banyan::open(dir, options)?;
    let mut state = 42;
    for number in 0..messages / IN_SESSION {
        let agent = format!("agent{}", number % 10);
        let metadata = Object::from_iter([("agent".to_owned(), agent.into())]);
        let request = CreateRequest { metadata: Some(metadata), ..CreateRequest::default() };
        let session_id = block_on(store.create(request))?.session_id;
        let mut texts = Vec::with_capacity(IN_SESSION);
        for at in 0..IN_SESSION {
            let mut text = String::with_capacity(WORDS * 7);
            for _ in 0..WORDS {
                text.push_str(&format!("w{} ", word(&mut state)));
            }
            if at == 0 && number % (messages / IN_SESSION / FEW) == 0 {
                text.push_str(RARE);
            }
            texts.push(session::user(text));
        }
        let request = AppendManyRequest { session_id, messages: texts, parent_id: None, origin: None };
        block_on(store.append_many(request))?;
    }
    Ok(store.close()?)
}

/// Makes the index from nothing, and says how long that took.
fn build(dir: &Path) -> Outcome<Duration> {
    let store = open(dir, SearchIndexing::Following)?;
    let begun = Instant::now();
    while !ask(&store, RARE, None, 60_000)?.1 {}
    let took = begun.elapsed();
    store.close()?;
    Ok(took)
}

fn ask(store: &Banyan, query: &str, agent: Option<&str>, wait_ms: u64) -> Outcome<(usize, bool)> {
    let request = SearchRequest {
        query: Some(query.to_owned()),
        agent: agent.map(str::to_owned),
        wait_ms: Some(wait_ms),
        ..SearchRequest::default()
    };
    let answer = block_on(store.search(request))?;
    Ok((answer.hits.len(), answer.complete))
}

fn search(bench: &Workbench, dir: &Path, messages: usize, section: &mut Section) -> Outcome<()> {
    let store = open(dir, SearchIndexing::Following)?;
    for (what, query) in QUERIES {
        let agent = (query == "w2").then_some("agent3");
        let (found, _) = ask(&store, query, agent, 60_000)?;
        if found == 0 {
            return Err(format!("`{query}` was not found").into());
        }
        let mut took = Latencies::of(bench.pick(200, 50), || ask(&store, query, agent, 0).map(|_| ()))?;
        let (p50, p95) = (took.percentile(0.5) / 1000.0, took.percentile(0.95) / 1000.0);
        let row =
            Row::shown(format!("search, {what}, {messages} messages, p95"), format!("{p95:.2} ms (p50 {p50:.2})"));
        let row = match ripgrep(dir, query) {
            Some(took) if agent.is_none() => {
                let ms = took.as_secs_f64() * 1000.0;
                row.beside(format!("rg {ms:.0} ms")).ratio(p95 / ms)
            }
            _ => row,
        };
        // What is asked is asked of words.
        let is_word = !query.contains(['"', '*', ' ']);
        section.rows.push(if is_word { row.target("<= 30 ms", p95 <= 30.0) } else { row });
    }
    Ok(store.close()?)
}

/// How long `rg` takes to list the files that have what is asked, in the best of three runs. It stops in each file at
/// the first match, and ranks nothing.
fn ripgrep(dir: &Path, query: &str) -> Option<Duration> {
    let pattern = match query.strip_suffix('*') {
        Some(beginning) => format!("\\b{beginning}"),
        None if query.contains('"') => format!("\\b{}\\b", query.trim_matches('"')),
        None => format!("\\b{}\\b", query.split(' ').next()?),
    };
    let once = || {
        let begun = Instant::now();
        let mut rg = Command::new("rg");
        rg.args(["-l", "-i", "--no-ignore", "-g", "*.jsonl", &pattern]).arg(dir);
        let status = rg.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.ok().filter(|status| status.success()).map(|_| begun.elapsed())
    };
    let best = (0..3).filter_map(|_| once()).min();
    if best.is_none() {
        eprintln!("skipped: rg is not here, so nothing is beside search");
    }
    best
}

/// What those who append lose while the index is made.
fn appends(bench: &Workbench, dir: &Path, section: &mut Section) -> Outcome<()> {
    let time = While {
        before: Duration::from_millis(500),
        counted: bench.pick(Duration::from_secs(4), Duration::from_secs(1)),
    };
    let turns: Vec<Turn<'_>> = vec![
        Box::new(|| appended(dir, SearchIndexing::Off, time)),
        Box::new(|| appended(dir, SearchIndexing::Following, time)),
    ];
    let measured = interleaved(bench.rounds(), turns)?;
    let [alone, meanwhile] = measured.as_slice() else { return Err("not everything was measured".into()) };
    let ratio = meanwhile.median / alone.median;
    let rate =
        |it: &crate::rounds::Measured| format!("{:.0}/s ({:.0} to {:.0})", it.median, it.lowest, it.highest);
    section.rows.push(
        Row::shown("durable append, 64 writers, while the search index is made, beside no index", rate(meanwhile))
            .beside(rate(alone))
            .ratio(ratio)
            .target(">= 0.9x", ratio >= 0.9),
    );
    Ok(())
}

fn appended(dir: &Path, search: SearchIndexing, time: While) -> Outcome<f64> {
    let _ = std::fs::remove_dir_all(index_of(dir));
    let store = open(dir, search)?;
    if search == SearchIndexing::Following {
        // Begins at once, and not after the pause that spares short commands.
        ask(&store, RARE, None, 1)?;
    }
    let mut sessions: Vec<SessionId> = Vec::new();
    let done = as_threads(time, |writer| {
        let store = store.clone();
        let session = session::create(&store)?;
        sessions.push(session.clone());
        let request = session::append(&session, session::user(session::text(writer, 1024)));
        Ok(move || {
            block_on(store.append(request.clone()))?;
            Ok(())
        })
    })?;
    if search == SearchIndexing::Following && ask(&store, RARE, None, 0)?.1 {
        eprintln!("the index was complete before the appends were over, so that a part of them met nobody");
    }
    for session in sessions {
        block_on(store.delete(banyan_model::DeleteRequest { session_id: session }))?;
    }
    store.close()?;
    Ok(done.per_second)
}
