//! Blanking a record in place: its content goes, and its number, its place, its length and its part in the tree stay.
//!
//! What is left is the line's own JSON without titles, descriptions, reasons, origins, content and the names of stored
//! content; white space fills the line to its old length. The key `del` in place of `crc` marks it, see [`super::crc`].

use std::fmt;

use banyan_model::{AgentMessage, Role, StopReason};

use super::crc::{self, Check};
use super::fault::LineFault;
use super::head::{Head, HeadKind, body_text, is_ours, without_line_feed};
use super::legacy::LegacyHead;
use crate::node_kind::NodeKind;
use crate::scan::Scanner;

/// Why a line was not blanked.
#[derive(Clone, Debug, PartialEq)]
pub enum NotBlanked {
    /// The line is damaged: it cannot be told what it is.
    Damaged(LineFault),
    /// Records of this type have no content.
    NoContent,
    /// A record that is not known here is not changed.
    NotKnown,
    /// What the line says is not of its type's form, so nothing as short can stand in its place.
    NoRoom,
}

impl fmt::Display for NotBlanked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(fault) => write!(f, "a damaged record cannot be erased: {fault}"),
            Self::NoContent => f.write_str("the record has no content to erase"),
            Self::NotKnown => f.write_str("a record of a newer Banyan is not changed"),
            Self::NoRoom => f.write_str("the record is not of the form that its type has, so it cannot be erased"),
        }
    }
}

impl std::error::Error for NotBlanked {}

/// What becomes of a field.
enum Fate {
    Keep,
    Drop,
    Becomes(String),
}

/// The line of a record, whole and closed, without its content. It has as many bytes, the line feed included, and blanking
/// it again gives the same line.
pub fn blank(line: &[u8]) -> Result<Vec<u8>, NotBlanked> {
    let bare = without_line_feed(line);
    let head = Head::parse(bare).map_err(NotBlanked::Damaged)?;
    let text = std::str::from_utf8(bare).map_err(|_| NotBlanked::NoRoom)?;
    let mut blanked = match &head.kind {
        HeadKind::Legacy(legacy) => blank_legacy(text, &head, legacy)?,
        _ => blank_own(text, &head)?,
    };
    if line.len() > bare.len() {
        blanked.push(b'\n');
    }
    Ok(blanked)
}

fn blank_own(line: &str, head: &Head<'_>) -> Result<Vec<u8>, NotBlanked> {
    if head.erased {
        return Ok(line.as_bytes().to_vec());
    }
    debug_assert!(is_ours(line.as_bytes()));
    let Check::Holds(covered) = crc::check(line.as_bytes()) else { return Err(NotBlanked::NoRoom) };
    let kept = kept_fields(&head.kind)?;
    let body = body_text(line.as_bytes(), head);
    let object = format!("{}}}", &line[..covered]);
    let left = rewrite(&object, &mut |key, value| {
        Some(match key {
            "schema_version" | "seq" | "time" | "commit" | "type" => Fate::Keep,
            "message" => Fate::Becomes(blank_message(body?, role_of(&head.kind))?),
            "data" => Fate::Becomes(blank_data(value)),
            "adds" => Fate::Becomes(blank_adds(value)?),
            "meta" => Fate::Becomes(rewrite(value, &mut meta_field)?),
            "title" | "description" => Fate::Becomes("\"\"".to_owned()),
            _ if kept.contains(&key) => Fate::Keep,
            _ => Fate::Drop,
        })
    });
    let mut left = left.ok_or(NotBlanked::NoRoom)?.into_bytes();
    left.pop();
    if left.len() > covered {
        return Err(NotBlanked::NoRoom);
    }
    left.resize(covered, b' ');
    let tail = crc::erased_tail(&left);
    left.extend_from_slice(without_line_feed(&tail));
    Ok(left)
}

