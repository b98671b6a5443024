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
use serde_json::json;

use crate::args::Cli;
use crate::failure::{USAGE, complain};
use crate::screen::Screen;

/// See docs/decisions/allocator.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Freed memory is given back to the system after this time instead of 10 ms: an import takes as much again a moment later, and a tenth
/// of its time went into that. Whoever sets `MIMALLOC_PURGE_DELAY` is heard.
#[allow(unsafe_code, reason = "the allocator has no other way to be told, and nothing else runs yet")]
fn keep_freed_memory() {
    /// `mi_option_purge_delay`, and what it is unless somebody set it, so that no other option is ever set by mistake.
    const PURGE_DELAY: (libmimalloc_sys::mi_option_t, std::ffi::c_long) = (15, 10);
    unsafe {
        if libmimalloc_sys::mi_option_get(PURGE_DELAY.0) == PURGE_DELAY.1 {
            libmimalloc_sys::mi_option_set(PURGE_DELAY.0, 50);
        }
    }
}

/// What was typed. An iii engine starts the command by the name of its worker, and means `banyan worker`.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.first().is_some_and(|name| Path::new(name).file_stem() == Some(OsStr::new("session-manager"))) {
        words.insert(1, "worker".into());
    }
    words
}

/// Says why the words are not understood, as JSON where that was asked for, or gives the help that they ask for.
fn misunderstood(error: &clap::Error, words: &[OsString]) -> ExitCode {
    if error.use_stderr() && words.iter().any(|word| word == "--json") {
        let text = error.to_string();
        let message = text.trim_start_matches("error: ").split("\n\n").next().unwrap_or_default();
        complain(&json!({"code": USAGE, "message": message}).to_string());
    } else {
        // Nobody is left to tell when this fails.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn main() -> ExitCode {
    keep_freed_memory();
    let words = words();
    let Cli { globals, command } = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(error) => return misunderstood(&error, &words),
    };
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
