//! Aider's history file: one session for each run.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use banyan_model::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, Json, Object, SessionId, SessionStatus,
    StopReason, Usage, UserMessage,
};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::blocks::{self, Block, Who};
use super::{BEGIN, ID};
use crate::teller::Teller;
use crate::{Head, Mark, Note, Own, Problem, Sink, entry_id, session_id};

/// What aider says when it has read the file again.
const RESTORED: &str = "Restored previous conversation history.";

/// Where a reading was left off: at the beginning of the last session, because that one may go on.
#[derive(Default, Serialize, Deserialize)]
struct At {
    offset: u64,
    /// How many sessions began at the same second before it, and when that was.
    same: u64,
    begun: String,
    /// What was told of the last session.
    told: Mark,
}

/// A run of aider: the line that it begins with, and all others.
struct Run {
    offset: u64,
    begun: String,
    lines: Vec<String>,
}

/// Reads a file, or what is new in it.
pub(super) fn file(path: &Path, mark: Option<&Mark>, sink: &mut dyn Sink) -> Result<Mark, Problem> {
    let failed = |error| Problem::io(path, error);
    let mut at: At = mark.and_then(|mark| mark.0.parse().ok()).unwrap_or_default();
    let file = File::open(path).map_err(failed)?;
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(at.offset)).map_err(failed)?;
    let mut offset = at.offset;
    let mut last: Option<Run> = None;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let count = reader.read_until(b'\n', &mut bytes).map_err(failed)? as u64;
        let line = String::from_utf8_lossy(&bytes);
        if matches!(line, std::borrow::Cow::Owned(_)) {
            let place = format!("byte {offset}");
            sink.note(Note { place, what: "some bytes are no UTF-8; they were replaced".to_owned(), lost: true });
        }
        let begun = line.strip_prefix(BEGIN).map(|begun| begun.trim().to_owned());
        if mark.is_some() && offset == at.offset && begun.as_ref() != Some(&at.begun) && !at.begun.is_empty() {
            // It is another file by now.
            return self::file(path, None, sink);
        }
        match begun {
            Some(begun) if !continues(last.as_ref(), &mut reader, path)? => {
                if let Some(run) = last.take() {
                    tell(path, &run, &mut at, sink, false)?;
                }
                last = Some(Run { offset, begun, lines: Vec::new() });
            }
            _ if count == 0 => break,
            _ => match &mut last {
                Some(run) => run.lines.push(line.into_owned()),
                None if line.trim().is_empty() => {}
                // A file that was cut off at the front.
                None => last = Some(Run { offset, begun: String::new(), lines: vec![line.into_owned()] }),
            },
        }
        sink.progress(count);
        offset += count;
    }
    if let Some(run) = last {
        tell(path, &run, &mut at, sink, true)?;
    }
    Ok(Mark(Json::of(&at)?))
}

/// Whether a run that begins here goes on with a session that we wrote: aider says at its beginning that it has read the file.
fn continues(last: Option<&Run>, reader: &mut BufReader<File>, path: &Path) -> Result<bool, Problem> {
    if !last.is_some_and(|run| run.lines.iter().any(|line| blocks::own(line).is_some())) {
        return Ok(false);
    }
    let failed = |error| Problem::io(path, error);
    let here = reader.stream_position().map_err(failed)?;
    let mut restored = false;
    let mut line = Vec::new();
    for _ in 0..400 {
        line.clear();
        let count = reader.read_until(b'\n', &mut line).map_err(failed)?;
        if count == 0 || line.starts_with(BEGIN.as_bytes()) || line.starts_with(b"#### ") {
            break;
        }
        restored |= memchr::memmem::find(&line, RESTORED.as_bytes()).is_some();
    }
    reader.seek(SeekFrom::Start(here)).map_err(failed)?;
    Ok(restored)
}

fn tell(path: &Path, run: &Run, at: &mut At, sink: &mut dyn Sink, is_last: bool) -> Result<(), Problem> {
    let mark = if run.offset == at.offset { Some(std::mem::take(&mut at.told)) } else { None };
    let mark = mark.filter(|mark| !mark.0.is_null());
    at.same = if at.begun == run.begun && run.offset != at.offset { at.same + 1 } else { at.same };
    if at.begun != run.begun {
        at.same = 0;
    }
    at.offset = run.offset;
    at.begun.clone_from(&run.begun);
    let blocks = blocks::blocks(&run.lines);
    let head = head(path, run, &blocks, at.same, is_last);
    let model = head.metadata.get("model").and_then(|model| model.as_str()).unwrap_or_default().to_owned();
    let time = head.created_at;
    let mut teller = Teller::new(sink, head, mark.as_ref())?;
    for (number, block) in blocks.iter().enumerate() {
        if block.own.as_ref().is_some_and(|own| own.made_up) {
            continue;
        }
        let next = blocks.get(number + 1).filter(|next| next.who == Who::Console);
        for (place, message) in messages(block, next, &model, time).into_iter().enumerate() {
            let own = block.own.as_ref().and_then(|own| own.entry.clone()).filter(|_| place == 0);
            let is_own = own.is_some();
            let id = own.unwrap_or_else(|| entry_id(&teller.session(), &format!("block {number} {place}")));
            let as_usual = block.who != Who::Model
                && blocks::written(block.who, &block.text).trim_start() == block.raw.trim_start()
                || block.who == Who::Model && block.raw.trim() == block.text.trim();
            // The lines are kept only where we would write others. What aider said is known as its own either way.
            let kept = match !as_usual && place == 0 {
                true => Some(json!({ "raw": block.raw, "text": block.text })),
                false => (!is_own).then(|| json!({})),
            };
            let origin = kept.map(|kept| Object::from_iter([(ID.to_owned(), kept)]));
            teller.message(id, is_own, origin, &message)?;
        }
    }
    at.told = teller.finish()?;
    Ok(())
}

