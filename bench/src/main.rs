//! How fast Banyan is, beside its peers, in one run.
//!
//! `banyan-bench [NAME...] [--quick]`, built by `make bench` along with the programs that it measures. One file for each kind of
//! work; without names all of them run, and `docs/benchmarks.md` is written.

mod agent_files;
mod append_one_writer;
mod append_writers;
mod bus;
mod bus_calls;
mod cold_session;
mod directory;
mod fork;
mod growing_message;
mod history_page;
mod http_bodies;
mod http_calls;
mod http_client;
mod http_server;
mod http_streams;
mod import_agents;
mod list_page;
mod load;
mod long_session;
mod machine;
mod message_page;
mod open_directory;
mod page_frames;
mod parsing;
mod portable;
mod probe;
mod raw;
mod recovery;
mod report;
mod resuming;
mod rounds;
mod search;
mod session;
mod sqlite;
mod sqlite_group;
mod subscriptions;
mod workbench;
mod writers;

use report::{Report, Section};
use workbench::{Outcome, Workbench};

type Work = fn(&Workbench) -> Outcome<Section>;

const WORK: &[(&str, Work)] = &[
    ("append-writers", append_writers::run),
    ("append-one-writer", append_one_writer::run),
    ("message-page", message_page::run),
    ("history-page", history_page::run),
    ("cold-session", cold_session::run),
    ("fork", fork::run),
    ("growing-message", growing_message::run),
    ("subscriptions", subscriptions::run),
    ("http-calls", http_calls::run),
    ("http-streams", http_streams::run),
    ("http-bodies", http_bodies::run),
    ("resuming", resuming::run),
    ("bus-calls", bus_calls::run),
    ("list-page", list_page::run),
    ("search", search::run),
    ("open-directory", open_directory::run),
    ("recovery", recovery::run),
    ("page-frames", page_frames::run),
    ("portable", portable::run),
    ("import-agents", import_agents::run),
];

/// See docs/decisions/allocator.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == probe::WORD) {
        return probe::answer(&words[1..]);
    }
    if words.first().is_some_and(|word| word == http_server::WORD) {
        return http_server::run(&words[1..]);
    }
    if words.first().is_some_and(|word| word == recovery::WORD) {
        return recovery::write(&words[1..]);
    }
    if words.first().is_some_and(|word| word == bus::WORD) {
        return bus::run(&words[1..]);
    }
    let quick = words.iter().any(|word| word == "--quick");
    let names: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--quick").collect();
    if let Some(unknown) = names.iter().find(|name| !WORK.iter().any(|(known, _)| known == *name)) {
        let known: Vec<&str> = WORK.iter().map(|(name, _)| *name).collect();
        return Err(format!("there is no work called `{unknown}`; there are {}", known.join(", ")).into());
    }
    let bench = Workbench::set_up(quick)?;
    let mut report = Report::begin(&bench)?;
    eprintln!("load average before: {}", report.load_before);
    for &(name, run) in WORK {
        if names.is_empty() || names.contains(&name) {
            eprintln!("{name} ...");
            let begun = std::time::Instant::now();
            let section = run(&bench)?;
            print!("{}", section.as_text());
            report.sections.push(section);
            eprintln!("{name} took {:.0} s", begun.elapsed().as_secs_f64());
        }
    }
    report.end()?;
    eprintln!("load average after: {}", report.load_after);
    if names.is_empty() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/benchmarks.md");
        std::fs::write(page, report.as_page())?;
        eprintln!("docs/benchmarks.md is written");
    } else {
        eprintln!("docs/benchmarks.md is left as it is: it holds complete runs only");
    }
    bench.tear_down()
}
