//! `banyan fork`: a new session from an entry of another.

use banyan::model::{EntryId, ForkRequest, SessionId, TreeRequest};
use clap::Args;

use crate::args::Globals;
use crate::calls::ask;
use crate::client::{Access, Client, with_client};
use crate::failure::{Failure, complain};
use crate::resolve::resolve;
use crate::screen::Screen;
use crate::words::{count, one_line};

/// Start a new session from an entry of another.
///
/// The fork holds what leads up to the entry and is independent from then on. It prints the fork's id.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ForkArgs {
    /// The session's id, or its beginning
    session: String,
    /// The last entry to take over [default: where the session is now]
    entry: Option<String>,
    /// The fork's title [default: the session's]
    #[arg(long)]
    title: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  banyan fork s_0199
  banyan fork s_0199 e_0199a1 --title 'Another way'
  banyan show \"$(banyan fork s_0199)\"";

pub(crate) fn run(args: ForkArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    with_client(globals, Access::Existing, |client| {
        let source = resolve(client, &args.session)?;
        let entry_id = match args.entry {
            Some(entry) => EntryId::from(entry),
            None => active_leaf(client, &source.session_id)?,
        };
        let fork = ask(client, &ForkRequest { session_id: source.session_id, entry_id, title: args.title })?;
        if globals.json {
            return screen.json(&fork);
        }
        screen.line(fork.session_id.as_str())?;
        screen.flush()?;
        let (title, messages) = (one_line(&fork.meta.title), count(fork.meta.message_count, "message"));
        complain(&format!("Forked “{title}” with {messages}."));
        Ok(())
    })
}

fn active_leaf(client: &dyn Client, session_id: &SessionId) -> Result<EntryId, Failure> {
    let tree = ask(client, &TreeRequest { session_id: session_id.clone(), limit: Some(1), cursor: None })?;
    tree.active_leaf.ok_or_else(|| {
        Failure::usage(format!(
            "session `{session_id}` is empty, so there is no entry to fork it at; append one first"
        ))
        .next("banyan call session::append --schema")
    })
}
