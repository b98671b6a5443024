//! Parts as others write them, made into the parts that the document names.

use banyan_model::Json;
use serde_json::{Value, json};

use super::fields::{Fields, json_of, same_json, value_of};
use super::part::{Activity, Part, TextPart, ToolCall, ToolResult};
use super::time::with_t;

/// What stands before a piece of streamed text that was stored as it was sent.
const CHUNK_MARK: &str = "__STREAM_CHUNK__";
/// What stands before an activity that was sent a second time, as text.
const ACTIVITY_MARK: &str = "__STREAM_ACTIVITY__";
/// Who did something when nobody says.
pub(crate) const SOMEBODY: &str = "agent";

/// A part that came in.
pub(crate) enum Incoming {
    /// It is in the form that goes out. A consolidated call makes two.
    Parts(Vec<Part>),
    /// It repeats an activity that is normally there as a part of its own.
    Echo(Vec<Part>),
}

/// The documented form of a part. What no dialect knows stays as it is.
pub(crate) fn incoming(json: &Json) -> Incoming {
    let Ok(mut fields) = json.parse::<Fields>() else { return Incoming::Parts(vec![Part::Other(json.clone())]) };
    let kind = fields.text("type");
    let part = match kind.as_deref() {
        Some("text_output" | "text_output_stream" | "text") => match fields.text("text") {
            Some(text) if text.starts_with(ACTIVITY_MARK) => {
                let activity = Json::from_text(&text[ACTIVITY_MARK.len()..]).ok();
                return Incoming::Echo(activity.map(|json| old_activity(&json, "")).unwrap_or_default());
            }
            Some(text) => text_part(text, fields),
            None => as_it_is(json),
        },
        None if fields.text("text").is_some() => text_part(fields.text("text").unwrap_or_default(), fields),
        Some("activity") => return Incoming::Parts(activity(json, fields)),
        Some("tool_request") => tool_request(fields).unwrap_or_else(|| as_it_is(json)),
        Some("tool_result") => tool_result(fields).unwrap_or_else(|| as_it_is(json)),
        Some("chart_js") => renamed(fields, "chart", &[("config", "chartConfig")]),
        Some("table_data") => renamed(fields, "table", &[]),
        Some("form_definition") => renamed(fields, "form", &[]),
        Some("file_data") => renamed(fields, "file_content_output", &[]),
        Some("file_reference") => renamed(fields, "file_reference_output", &[]),
        Some("image_url") => image(&mut fields).unwrap_or_else(|| as_it_is(json)),
        _ => as_it_is(json),
    };
    Incoming::Parts(vec![part])
}

/// The parts that an element of `activity_parts` stands for.
pub(crate) fn old_activity(json: &Json, message_timestamp: &str) -> Vec<Part> {
    let Ok(mut fields) = json.parse::<Fields>() else { return vec![as_it_is(json)] };
    if let Some(part) = notes_of_a_cancelled_agent(&fields, message_timestamp) {
        return vec![part];
    }
    let Some(kind) = fields.take("type") else { return vec![as_it_is(json)] };
    fields.set("type", json_of("activity"));
    fields.set("activity_type", kind);
    activity(&json_of(&fields), fields)
}

/// Whether two parts tell of the same activity, one of them as old front ends have it.
pub(crate) fn is_same_activity(one: &Part, other: &Part) -> bool {
    match (one, other) {
        (Part::Activity(one), Part::Activity(other)) => {
            let (ids, other_ids) = (call_ids(one), call_ids(other));
            one.activity_type == other.activity_type
                && ids == other_ids
                && (!ids.is_empty() || (one.timestamp == other.timestamp && one.content == other.content))
        }
        (Part::Text(one), Part::Text(other)) => one.text.contains(&other.text),
        (Part::Other(one), Part::Other(other)) => same_json(one, other),
        _ => false,
    }
}

fn call_ids(activity: &Activity) -> Vec<&str> {
    let asked = activity.tools.iter().flatten().map(|tool| tool.id.as_str());
    let answered = activity.results.iter().flatten().map(|result| result.call_id.as_str());
    asked.chain(answered).collect()
}

fn as_it_is(json: &Json) -> Part {
    Part::Other(json.clone())
}

fn text_part(text: String, mut more: Fields) -> Part {
    more.take("type");
    more.take("text");
    let text = text.strip_prefix(CHUNK_MARK).map(str::to_owned).unwrap_or(text);
    Part::Text(TextPart { text, more })
}

fn renamed(mut fields: Fields, kind: &str, keys: &[(&str, &str)]) -> Part {
    fields.set("type", json_of(kind));
    for (key, name) in keys {
        fields.rename(key, name);
    }
    Part::from_json(&json_of(&fields))
}

