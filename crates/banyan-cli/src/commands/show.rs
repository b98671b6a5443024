//! `banyan show`: a conversation to read.

use banyan::model::{EntryId, MessagesRequest, SessionMeta, TreeRequest};
use clap::Args;

use super::show_entry::Teller;
use super::{ls, show_tree, show_turns};
use crate::args::Globals;
use crate::calls::ask;
use crate::client::{Access, Client, with_client};
use crate::failure::{Failure, complain};
use crate::prose::Length;
use crate::resolve::resolve;
use crate::screen::{Screen, Style};
use crate::words::{ago, count, one_line};

/// Read a session's conversation.
///
/// What was said is shown whole; of what functions were given and gave back, the first lines. Times are local. With --json, one entry a line.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShowArgs {
    /// The session's id, or its beginning
    session: String,
    /// Read the branch that ends in this entry [default: the active one]
    #[arg(long, value_name = "ENTRY", conflicts_with = "tree")]
    branch: Option<String>,
    /// Show how the entries of all branches hang together, without their content
    #[arg(long)]
    tree: bool,
    /// Show the turns: how each ended, what it consumed, and what became of its tool calls
    #[arg(long, conflicts_with_all = ["tree", "branch", "custom", "full"])]
    turns: bool,
    /// Include entries that hold an application's own data
    #[arg(long, conflicts_with = "tree")]
    custom: bool,
    /// Show long results, arguments and thoughts whole, not just their first lines
    #[arg(long, conflicts_with = "tree")]
    full: bool,
}

const EXAMPLES: &str = "\
Examples:
  banyan show s_0199
  banyan show s_0199 --full | less
  banyan show s_0199 --tree
  banyan show s_0199 --turns
  banyan show s_0199 --branch e_0199a1
  banyan show s_0199 --json | jq .message.role";

/// How much one call gives.
const PAGE: usize = 500;
const PAGE_BYTES: u64 = 8 << 20;

pub(crate) fn run(args: &ShowArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    with_client(globals, Access::Existing, |client| {
        let meta = resolve(client, &args.session)?;
        match (args.tree, args.turns) {
            (true, _) => tree(&meta, globals, client, screen),
            (_, true) => turns(&meta, globals, client, screen),
            _ => conversation(args, &meta, globals, client, screen),
        }
    })
}

fn conversation(
    args: &ShowArgs,
    meta: &SessionMeta,
    globals: &Globals,
    client: &dyn Client,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let mut request = MessagesRequest::of(meta.session_id.clone());
    request.limit = Some(PAGE);
    request.bytes = Some(PAGE_BYTES);
    request.from_entry_id = args.branch.as_deref().map(EntryId::from);
    request.include_custom = Some(args.custom);
    let mut teller = Teller::new(if args.full { Length::Full } else { Length::Short });
    loop {
        let page = ask(client, &request)?;
        if globals.json {
            page.messages.iter().try_for_each(|item| screen.json(item))?;
        } else {
            if request.cursor.is_none() {
                head(meta, screen)?;
            }
            if request.cursor.is_none() && page.messages.is_empty() && page.damaged.is_empty() {
                complain("There is nothing in it yet.");
            }
            page.messages.iter().try_for_each(|item| teller.tell(item, screen))?;
        }
        for damaged in &page.damaged {
            complain(&format!("Entry {} is damaged and was left out.", one_line(damaged.entry_id.as_str())));
        }
        if page.next_cursor.is_none() {
            return Ok(());
        }
        request.cursor = page.next_cursor;
    }
}

fn tree(meta: &SessionMeta, globals: &Globals, client: &dyn Client, screen: &mut Screen) -> Result<(), Failure> {
    let mut request = TreeRequest::first_page(meta.session_id.clone());
    let mut tree = ask(client, &request)?;
    while let Some(cursor) = tree.next_cursor.take() {
        request.cursor = Some(cursor);
        let page = ask(client, &request)?;
        tree.entries.extend(page.entries);
        tree.next_cursor = page.next_cursor;
    }
    if globals.json {
        return tree.entries.iter().try_for_each(|node| screen.json(node));
    }
    head(meta, screen)?;
    screen.line("")?;
    show_tree::draw(&tree, screen)
}

fn turns(meta: &SessionMeta, globals: &Globals, client: &dyn Client, screen: &mut Screen) -> Result<(), Failure> {
    if !globals.json {
        head(meta, screen)?;
    }
    show_turns::tell(&meta.session_id, globals, client, screen)
}

fn head(meta: &SessionMeta, screen: &mut Screen) -> Result<(), Failure> {
    let title = one_line(&meta.title);
    let title = if title.is_empty() { "(no title)" } else { &title };
    screen.line(&screen.paint(Style::Heading, title))?;
    if !meta.description.is_empty() {
        screen.line(&one_line(&meta.description))?;
    }
    let status = screen.paint(ls::style(meta.status), meta.status.as_str());
    let messages = count(meta.message_count, "message");
    let aside = format!(" · {messages} · changed {}", ago(meta.updated_at));
    let id = one_line(meta.session_id.as_str());
    screen.line(&format!(
        "{}{status}{}",
        screen.paint(Style::Aside, &format!("{id} · ")),
        screen.paint(Style::Aside, &aside)
    ))?;
    if let Some(reason) = &meta.status_reason {
        screen.line(&screen.paint(Style::Bad, &one_line(reason)))?;
    }
    if let Some(source) = &meta.forked_from {
        screen.line(&screen.paint(Style::Aside, &format!("forked from {}", one_line(source.as_str()))))?;
    }
    Ok(())
}
