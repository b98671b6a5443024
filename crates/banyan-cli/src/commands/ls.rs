//! `banyan ls`: sessions in a table.

use banyan::model::{ListOrder, ListRequest, SessionMeta, SessionStatus};
use clap::Args;
use serde_json::Value;

use crate::args::{Globals, label, labels, named};
use crate::calls::ask;
use crate::client::{Access, Client, with_client};
use crate::failure::{Failure, complain};
use crate::screen::{Screen, Style};
use crate::words::{ago, clip, one_line, width};

/// List sessions.
///
/// With --json, one session a line.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LsArgs {
    /// Only sessions in this status: idle, working, done or error
    #[arg(long, value_parser = named::<SessionStatus>)]
    status: Option<SessionStatus>,
    /// Only sessions with this label in their metadata; give it again for more labels
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, Value)>,
    /// Only sessions of this agent: codex, claude, … (`agent` in their metadata)
    #[arg(long)]
    agent: Option<String>,
    /// The order: updated_desc, created_desc or created_asc
    #[arg(long, value_parser = named::<ListOrder>)]
    order: Option<ListOrder>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    limit: usize,
    /// Where an earlier list ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// All of them, however many there are
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

const EXAMPLES: &str = r#"Examples:
  banyan ls
  banyan ls --status working --meta user=ada
  banyan ls --agent codex               what was imported from Codex
  banyan ls --meta 'team="42"'          a value is JSON where it can be, so text like 42 is quoted
  banyan ls --all --json | jq .title"#;

/// The most that one call gives.
const PAGE: usize = 500;

pub(crate) fn run(args: &LsArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    with_client(globals, Access::Existing, |client| list(args, globals, client, screen))
}

fn list(args: &LsArgs, globals: &Globals, client: &dyn Client, screen: &mut Screen) -> Result<(), Failure> {
    let mut left = if args.all { usize::MAX } else { args.limit };
    let mut wanted = args.labels.clone();
    wanted.extend(args.agent.iter().map(|agent| ("agent".to_owned(), Value::String(agent.clone()))));
    let mut request = ListRequest {
        limit: None,
        cursor: args.cursor.clone(),
        status: args.status,
        metadata: labels(&wanted)?,
        order: args.order,
    };
    let mut table = None;
    while left > 0 {
        request.limit = Some(left.min(PAGE));
        let page = ask(client, &request)?;
        left = left.saturating_sub(page.sessions.len());
        if globals.json {
            page.sessions.iter().try_for_each(|meta| screen.json(meta))?;
        } else if !page.sessions.is_empty() {
            let first = table.is_none();
            let table = table.get_or_insert_with(|| Table::for_rows(&page.sessions, screen));
            if first {
                table.head(screen)?;
            }
            page.sessions.iter().try_for_each(|meta| table.row(meta, screen))?;
        } else if table.is_none() {
            nothing(args, globals, client);
        }
        request.cursor = page.next_cursor;
        if request.cursor.is_none() {
            return Ok(());
        }
    }
    screen.flush()?;
    if let Some(cursor) = request.cursor {
        complain(&format!("There are more: add --all, or --cursor {cursor}"));
    }
    Ok(())
}

fn nothing(args: &LsArgs, globals: &Globals, client: &dyn Client) {
    if args.status.is_some() || !args.labels.is_empty() || args.agent.is_some() || args.cursor.is_some() {
        return complain("No session matches.");
    }
    let prompt = globals.prompt();
    complain(&format!("There are no sessions in {} yet.", client.place()));
    complain(&format!("  Make one:       {prompt} call session::create '{{\"title\":\"Hello\"}}'"));
    complain(&format!("  Take the tour:  {prompt} tour"));
}

/// A table of sessions. The title comes last, so that it may be of any script and take what room there is.
pub(super) struct Table {
    id: usize,
    title: usize,
}

impl Table {
    /// Columns for these rows on this screen.
    pub(super) fn for_rows(rows: &[SessionMeta], screen: &Screen) -> Self {
        const OTHERS: usize = "  13 months ago  working  messages  ".len();
        const TITLE: usize = 24;
        let whole = rows.iter().map(|meta| width(&shown(meta))).max().unwrap_or(0).max(2);
        match screen.columns() {
            None => Self { id: whole, title: usize::MAX },
            Some(columns) => {
                let room = columns.saturating_sub(OTHERS + TITLE);
                let id = whole.min(room.max(unique(rows)));
                Self { id, title: columns.saturating_sub(OTHERS + id).max(8) }
            }
        }
    }

    pub(super) fn head(&self, screen: &mut Screen) -> Result<(), Failure> {
        let head =
            format!("{:id$}  {:13}  {:7}  {:>8}  TITLE", "ID", "UPDATED", "STATUS", "MESSAGES", id = self.id);
        screen.line(&screen.paint(Style::Aside, &head))
    }

    pub(super) fn row(&self, meta: &SessionMeta, screen: &mut Screen) -> Result<(), Failure> {
        let id: String = shown(meta).chars().take(self.id).collect();
        let pad = " ".repeat(self.id.saturating_sub(width(&id)));
        let status = screen.paint(style(meta.status), &format!("{:7}", meta.status.as_str()));
        let title = clip(&one_line(&meta.title), self.title);
        let (updated, messages) = (ago(meta.updated_at), meta.message_count);
        screen.line(format!("{id}{pad}  {updated:13}  {status}  {messages:>8}  {title}").trim_end())
    }
}

/// The colour of a status.
pub(super) fn style(status: SessionStatus) -> Style {
    match status {
        SessionStatus::Idle => Style::Aside,
        SessionStatus::Working => Style::Busy,
        SessionStatus::Done => Style::Good,
        SessionStatus::Error => Style::Bad,
    }
}

fn shown(meta: &SessionMeta) -> String {
    one_line(meta.session_id.as_str())
}

/// How much of each id tells these rows apart, and a little more.
fn unique(rows: &[SessionMeta]) -> usize {
    let mut ids: Vec<String> = rows.iter().map(shown).collect();
    ids.sort_unstable();
    let shared = |pair: &[String]| pair[0].chars().zip(pair[1].chars()).take_while(|(a, b)| a == b).count();
    ids.windows(2).map(shared).max().unwrap_or(0) + 2
}
