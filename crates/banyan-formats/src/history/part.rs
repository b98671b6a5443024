//! The parts of a history message: text, activities, and whatever else an application shows.

use banyan_model::{Json, LongText};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::fields::{Fields, TECHNICAL_DETAILS, json_of, without_technical_details};

/// One part of a history message, in the form that goes out.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// `text_output`: Markdown to read.
    Text(TextPart),
    /// `activity`: something that an agent did.
    Activity(Activity),
    /// Every other part, as it is.
    Other(Json),
}

/// Markdown to read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// Keys that the document does not name.
    pub more: Fields,
}

/// Something that an agent did: a call, a result, a thought, an error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// What kind of activity: `tool_request`, `tool_result`, `thought`, `activity`, `error`, `other` or an agent's own.
    pub activity_type: String,
    /// Who did it.
    pub source: String,
    /// What was done, in words.
    pub content: Option<String>,
    /// When, in ISO 8601.
    pub timestamp: String,
    /// The calls of a request.
    pub tools: Option<Vec<ToolCall>>,
    /// The results.
    pub results: Option<Vec<ToolResult>>,
    /// How to show it.
    pub display_info: Option<Json>,
    /// What only operators see.
    pub technical_details: Option<Json>,
    /// Keys that the document does not name.
    pub more: Fields,
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The function.
    pub name: String,
    /// What it was called with.
    pub arguments: Json,
    /// Names the call.
    pub id: String,
}

/// What a function gave back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolResult {
    /// The function.
    pub name: String,
    /// The result as text.
    pub content: String,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
    /// The call that this answers.
    pub call_id: String,
}

impl Part {
    /// A part that is only text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextPart { text: text.into(), more: Fields::default() })
    }

    /// The part that a JSON value in the form that goes out stands for. Whatever is not well formed stays as it is.
    pub(crate) fn from_json(json: &Json) -> Self {
        let Ok(mut fields) = json.parse::<Fields>() else { return Self::Other(json.clone()) };
        let part = match fields.text("type").as_deref() {
            Some("text_output") => fields.take_as("text").map(|text| {
                fields.take("type");
                Self::Text(TextPart { text, more: fields })
            }),
            Some("activity") => Activity::from_fields(fields).map(Self::Activity),
            _ => None,
        };
        part.unwrap_or_else(|| Self::Other(json.clone()))
    }

    /// Whether there is nothing in it to see.
    pub(crate) fn is_empty_text(&self) -> bool {
        matches!(self, Self::Text(part) if part.text.is_empty() && part.more.is_empty())
    }

    /// The text that can grow at its end: of a text part its text, of an activity its content.
    pub(crate) fn growing_text_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Text(part) => Some(&mut part.text),
            Self::Activity(activity) => activity.content.as_mut(),
            Self::Other(_) => None,
        }
    }

    /// The same part with some keys given other values.
    pub(crate) fn with(self, changes: &Fields) -> Self {
        if changes.is_empty() {
            return self;
        }
        let Ok(mut fields) = json_of(&self).parse::<Fields>() else { return self };
        for (key, value) in changes.iter() {
            fields.set(key, value.clone());
        }
        Self::from_json(&json_of(&fields))
    }

    /// Takes out what only operators see.
    pub(crate) fn remove_technical_details(&mut self) {
        match self {
            Self::Text(part) => part.more = part.more.without_technical_details(),
            Self::Activity(activity) => activity.remove_technical_details(),
            Self::Other(json) => *json = without_technical_details(json),
        }
    }

    /// The same activity as old front ends read it, in `activity_parts`; none for other parts.
    pub(crate) fn as_old_activity(&self) -> Option<OldActivity<'_>> {
        match self {
            Self::Activity(activity) => Some(OldActivity::Of(activity)),
            Self::Other(json) if json.get().contains("\"activity\"") => {
                let mut fields: Fields = json.parse().ok()?;
                if fields.text("type").as_deref() != Some("activity") {
                    return None;
                }
                let kind = fields.take("activity_type")?;
                fields.set("type", kind);
                Some(OldActivity::Malformed(fields))
            }
            _ => None,
        }
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(part) => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("type", "text_output")?;
                map.serialize_entry("text", &LongText(&part.text))?;
                serialize_more(&mut map, &part.more)?;
                map.end()
            }
            Self::Activity(activity) => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("type", "activity")?;
                map.serialize_entry("activity_type", &activity.activity_type)?;
                map.serialize_entry("source", &activity.source)?;
                map.serialize_entry("content", &activity.content.as_deref().map(LongText))?;
                map.serialize_entry("timestamp", &activity.timestamp)?;
                map.serialize_entry("tools", &activity.tools)?;
                map.serialize_entry("results", &activity.results)?;
                map.serialize_entry("display_info", &activity.display_info)?;
                serialize_if_some(&mut map, TECHNICAL_DETAILS, activity.technical_details.as_ref())?;
                serialize_more(&mut map, &activity.more)?;
                map.end()
            }
            Self::Other(json) => json.serialize(serializer),
        }
    }
}