fn head(path: &Path, run: &Run, blocks: &[Block], same: u64, is_last: bool) -> Head {
    let folder = path.parent().unwrap_or(path);
    let seed = format!("{} {} {same}", folder.display(), run.begun);
    let hash = blake3::hash(seed.as_bytes()).to_hex();
    let digits: String = run.begun.chars().filter(char::is_ascii_digit).collect();
    let native = format!("{digits}_{}", &hash[..8]);
    let own: Option<Own> = run.lines.iter().find_map(|line| blocks::own(line));
    let session: SessionId = own.map_or_else(|| session_id(ID, &native), |own| own.session);
    let console = blocks.iter().filter(|block| block.who == Who::Console).flat_map(|block| block.text.lines());
    let mut metadata = Object::new();
    let mut know = |key: &str, value: &str| drop(metadata.insert(key.to_owned(), value.into()));
    know("agent", ID);
    know("native_id", &native);
    know("cwd", &folder.display().to_string());
    know("source", &path.display().to_string());
    for line in console {
        if let Some(version) = line.strip_prefix("Aider v") {
            know("version", version.trim());
        }
        let model = line.strip_prefix("Main model: ").or_else(|| line.strip_prefix("Model: "));
        if let Some((model, _)) = model.and_then(|model| model.split_once(" with ")) {
            let (provider, name) = model.split_once('/').unwrap_or(("", model));
            know("model", name);
            if !provider.is_empty() {
                know("provider", provider);
            }
        }
    }
    let created_at = local(&run.begun).unwrap_or_default();
    let modified = path.metadata().and_then(|metadata| metadata.modified()).ok();
    let modified = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let modified = modified.and_then(|time| i64::try_from(time.as_millis()).ok()).filter(|_| is_last);
    let updated_at = modified.unwrap_or(created_at).max(created_at);
    Head {
        session,
        title: String::new(),
        created_at,
        updated_at,
        status: SessionStatus::Idle,
        metadata,
        forked_from: None,
    }
}

/// A time of this machine's zone, in which aider writes it without saying so.
fn local(begun: &str) -> Option<i64> {
    let time: DateTime = begun.parse().ok()?;
    Some(time.to_zoned(TimeZone::system()).ok()?.timestamp().as_millisecond())
}

/// What a block is. A failure that the console tells of is also an answer that failed.
fn messages(block: &Block, next: Option<&Block>, model: &str, at: i64) -> Vec<AgentMessage> {
    let content = vec![ContentBlock::text(&block.text)];
    match block.who {
        Who::User => vec![AgentMessage::User(UserMessage { content, timestamp: at })],
        Who::Model => vec![answer(content, model, next.and_then(usage), None, at)],
        Who::Console => {
            let custom_type = "aider.console".to_owned();
            let error = block.text.lines().find(|line| line.starts_with("litellm.") && line.contains("Error"));
            let console = CustomMessage { custom_type, content, display: None, details: None, timestamp: at };
            let failed = error.map(|error| answer(Vec::new(), model, None, Some(error.to_owned()), at));
            [Some(AgentMessage::Custom(console)), failed].into_iter().flatten().collect()
        }
    }
}

fn answer(
    content: Vec<ContentBlock>,
    model: &str,
    usage: Option<Usage>,
    error: Option<String>,
    at: i64,
) -> AgentMessage {
    AgentMessage::Assistant(AssistantMessage {
        content,
        model: model.to_owned(),
        provider: String::new(),
        stop_reason: if error.is_some() { StopReason::Error } else { StopReason::End },
        native_stop_reason: None,
        error_kind: None,
        error_message: error,
        usage,
        warnings: None,
        agent: None,
        timestamp: at,
    })
}

/// What the console says that an answer consumed, rounded as it is there.
fn usage(console: &Block) -> Option<Usage> {
    let line = console.text.lines().find_map(|line| line.strip_prefix("Tokens: "))?;
    let count = |what: &str| {
        let (before, _) = line.split_once(&format!(" {what}"))?;
        let number = before.rsplit([' ', ',']).next()?;
        let (number, times) = match number.strip_suffix('k') {
            Some(number) => (number, 1000.0),
            None => number.strip_suffix('M').map_or((number, 1.0), |number| (number, 1_000_000.0)),
        };
        number.parse::<f64>().ok().map(|number| (number * times) as u64)
    };
    let cost = line.split_once("Cost: $").and_then(|(_, cost)| cost.split_once(' ')?.0.parse().ok());
    Some(Usage {
        input: count("sent"),
        output: count("received"),
        cache_read: count("cache hit"),
        cache_write: count("cache write"),
        reasoning: None,
        cost_usd: cost,
    })
}
