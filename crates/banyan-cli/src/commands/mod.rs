//! The commands, one file each.

mod backup;
mod bus;
mod call;
mod call_list;
mod call_stream;
mod config;
mod export;
mod fork;
mod import;
mod import_file;
mod key;
mod key_ring;
mod ls;
mod mcp;
mod mcp_tools;
mod purge;
mod restore;
mod resume;
mod rm;
mod search;
mod serve;
mod server_options;
mod show;
mod show_block;
mod show_entry;
mod show_tree;
mod show_turns;
mod tail;
mod tour;
mod verify;
mod verify_archive;
mod worker;

use clap::Subcommand;

use crate::args::Globals;
use crate::failure::Failure;
use crate::screen::Screen;

/// What can be done. Each says itself what it is for: a comment here would stand in the place of its help.
#[derive(Subcommand)]
pub(crate) enum Command {
    Tour(tour::TourArgs),
    Serve(serve::ServeArgs),
    Worker(worker::WorkerArgs),
    Config(config::ConfigArgs),
    Key(key::KeyArgs),
    Call(call::CallArgs),
    Ls(ls::LsArgs),
    Show(show::ShowArgs),
    Search(search::SearchArgs),
    Tail(tail::TailArgs),
    Fork(fork::ForkArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Resume(resume::ResumeArgs),
    Rm(rm::RmArgs),
    Purge(purge::PurgeArgs),
    Verify(verify::VerifyArgs),
    Backup(backup::BackupArgs),
    Restore(restore::RestoreArgs),
    Mcp(mcp::McpArgs),
}

/// Does what was asked.
pub(crate) fn run(command: Command, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    match command {
        Command::Tour(args) => tour::run(&args, globals, screen),
        Command::Serve(args) => serve::run(&args, globals, screen),
        Command::Worker(args) => worker::run(&args, globals, screen),
        Command::Config(args) => config::run(&args, globals, screen),
        Command::Key(args) => key::run(&args, globals, screen),
        Command::Call(args) => call::run(&args, globals, screen),
        Command::Ls(args) => ls::run(&args, globals, screen),
        Command::Show(args) => show::run(&args, globals, screen),
        Command::Search(args) => search::run(&args, globals, screen),
        Command::Tail(args) => tail::run(&args, globals, screen),
        Command::Fork(args) => fork::run(args, globals, screen),
        Command::Export(args) => export::run(&args, globals, screen),
        Command::Import(args) => import::run(&args, globals, screen),
        Command::Resume(args) => resume::run(&args, globals, screen),
        Command::Rm(args) => rm::run(&args, globals, screen),
        Command::Purge(args) => purge::run(&args, globals, screen),
        Command::Verify(args) => verify::run(&args, globals, screen),
        Command::Backup(args) => backup::run(args, globals, screen),
        Command::Restore(args) => restore::run(&args, globals, screen),
        Command::Mcp(args) => mcp::run(&args, globals, screen),
    }
}