impl Activity {
    pub(crate) fn from_fields(mut fields: Fields) -> Option<Self> {
        fields.take("type");
        Some(Self {
            activity_type: fields.take_as("activity_type")?,
            source: fields.take_as("source")?,
            timestamp: fields.take_as("timestamp")?,
            content: optional(&mut fields, "content")?,
            tools: optional(&mut fields, "tools")?,
            results: optional(&mut fields, "results")?,
            display_info: optional(&mut fields, "display_info")?,
            technical_details: optional(&mut fields, TECHNICAL_DETAILS)?,
            more: fields,
        })
    }

    pub(crate) fn is_error(&self) -> bool {
        self.activity_type == "error" || self.results.iter().flatten().any(|result| result.is_error)
    }

    fn remove_technical_details(&mut self) {
        self.technical_details = None;
        self.display_info = self.display_info.as_ref().map(without_technical_details);
        self.more = self.more.without_technical_details();
        for tool in self.tools.iter_mut().flatten() {
            tool.arguments = without_technical_details(&tool.arguments);
        }
    }
}

/// An activity as an element of `activity_parts`: `type` says what kind it is, and what is null is left out.
pub(crate) enum OldActivity<'a> {
    Of(&'a Activity),
    Malformed(Fields),
}

impl Serialize for OldActivity<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let activity = match self {
            Self::Of(activity) => activity,
            Self::Malformed(fields) => return fields.serialize(serializer),
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &activity.activity_type)?;
        map.serialize_entry("source", &activity.source)?;
        serialize_if_some(&mut map, "content", activity.content.as_ref())?;
        map.serialize_entry("timestamp", &activity.timestamp)?;
        serialize_if_some(&mut map, "tools", activity.tools.as_ref())?;
        serialize_if_some(&mut map, "results", activity.results.as_ref())?;
        serialize_if_some(&mut map, "display_info", activity.display_info.as_ref())?;
        serialize_if_some(&mut map, TECHNICAL_DETAILS, activity.technical_details.as_ref())?;
        serialize_more(&mut map, &activity.more)?;
        map.end()
    }
}

/// Outer none: the value is of another kind. Inner none: there is no value.
fn optional<T: serde::de::DeserializeOwned>(fields: &mut Fields, key: &str) -> Option<Option<T>> {
    match fields.take(key) {
        None => Some(None),
        Some(value) if value.is_null() => Some(None),
        Some(value) => value.parse().ok().map(Some),
    }
}

fn serialize_if_some<M: SerializeMap, T: Serialize>(
    map: &mut M,
    key: &str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    match value {
        Some(value) => map.serialize_entry(key, value),
        None => Ok(()),
    }
}

pub(crate) fn serialize_more<M: SerializeMap>(map: &mut M, more: &Fields) -> Result<(), M::Error> {
    more.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))
}
