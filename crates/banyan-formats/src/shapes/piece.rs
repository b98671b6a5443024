//! What a message of a chat front end is made of, before a shape gives it a form.

use banyan_model::{ContentBlock, Json};
use serde_json::{Value, json};

use super::json_of;
use super::parse;

/// One thing in a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Reasoning {
        text: String,
        signature: Option<String>,
    },
    Call(Call),
    Media(Media),
    /// Something for programs, under a name.
    Data {
        name: String,
        data: Value,
    },
    /// A part that only one shape knows, as its writer had it.
    Part {
        format: String,
        part: Value,
    },
}

/// A call, with what came of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    /// Names the call in its message. The same as the model's own id, unless two calls have the same.
    pub(crate) shown: String,
    /// The model's own id.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Json,
    pub(crate) outcome: Option<Outcome>,
}

/// What a function gave back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) content: Vec<ContentBlock>,
    pub(crate) details: Json,
    pub(crate) is_error: bool,
}

/// A picture or a file, by its address.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Media {
    pub(crate) url: String,
    pub(crate) mime: String,
    pub(crate) name: Option<String>,
    /// The block that it is.
    pub(crate) block: ContentBlock,
}

impl Media {
    /// The block as something to see; none when it is neither a picture nor a file.
    pub(crate) fn of(block: &ContentBlock, attachments: &str) -> Option<Self> {
        match block {
            ContentBlock::Image(image) => {
                let url = match &image.attachment_id {
                    Some(id) => format!("{attachments}{id}"),
                    None => format!("data:{};base64,{}", image.mime, image.data),
                };
                Some(Self { url, mime: image.mime.clone(), name: None, block: block.clone() })
            }
            ContentBlock::File(file) => Some(Self {
                url: format!("{attachments}{}", file.attachment_id),
                mime: file.mime.clone(),
                name: Some(file.name.clone()),
                block: block.clone(),
            }),
            _ => None,
        }
    }

    /// What is kept beside a part so that the same block is made of it again; the address says the rest.
    pub(crate) fn own(&self) -> Value {
        let mut own = serde_json::to_value(&self.block).unwrap_or_default();
        if let Some(own) = own.as_object_mut() {
            own.shift_remove("data");
        }
        own
    }

    /// The block of a part that has what [`Media::own`] gave, or whose address is the picture itself.
    pub(crate) fn read(url: &str, own: Option<&Value>) -> Option<Self> {
        let inline = url.strip_prefix("data:").and_then(|url| url.split_once(";base64,"));
        let mut own = own.cloned().unwrap_or_else(|| match inline {
            Some((mime, _)) if mime.starts_with("image/") => json!({"type": "image", "mime": mime}),
            _ => Value::Null,
        });
        if own["type"] == "image" {
            own["data"] = Value::from("");
        }
        let mut block: ContentBlock = parse(&own)?;
        if let (ContentBlock::Image(image), Some((_, data))) = (&mut block, inline) {
            data.clone_into(&mut image.data);
        }
        let (mime, name) = match &block {
            ContentBlock::Image(image) => (image.mime.clone(), None),
            ContentBlock::File(file) => (file.mime.clone(), Some(file.name.clone())),
            _ => return None,
        };
        Some(Self { url: url.to_owned(), mime, name, block })
    }
}

impl Outcome {
    /// The result as one value: the text when it is one text, the function's own form when the text says just that, nothing
    /// when there is nothing, and otherwise the blocks. With it come the details, unless the value says them.
    pub(crate) fn value(&self) -> (Value, Option<Value>) {
        let details = || if self.details.is_null() { None } else { Some(super::value_of(&self.details)) };
        match self.content.as_slice() {
            [] => (Value::Null, details()),
            [ContentBlock::Text(block)] if block.text == self.details.get() && is_plain(&self.details) => {
                (super::value_of(&self.details), None)
            }
            [ContentBlock::Text(block)] => (block.text.clone().into(), details()),
            blocks => (serde_json::to_value(blocks).unwrap_or_default(), details()),
        }
    }

    /// The result that a value stands for.
    pub(crate) fn of(value: &Value, details: Option<&Value>, is_error: bool) -> Self {
        let own = json_of(value);
        let (content, said) = match value {
            Value::Null => (Vec::new(), Json::null()),
            Value::String(text) => (vec![ContentBlock::text(text.as_str())], Json::null()),
            value => match blocks_in(value) {
                Some(blocks) => (blocks, Json::null()),
                None => (vec![ContentBlock::text(own.get())], own),
            },
        };
        Self { content, details: details.map_or(said, json_of), is_error }
    }

    /// All that is text in it.
    pub(crate) fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match block {
            ContentBlock::Text(block) => Some(block.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// Whether a value is read as itself, and neither as a text nor as blocks.
fn is_plain(details: &Json) -> bool {
    let value = super::value_of(details);
    !value.is_null() && !value.is_string() && blocks_in(&value).is_none()
}

/// The blocks that a value spells. One text and nothing at all have forms of their own.
fn blocks_in(value: &Value) -> Option<Vec<ContentBlock>> {
    let items = value.as_array().filter(|items| !items.is_empty())?;
    let blocks = items.iter().map(parse).collect::<Option<Vec<ContentBlock>>>()?;
    if serde_json::to_value(&blocks).ok()? == *value { Some(blocks) } else { None }
}