/// An activity, or two when it carries calls and their results at once.
fn activity(json: &Json, fields: Fields) -> Vec<Part> {
    let Some(mut activity) = Activity::from_fields(fields) else { return vec![as_it_is(json)] };
    activity.timestamp = with_t(activity.timestamp);
    let asks = activity.tools.as_ref().is_some_and(|tools| !tools.is_empty());
    let answers = activity.results.as_ref().is_some_and(|results| !results.is_empty());
    if activity.activity_type != "tool_call" || !(asks || answers) {
        return vec![Part::Activity(activity)];
    }
    let mut parts = Vec::new();
    if asks && answers {
        parts.push(Part::Activity(Activity {
            activity_type: "tool_request".to_owned(),
            source: activity.source.clone(),
            timestamp: activity.timestamp.clone(),
            tools: activity.tools.take(),
            display_info: activity.display_info.clone(),
            ..Activity::default()
        }));
    }
    if answers {
        "tool_result".clone_into(&mut activity.activity_type);
        activity.tools = None;
    } else {
        "tool_request".clone_into(&mut activity.activity_type);
        activity.results = None;
    }
    parts.push(Part::Activity(activity));
    parts
}

fn tool_request(mut fields: Fields) -> Option<Part> {
    let tool = ToolCall {
        name: fields.take_as("tool_name")?,
        arguments: fields.take("arguments")?,
        id: fields.take_as("call_id")?,
    };
    single(fields, "tool_request", |activity| activity.tools = Some(vec![tool]))
}

fn tool_result(mut fields: Fields) -> Option<Part> {
    let result = ToolResult {
        name: fields.take_as("tool_name")?,
        content: fields.take_as("result_content")?,
        is_error: fields.take_as("is_error").unwrap_or_default(),
        call_id: fields.take_as("call_id")?,
    };
    single(fields, "tool_result", |activity| activity.results = Some(vec![result]))
}

/// An activity of what is left of a part that was a single call or a single result.
fn single(mut fields: Fields, kind: &str, fill: impl FnOnce(&mut Activity)) -> Option<Part> {
    fields.take("type");
    let timestamp = with_t(fields.take_as("timestamp")?);
    let (name, icon): (Option<String>, Option<String>) =
        (fields.take_as("friendly_name").flatten(), fields.take_as("icon").flatten());
    let shown = json!({"id": kind, "friendly_name": name, "icon": icon});
    let mut activity = Activity {
        activity_type: kind.to_owned(),
        source: fields.take_as("source").unwrap_or_else(|| SOMEBODY.to_owned()),
        timestamp,
        display_info: if name.is_some() || icon.is_some() { Some(json_of(&shown)) } else { None },
        more: fields,
        ..Activity::default()
    };
    fill(&mut activity);
    Some(Part::Activity(activity))
}

/// A picture that a person sent.
fn image(fields: &mut Fields) -> Option<Part> {
    let nested = fields.get("image_url").map(value_of).unwrap_or_default();
    let url = match &nested {
        Value::Object(object) => object.get("url").and_then(Value::as_str).map(str::to_owned),
        Value::String(url) => Some(url.clone()),
        _ => None,
    };
    let url = url.or_else(|| fields.text("url")).or_else(|| fields.text("file"))?;
    for key in ["image_url", "url", "file", "type"] {
        fields.take(key);
    }
    let mut picture: Fields =
        [("type".to_owned(), json_of("image")), ("url".to_owned(), json_of(&url))].into_iter().collect();
    for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        picture.set(key, value.clone());
    }
    Some(Part::Other(json_of(&picture)))
}

/// After a cancel some writers put the agent's notes among the activities: the same words, another shape.
fn notes_of_a_cancelled_agent(fields: &Fields, timestamp: &str) -> Option<Part> {
    let kind = fields.text("type")?;
    if kind == "text" {
        return fields.text("content").map(Part::text);
    }
    let (name, id) = (fields.text("tool_name")?, fields.text("tool_call_id")?);
    let mut activity =
        Activity { source: SOMEBODY.to_owned(), timestamp: timestamp.to_owned(), ..Activity::default() };
    match kind.as_str() {
        "tool_call" => {
            "tool_request".clone_into(&mut activity.activity_type);
            let arguments = fields.get("arguments").cloned().unwrap_or_default();
            activity.tools = Some(vec![ToolCall { name, arguments, id }]);
        }
        "tool_result" => {
            "tool_result".clone_into(&mut activity.activity_type);
            let result = fields.get("result").cloned().unwrap_or_default();
            let content = result.parse::<String>().unwrap_or_else(|_| result.get().to_owned());
            activity.results = Some(vec![ToolResult { name, content, is_error: false, call_id: id }]);
        }
        _ => return None,
    }
    Some(Part::Activity(activity))
}
