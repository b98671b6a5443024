//! The turns of a session: how each ended, what it cost, and what became of its tool calls.

use banyan::model::{SessionId, ToolState, ToolUse, Turn, TurnStatus, TurnsRequest, Usage};

use crate::args::Globals;
use crate::calls::ask;
use crate::client::Client;
use crate::failure::Failure;
use crate::screen::{Screen, Style};
use crate::words::{ago, one_line};

/// How many turns one call gives.
const PAGE: usize = 200;

pub(super) fn tell(
    session_id: &SessionId,
    globals: &Globals,
    client: &dyn Client,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let mut request = TurnsRequest { session_id: session_id.clone(), limit: Some(PAGE), cursor: None };
    loop {
        let page = ask(client, &request)?;
        for turn in &page.turns {
            match globals.json {
                true => screen.json(turn)?,
                false => tell_turn(turn, screen)?,
            }
        }
        if page.next_cursor.is_none() {
            return Ok(());
        }
        request.cursor = page.next_cursor;
    }
}

fn tell_turn(turn: &Turn, screen: &mut Screen) -> Result<(), Failure> {
    let style = match turn.status {
        TurnStatus::Finished => Style::Good,
        TurnStatus::Pending | TurnStatus::Running => Style::Busy,
        TurnStatus::Cancelled | TurnStatus::Failed | TurnStatus::Interrupted => Style::Bad,
    };
    let mut facts = vec![ago(turn.started_at)];
    facts.extend(turn.duration_ms.map(took));
    facts.extend(turn.model.as_deref().map(one_line));
    facts.extend(turn.usage.as_ref().and_then(consumed));
    screen.line("")?;
    screen.line(&format!(
        "{} {} {}",
        screen.paint(Style::Heading, &one_line(&turn.turn_id)),
        screen.paint(style, turn.status.as_str()),
        screen.paint(Style::Aside, &facts.join(" · "))
    ))?;
    if let Some(directory) = &turn.working_directory {
        screen.line(&screen.paint(Style::Aside, &format!("  in {}", one_line(directory))))?;
    }
    for source in &turn.instructions {
        let path = source.path.as_deref().or(source.kind.as_deref()).unwrap_or("instructions");
        let mut about = vec![format!("  with {}", one_line(path))];
        about.extend(source.hash.as_deref().map(one_line));
        about.extend(source.truncated.filter(|cut| *cut).map(|_| "truncated".to_owned()));
        about.extend(source.error.as_deref().map(one_line));
        screen.line(&screen.paint(Style::Aside, &about.join(" · ")))?;
    }
    turn.tools.iter().try_for_each(|tool| tell_tool(tool, screen))?;
    for error in &turn.errors {
        screen.line(&format!("  {}", screen.paint(Style::Bad, &one_line(&error.message))))?;
    }
    Ok(())
}

fn tell_tool(tool: &ToolUse, screen: &mut Screen) -> Result<(), Failure> {
    let style = match tool.state {
        ToolState::Ok => Style::Good,
        ToolState::Pending => Style::Busy,
        ToolState::Failed | ToolState::Interrupted | ToolState::Skipped => Style::Bad,
    };
    let took = tool.duration_ms.map(|ms| format!(" · {}", took(ms))).unwrap_or_default();
    screen.line(&format!(
        "  {} {}{}",
        screen.paint(Style::Code, &one_line(&tool.name)),
        screen.paint(style, tool.state.as_str()),
        screen.paint(Style::Aside, &took)
    ))
}

fn took(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
    }
}

fn consumed(usage: &Usage) -> Option<String> {
    let tokens = usage.input.zip(usage.output).map(|(input, output)| format!("{input} in, {output} out"));
    let cost = usage.cost_usd.map(|cost| format!("${cost:.4}"));
    match (tokens, cost) {
        (None, None) => None,
        (tokens, cost) => Some([tokens, cost].into_iter().flatten().collect::<Vec<_>>().join(", ")),
    }
}
