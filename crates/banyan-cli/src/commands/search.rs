//! `banyan search`: entries that say something, best first.

use std::path::{Component, PathBuf};

use banyan::model::{Role, SearchHit, SearchRequest, SearchResponse, SessionId};
use clap::Args;
use serde_json::Value;

use super::show_entry::Teller;
use crate::args::{Globals, label, labels, named};
use crate::around::around;
use crate::calls::ask;
use crate::client::{Access, Client, with_client};
use crate::failure::{Failure, complain};
use crate::moment::moment;
use crate::prose::Length;
use crate::resolve::resolve;
use crate::screen::{Screen, Style};
use crate::words::{ago, one_line};

/// Find what was said, over all sessions.
///
/// All words must be there. "several words" in quotes stand one after another, begin* finds what begins so, and -word leaves
/// out (after `--`, so that it is not taken for an option). Identifiers and paths are found as they are typed, and by their parts. With --json, one hit a line.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SearchArgs {
    /// What to look for
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Only in sessions of this agent (`agent` in their metadata)
    #[arg(long)]
    agent: Option<String>,
    /// Only in sessions that work in this directory or below (`cwd` in their metadata)
    #[arg(long, value_name = "DIR")]
    workspace: Option<String>,
    /// Only what these say: user, assistant, function_result or custom; give it again for more
    #[arg(long = "role", value_parser = named::<Role>)]
    roles: Vec<Role>,
    /// Only calls of this function, and their results
    #[arg(long, value_name = "FUNCTION")]
    tool: Option<String>,
    /// Only since then: a date, a time, or how long ago (12h, 3d, 2w)
    #[arg(long, value_name = "TIME", value_parser = moment, allow_hyphen_values = true)]
    since: Option<i64>,
    /// Only before then
    #[arg(long, value_name = "TIME", value_parser = moment, allow_hyphen_values = true)]
    until: Option<i64>,
    /// Only in sessions with this label in their metadata; give it again for more labels
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, Value)>,
    /// Only in this session; the beginning of its id is enough
    #[arg(long)]
    session: Option<String>,
    /// Look at all branches, not just at the active one of each session
    #[arg(long)]
    all_branches: bool,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=100))]
    limit: usize,
    /// Where an earlier search ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Show this hit, counted from 1, with what stands around it
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=100))]
    open: Option<usize>,
}

const EXAMPLES: &str = r#"Examples:
  banyan search borrow checker
  banyan search '"cannot borrow" src/main.rs' --agent codex --since 3d
  banyan search readFile --tool fs::read --workspace ~/project
  banyan search -- error -warning
  banyan search 'deadl*' --open 1
  banyan search E0308 --json | jq -r .session_id"#;

/// How long a search waits for an index that is not up to date, at a time.
const PATIENCE_MS: u64 = 30_000;
/// How much is shown around a hit.
const BEFORE: usize = 2;
const AFTER: usize = 2;

pub(crate) fn run(args: &SearchArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    with_client(globals, Access::Existing, |client| {
        let session = args.session.as_deref().map(|text| resolve(client, text)).transpose()?;
        let request = request(args, session.map(|meta| meta.session_id))?;
        let found = search(client, &request)?;
        match args.open {
            Some(number) => open(&found, number, globals, client, screen),
            None => tell(&found, globals, screen),
        }
    })
}

fn request(args: &SearchArgs, session_id: Option<SessionId>) -> Result<SearchRequest, Failure> {
    Ok(SearchRequest {
        query: Some(args.words.join(" ")),
        q: None,
        agent: args.agent.clone(),
        workspace: args.workspace.as_deref().map(absolute),
        roles: (!args.roles.is_empty()).then(|| args.roles.clone()),
        tool: args.tool.clone(),
        since: args.since,
        until: args.until,
        metadata: labels(&args.labels)?,
        session_id,
        all_branches: args.all_branches.then_some(true),
        limit: Some(args.open.unwrap_or(0).max(args.limit).min(100)),
        cursor: args.cursor.clone(),
        wait_ms: Some(PATIENCE_MS),
    })
}

/// Searches, and waits for the index while it comes closer to being complete.
fn search(client: &dyn Client, request: &SearchRequest) -> Result<SearchResponse, Failure> {
    const MOST_ROUNDS: usize = 120;
    for _ in 0..MOST_ROUNDS {
        let found = ask(client, request)?;
        if found.complete {
            return Ok(found);
        }
    }
    let found = ask(client, request)?;
    complain("The index is still being made, so this is not everything.");
    Ok(found)
}

fn tell(found: &SearchResponse, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    if globals.json {
        found.hits.iter().try_for_each(|hit| screen.json(hit))?;
    } else {
        for (at, hit) in found.hits.iter().enumerate() {
            if at > 0 {
                screen.line("")?;
            }
            tell_hit(at + 1, hit, globals, screen)?;
        }
    }
    screen.flush()?;
    if found.hits.is_empty() {
        complain("Nothing was found.");
    }
    if let Some(cursor) = &found.next_cursor {
        complain(&format!("There are more: add --cursor {cursor}"));
    }
    Ok(())
}

fn tell_hit(number: usize, hit: &SearchHit, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let title = one_line(&hit.title);
    let title = if title.is_empty() { "(no title)" } else { &title };
    let who = [hit.agent.as_deref(), hit.role.map(Role::as_str)].into_iter().flatten().map(one_line);
    let mut aside: Vec<String> = who.chain([ago(hit.timestamp)]).collect();
    if !hit.active {
        aside.push("on another branch".to_owned());
    }
    let aside = screen.paint(Style::Aside, &format!(" · {}", aside.join(" · ")));
    screen.line(&format!("{number:>2}. {}{aside}", screen.paint(Style::Heading, title)))?;
    let pieces = hit.snippet.iter().map(|piece| {
        let text = safe_piece(&piece.text);
        if piece.is_match { screen.paint(Style::Heading, &text) } else { text }
    });
    let snippet: String = pieces.collect();
    screen.line(&format!("    {}", snippet.trim_end()))?;
    let branch = if hit.active { String::new() } else { format!(" --branch {}", one_line(hit.entry_id.as_str())) };
    let open = format!(
        "    {} show {}{branch}",
        globals.prompt(),
        crate::args::quoted(&one_line(hit.session_id.as_str()))
    );
    screen.line(&screen.paint(Style::Aside, &open))
}

/// A piece as it may be shown. Blanks at its ends stay, because another piece follows.
fn safe_piece(text: &str) -> String {
    crate::words::safe(text).replace(['\n', '\t'], " ")
}

fn open(
    found: &SearchResponse,
    number: usize,
    globals: &Globals,
    client: &dyn Client,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let Some(hit) = found.hits.get(number - 1) else {
        let there = found.hits.len();
        return Err(Failure::refused(
            "cli/no_such_hit",
            format!("there is no hit {number}; the search found {there}"),
        ));
    };
    let items = around(client, &hit.session_id, &hit.entry_id, BEFORE, AFTER)?;
    if globals.json {
        return items.iter().try_for_each(|item| screen.json(item));
    }
    tell_hit(number, hit, globals, screen)?;
    let mut teller = Teller::new(Length::Short);
    items.iter().try_for_each(|item| teller.tell(item, screen))
}

/// A directory as agents name theirs: from the root on.
fn absolute(directory: &str) -> String {
    let mut whole = PathBuf::new();
    for part in std::path::absolute(directory).unwrap_or_else(|_| directory.into()).components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            part => whole.push(part),
        }
    }
    whole.to_string_lossy().into_owned()
}