/// The fields of a type that say nothing, and on which the session's structure or who reaches it depends.
fn kept_fields(kind: &HeadKind<'_>) -> Result<&'static [&'static str], NotBlanked> {
    Ok(match kind {
        HeadKind::Created(_) => &["session_id", "born", "metadata", "base"],
        HeadKind::Message { .. } => &["entry_id", "parent_id", "role"],
        HeadKind::Custom { .. } => &["entry_id", "parent_id", "custom_type"],
        HeadKind::Updated { .. } | HeadKind::Settled { .. } => &["entry_id", "revision"],
        HeadKind::Grew(_) => &["entry_id", "block", "revision"],
        HeadKind::MetaSet(_) => &["metadata"],
        HeadKind::StatusSet(_) => &["status"],
        HeadKind::EntryPut(_) => &["entry_id", "parent_id", "timestamp", "revision", "role", "custom_type"],
        HeadKind::Attached(_) | HeadKind::MetaPut(_) => &[],
        HeadKind::Erased
        | HeadKind::LeafMoved { .. }
        | HeadKind::Detached(_)
        | HeadKind::Adopted { .. }
        | HeadKind::Begun(_)
        | HeadKind::LeafPut { .. }
        | HeadKind::Legacy(_) => return Err(NotBlanked::NoContent),
        HeadKind::Unknown(_) | HeadKind::Newer(_) => return Err(NotBlanked::NotKnown),
    })
}

fn blank_legacy(line: &str, head: &Head<'_>, legacy: &LegacyHead) -> Result<Vec<u8>, NotBlanked> {
    let kind = match legacy {
        LegacyHead::Entry(entry) | LegacyHead::Append(entry, _) => Some(entry.kind),
        LegacyHead::Meta(_) => None,
        LegacyHead::Leaf(_) | LegacyHead::Commit(_) => return Err(NotBlanked::NoContent),
    };
    let body = body_text(line.as_bytes(), head);
    let left = rewrite(line, &mut |key, value| {
        Some(match key {
            "type" => Fate::Keep,
            "meta" => Fate::Becomes(rewrite(value, &mut meta_field)?),
            "entry" => Fate::Becomes(rewrite(value, &mut |key, _| {
                Some(match key {
                    "kind" | "id" | "parent_id" | "timestamp" | "revision" | "custom_type" => Fate::Keep,
                    "message" => Fate::Becomes(blank_message(body?, kind.and_then(NodeKind::role))?),
                    _ => Fate::Drop,
                })
            })?),
            _ => Fate::Drop,
        })
    });
    let mut left = left.ok_or(NotBlanked::NoRoom)?;
    left.pop();
    if left.len() + ",\"erased\":true}".len() <= line.len() {
        left.push_str(",\"erased\":true");
    }
    let missing = line.len().checked_sub(left.len() + 1).ok_or(NotBlanked::NoRoom)?;
    left.extend(std::iter::repeat_n(' ', missing));
    left.push('}');
    Ok(left.into_bytes())
}

/// What stays of a session's meta.
fn meta_field(key: &str, _: &str) -> Option<Fate> {
    Some(match key {
        "title" | "description" => Fate::Becomes("\"\"".to_owned()),
        "session_id" | "status" | "metadata" | "forked_from" | "message_count" | "created_at" | "updated_at" => {
            Fate::Keep
        }
        _ => Fate::Drop,
    })
}

fn role_of(kind: &HeadKind<'_>) -> Option<Role> {
    match kind {
        HeadKind::Message { role, .. } => Some(*role),
        HeadKind::EntryPut(entry) => entry.kind.role(),
        _ => None,
    }
}

/// A message of the same role that says nothing. It is never longer: every field that it has must be in any message of
/// its role, with a value that is at least as long.
fn blank_message(message: &str, role: Option<Role>) -> Option<String> {
    let read: Option<AgentMessage> = serde_json::from_str(message).ok();
    let role = read.as_ref().map(AgentMessage::role).or(role)?;
    let stop_reason = match &read {
        Some(AgentMessage::Assistant(said)) => said.stop_reason,
        _ => StopReason::End,
    };
    let blanked = |timestamp: i64| match role {
        Role::User => format!(r#"{{"role":"user","content":[],"timestamp":{timestamp}}}"#),
        Role::Assistant => {
            let stop_reason = serde_json::to_string(&stop_reason).unwrap_or_default();
            format!(
                r#"{{"role":"assistant","content":[],"model":"","provider":"","stop_reason":{stop_reason},"timestamp":{timestamp}}}"#
            )
        }
        Role::FunctionResult => format!(
            r#"{{"role":"function_result","function_call_id":"","function_id":"","content":[],"timestamp":{timestamp}}}"#
        ),
        Role::Custom => format!(r#"{{"role":"custom","custom_type":"","content":[],"timestamp":{timestamp}}}"#),
    };
    let with_time = read.map(|message| blanked(message.timestamp()));
    with_time.filter(|text| text.len() <= message.len()).or_else(|| Some(blanked(0)))
}

/// Data of no more bytes that says nothing.
fn blank_data(data: &str) -> String {
    if data.trim_end().len() < 4 { "0" } else { "null" }.to_owned()
}

/// As many adds, at the same times, that add nothing.
fn blank_adds(adds: &str) -> Option<String> {
    let mut blanked = String::with_capacity(adds.len());
    blanked.push('[');
    let mut list = Scanner::at(adds.as_bytes(), 0);
    list.take(b'[')?;
    loop {
        let add = list.value()?;
        let mut parts = Scanner::at(adds.as_bytes(), add.start);
        parts.take(b'[')?;
        parts.string()?;
        parts.take(b',')?;
        let ms_since = parts.value()?;
        parts.take(b',')?;
        let commits_since = parts.value()?;
        blanked.push_str("[\"\",");
        blanked.push_str(&adds[ms_since]);
        blanked.push(',');
        blanked.push_str(&adds[commits_since]);
        blanked.push(']');
        if list.take(b',').is_none() {
            break;
        }
        blanked.push(',');
    }
    blanked.push(']');
    Some(blanked)
}

/// The object with its fields as `fate` decides, in their order.
fn rewrite(object: &str, fate: &mut dyn FnMut(&str, &str) -> Option<Fate>) -> Option<String> {
    let mut scanner = Scanner::at(object.as_bytes(), 0);
    let mut out = String::with_capacity(object.len());
    scanner.take(b'{')?;
    out.push('{');
    if scanner.take(b'}').is_some() {
        return Some("{}".to_owned());
    }
    loop {
        let key = scanner.string()?;
        scanner.take(b':')?;
        let value = scanner.value()?;
        let (key, value) = (&object[key], &object[value]);
        let becomes = match fate(key, value)? {
            Fate::Keep => Some(value.to_owned()),
            Fate::Becomes(text) => Some(text),
            Fate::Drop => None,
        };
        if let Some(becomes) = becomes {
            if out.len() > 1 {
                out.push(',');
            }
            out.push('"');
            out.push_str(key);
            out.push_str("\":");
            out.push_str(&becomes);
        }
        if scanner.take(b',').is_none() {
            break;
        }
    }
    scanner.take(b'}')?;
    out.push('}');
    Some(out)
}
