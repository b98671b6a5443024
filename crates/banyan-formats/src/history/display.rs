//! How activities are shown when nobody said how: friendly names and icons by the document's tables.

use banyan_model::Json;
use serde_json::{Value, json};

use super::fields::{json_of, value_of};
use super::part::{Activity, Part};

/// Gives every activity a friendly name and an icon. What is there stays as it is.
pub(crate) fn fill_in(parts: &mut [Part]) {
    for part in parts {
        if let Part::Activity(activity) = part {
            activity.display_info = Some(filled_in(activity));
        }
    }
}

/// The display of an activity that has none.
pub(crate) fn default_of(activity: &Activity) -> Json {
    json_of(&default_value(activity))
}

fn filled_in(activity: &Activity) -> Json {
    let Some(given) = &activity.display_info else { return default_of(activity) };
    let Value::Object(mut display) = value_of(given) else { return given.clone() };
    let mut changed = false;
    for key in ["friendly_name", "icon"] {
        if display.get(key).and_then(Value::as_str).is_none_or(|text| text.trim().is_empty()) {
            display.insert(key.to_owned(), default_value(activity)[key].take());
            changed = true;
        }
    }
    if changed { json_of(&display) } else { given.clone() }
}

fn default_value(activity: &Activity) -> Value {
    let (icon, name, description, category) = match activity.activity_type.as_str() {
        "tool_request" => ("🔧", called(activity), "Calls a tool", "tool"),
        "tool_result" if activity.is_error() => ("❌", "Failed".to_owned(), "The tool failed", "tool"),
        "tool_result" => ("✅", "Result".to_owned(), "What the tool gave back", "tool"),
        "tool_call" => ("🔧", called(activity), "Calls a tool", "tool"),
        "thought" => ("💭", "Thought".to_owned(), "What the agent thinks", "status"),
        "activity" => ("🧠", "Reasoning".to_owned(), "The agent reasons", "status"),
        "error" => ("❌", "Error".to_owned(), "Something failed", "error"),
        "other" => ("⚙️", words(&activity.source), "Something else that happened", "other"),
        own => ("⚙️", words(own), "Something else that happened", "other"),
    };
    json!({
        "id": activity.activity_type,
        "friendly_name": format!("{icon} {name}"),
        "description": description,
        "icon": icon,
        "category": category,
        "color": null,
    })
}

fn called(activity: &Activity) -> String {
    match activity.tools.as_deref() {
        Some([tool]) => words(&tool.name),
        Some(tools) if tools.len() > 1 => format!("{} tool calls", tools.len()),
        _ => "Tool call".to_owned(),
    }
}

/// A program's name for something as words: `search_web` is `Search web`.
fn words(name: &str) -> String {
    let words: Vec<&str> = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let text = words.join(" ");
    let mut letters = text.chars();
    letters.next().map_or_else(|| "Activity".to_owned(), |first| first.to_uppercase().chain(letters).collect())
}
