//! The `banyan` command: sessions from a shell.
//!
//! Standard output carries data and nothing else; what is said to the person goes to standard error. What the
//! store can do is in the `banyan` crate; here it is only asked for and shown.

mod agents;
mod args;
mod around;
mod calls;
mod client;
mod commands;
mod data_dir;
mod failure;
mod json;
mod moment;
mod notice;
mod progress;
mod prose;
mod resolve;
mod screen;
mod signals;
mod words;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;
use crate::screen::Screen;

/// See docs/decisions/allocator.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What was typed. An iii engine starts the command by the name of its worker, and means `banyan worker`.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.first().is_some_and(|name| Path::new(name).file_stem() == Some(OsStr::new("session-manager"))) {
        words.insert(1, "worker".into());
    }
    words
}

fn main() -> ExitCode {
    let Cli { globals, command } = Cli::parse_from(words());
    let mut screen = Screen::new();
    let outcome = commands::run(command, &globals, &mut screen);
    let flushed = screen.flush();
    match outcome.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell(&globals);
            failure.exit_code()
        }
    }
}
