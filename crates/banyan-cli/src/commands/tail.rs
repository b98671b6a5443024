//! `banyan tail`: what happened, event by event.

use banyan::model::{EventFilter, EventType, Position, Role, SessionId};
use banyan::{Start, Subscribe};
use clap::Args;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::args::{Globals, event_type, label, labels, named};
use crate::client::{Access, Frame, Until, with_client};
use crate::failure::Failure;
use crate::resolve::{find, resolve};
use crate::screen::{Screen, Style};
use crate::words::{clip, clip_start, one_line, width};

/// Print what happened, event by event.
///
/// Of a server (--url), what is kept and then what happens, until it is stopped; after a lost connection it goes on where
/// it was. A data directory has one owner, so while this command reads it nobody writes to it: it prints what is kept
/// and ends. With --json, one event a line: {"position":…,"type":…,"data":…}.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TailArgs {
    /// Only this session: its id, or the beginning of its id
    session: Option<String>,
    /// Only events of these types: created, message-added, message-updated, status-changed, meta-updated, deleted
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',', value_parser = event_type)]
    types: Vec<EventType>,
    /// Only messages of these roles: user, assistant, function_result, custom
    #[arg(long, value_name = "ROLE", value_delimiter = ',', value_parser = named::<Role>)]
    roles: Vec<Role>,
    /// Only sessions with this label in their metadata; give it again for more labels
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, Value)>,
    /// Only what came after this position; 0 is the beginning of what is kept, and `now` leaves out the past
    #[arg(long, value_name = "POSITION", default_value = "0", value_parser = after)]
    after: After,
    /// The session as it is, instead of how it came to be
    #[arg(long, requires = "session", conflicts_with = "after")]
    snapshot: bool,
    /// Print the past and end; always so in a data directory
    #[arg(long)]
    once: bool,
}

const EXAMPLES: &str = "\
Examples:
  banyan tail
  banyan tail s_0199 --type message-added --roles user,assistant
  banyan tail --meta user=ada --after 00000000002a-000000
  banyan tail s_0199 --snapshot --json
  banyan tail --url http://127.0.0.1:7420 --after now";

/// Where to begin.
#[derive(Clone, Copy)]
enum After {
    Position(Position),
    Now,
}

fn after(text: &str) -> Result<After, String> {
    match text {
        "now" => Ok(After::Now),
        text => text.parse().map(After::Position).map_err(|error: banyan::model::Error| error.message),
    }
}

pub(crate) fn run(args: &TailArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    if !args.roles.is_empty() && !args.types.is_empty() && !args.types.iter().any(says) {
        return Err(Failure::usage("only events of messages have roles, and none of these types was asked for"));
    }
    with_client(globals, Access::Existing, |client| {
        // A deleted session still has a past, under its whole id.
        let known = args.session.as_deref().map(|text| find(client, text)).transpose()?.flatten();
        let unknown = args.session.as_deref().filter(|_| known.is_none());
        let session = known.map(|meta| meta.session_id).or_else(|| unknown.map(SessionId::from));
        let start = match (&session, args.after) {
            (Some(session), _) if args.snapshot => Start::Snapshot(session.clone()),
            (_, After::Position(position)) => Start::After(position),
            (_, After::Now) => Start::Now,
        };
        let until = if args.once { Until::Now } else { Until::Stopped };
        let mut told = false;
        for frame in client.subscribe(Subscribe { filters: filters(args, session.as_ref())?, start }, until)? {
            let frame = frame?;
            print(&frame, args, globals, screen)?;
            told = true;
            if frame.event == "banyan::resync" {
                return Err(forgotten());
            }
            // The next one may be long in coming.
            if until == Until::Stopped {
                screen.flush()?;
            }
        }
        match unknown {
            Some(text) if !told => resolve(client, text).map(drop),
            _ => Ok(()),
        }
    })
}

/// The position is too old to go on from.
fn forgotten() -> Failure {
    Failure::refused(
        "banyan/resync",
        "the order of events is no longer kept as far back as that position; begin again with --after 0",
    )
}

/// Whether events of a type are of messages, which have roles.
fn says(kind: &EventType) -> bool {
    matches!(kind, EventType::MessageAdded | EventType::MessageUpdated)
}

fn filters(args: &TailArgs, session: Option<&SessionId>) -> Result<Vec<EventFilter>, Failure> {
    let metadata = labels(&args.labels)?;
    let types = match args.types.is_empty() {
        true => EventType::ALL.into_iter().filter(|kind| args.roles.is_empty() || says(kind)).collect(),
        false => args.types.clone(),
    };
    let filter = |event_type| EventFilter {
        event_type,
        session_id: session.cloned(),
        roles: (!args.roles.is_empty() && says(&event_type)).then(|| args.roles.clone()),
        metadata: metadata.clone(),
    };
    Ok(types.into_iter().map(filter).collect())
}

fn print(frame: &Frame, args: &TailArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let position = frame.position.as_deref();
    if globals.json {
        let data: &RawValue = serde_json::from_str(&frame.data)
            .map_err(|error| Failure::storage(format!("an event is not JSON: {error}")))?;
        let (position, data) = (serde_json::json!(position), data.get());
        return screen.line(&format!("{{\"position\":{position},\"type\":\"{}\",\"data\":{data}}}", frame.event));
    }
    let data: Value = serde_json::from_str(&frame.data).unwrap_or_default();
    let kind = frame.event.trim_start_matches("session::");
    let session = match args.session {
        Some(_) => String::new(),
        None => format!("  {}", one_line(data["session_id"].as_str().unwrap_or_default())),
    };
    let lead = format!("{:19}  {kind:15}{session}", position.unwrap_or("now"));
    let room = screen.columns().map_or(usize::MAX, |columns| columns.saturating_sub(width(&lead) + 2).max(24));
    let summary = summary(&frame.event, &data, room);
    let lead = lead.replacen(kind, &screen.paint(Style::Heading, kind), 1);
    screen.line(format!("{lead}  {summary}").trim_end())
}

/// What happened, in a few words.
fn summary(event: &str, data: &Value, room: usize) -> String {
    let word = |key: &str| one_line(data[key].as_str().unwrap_or_default());
    match event {
        "session::message-added" | "session::message-updated" => {
            let who = match data["message"]["role"].as_str() {
                Some(role) => role.to_owned(),
                None => one_line(data["custom"]["custom_type"].as_str().unwrap_or("entry")),
            };
            let said = said(&data["message"]);
            let room = room.saturating_sub(width(&who) + 2);
            // An update is mostly new at its end.
            let said = if event.ends_with("added") { clip(&said, room) } else { clip_start(&said, room) };
            format!("{who}: {said}")
        }
        "session::status-changed" => {
            let reason = word("status_reason");
            let reason = if reason.is_empty() { reason } else { format!(" ({reason})") };
            clip(&format!("{} → {}{reason}", word("previous_status"), word("status")), room)
        }
        _ => clip(&word("title"), room),
    }
}

/// The text of a message, or what it holds instead.
fn said(message: &Value) -> String {
    let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    match text.iter().all(|text| text.is_empty()) {
        true => blocks.iter().filter_map(|block| block["type"].as_str()).map(|kind| format!("[{kind}]")).collect(),
        false => one_line(&text.join(" ")),
    }
}
