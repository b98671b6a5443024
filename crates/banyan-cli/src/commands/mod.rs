//! The commands, one file each.

mod call;
mod call_list;
mod call_stream;
mod fork;
mod key;
mod key_ring;
mod ls;
mod rm;
mod serve;
mod show;
mod show_block;
mod show_entry;
mod show_tree;
mod tail;
mod tour;
mod verify;

use clap::Subcommand;

use crate::args::Globals;
use crate::failure::Failure;
use crate::screen::Screen;

/// What can be done.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Walk through a first session
    Tour(tour::TourArgs),
    /// Serve a data directory over HTTP
    Serve(serve::ServeArgs),
    /// Make, list and remove the keys of a server
    Key(key::KeyArgs),
    /// Call a function by its id, with JSON
    Call(call::CallArgs),
    /// List sessions
    Ls(ls::LsArgs),
    /// Read a session's conversation
    Show(show::ShowArgs),
    /// Print what happened, event by event
    Tail(tail::TailArgs),
    /// Start a new session from an entry of another
    Fork(fork::ForkArgs),
    /// Delete sessions
    Rm(rm::RmArgs),
    /// Read everything in a data directory and report damage
    Verify(verify::VerifyArgs),
}

/// Does what was asked.
pub(crate) fn run(command: Command, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    match command {
        Command::Tour(args) => tour::run(&args, globals, screen),
        Command::Serve(args) => serve::run(&args, globals, screen),
        Command::Key(args) => key::run(&args, globals, screen),
        Command::Call(args) => call::run(&args, globals, screen),
        Command::Ls(args) => ls::run(&args, globals, screen),
        Command::Show(args) => show::run(&args, globals, screen),
        Command::Tail(args) => tail::run(&args, globals, screen),
        Command::Fork(args) => fork::run(args, globals, screen),
        Command::Rm(args) => rm::run(&args, globals, screen),
        Command::Verify(args) => verify::run(&args, globals, screen),
    }
}
