//! What is kept beside a message so that the same entries are made of it again.

use banyan_model::{ContentBlock, CustomPayload, EntryId, FunctionResultBlock, Object};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::item::{Body, PART};
use super::piece::{Call, Piece};
use super::restore::{apart, block_of, call_block};
use super::turn::Speaker;
use super::{json_of, parse};

/// What has to be known besides the pieces to make the same entry of them again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) id: EntryId,
    /// What became of each block, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) blocks: Vec<Place>,
    /// The call that it is the result of, by its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answers: Option<usize>,
    /// The message without what the pieces say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<Object>,
    /// The type of an application's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) custom: Option<String>,
}

/// What became of a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Place {
    /// The piece at this place.
    At(usize),
    /// A call at this place, which the model gave another id.
    Renamed { at: usize, id: String },
    /// The result of the call at this place.
    Result {
        result: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    },
}

impl Place {
    /// The place of the piece that it is about.
    pub(crate) fn at(&self) -> usize {
        match self {
            Self::At(at) | Self::Renamed { at, .. } | Self::Result { result: at, .. } => *at,
        }
    }
}

/// The entry that pieces were made of.
pub(crate) fn restored(meta: &Meta, pieces: &[Piece], speaker: Speaker) -> Option<Body> {
    if let Some(custom_type) = &meta.custom {
        let [Place::At(at)] = meta.blocks.as_slice() else { return None };
        let Piece::Data { data, .. } = pieces.get(*at)? else { return None };
        return Some(Body::Custom(CustomPayload { custom_type: custom_type.clone(), data: json_of(data) }));
    }
    let mut fields = meta.message.clone()?;
    match fields.get("role")?.as_str()? {
        "user" | "assistant" => {
            let blocks = meta.blocks.iter().map(|place| block_at(place, pieces)).collect::<Option<Vec<_>>>()?;
            fields.insert("content".to_owned(), serde_json::to_value(blocks).ok()?);
        }
        "function_result" => match (meta.answers, meta.blocks.as_slice()) {
            (Some(at), _) => {
                let Piece::Call(Call { outcome: Some(outcome), .. }) = pieces.get(at)? else { return None };
                fields.insert("content".to_owned(), serde_json::to_value(&outcome.content).ok()?);
                fields.insert("details".to_owned(), super::value_of(&outcome.details));
                fields.insert("is_error".to_owned(), outcome.is_error.into());
            }
            (None, [Place::At(at)]) => fields.extend(data_at(*at, pieces)?),
            _ => return None,
        },
        _ => {
            let [Place::At(at)] = meta.blocks.as_slice() else { return None };
            let piece = pieces.get(*at)?;
            let user_at = Some(*at).filter(|_| speaker == Speaker::User);
            match (piece, apart(piece, user_at)) {
                (_, Some(details)) if fields.get("custom_type")? == PART => {
                    fields.insert("content".to_owned(), json!([]));
                    fields.insert("details".to_owned(), details);
                }
                (Piece::Text(text), _) => {
                    fields.insert("content".to_owned(), json!([{"type": "text", "text": text}]));
                }
                _ => fields.extend(data_at(*at, pieces)?),
            }
        }
    }
    parse(&Value::Object(fields)).map(|message| Body::Message(Box::new(message)))
}

fn data_at(at: usize, pieces: &[Piece]) -> Option<Object> {
    match pieces.get(at)? {
        Piece::Data { data: Value::Object(data), .. } => Some(data.clone()),
        _ => None,
    }
}

fn block_at(place: &Place, pieces: &[Piece]) -> Option<ContentBlock> {
    match (place, pieces.get(place.at())?) {
        (Place::At(_), Piece::Data { data, .. }) => parse(data),
        (Place::At(_), piece) => block_of(piece),
        (Place::Renamed { .. }, Piece::Call(call)) => Some(call_block(call)),
        (Place::Result { is_error, .. }, Piece::Call(call)) => {
            let content = call.outcome.as_ref()?.content.clone();
            let function_call_id = call.id.clone();
            Some(ContentBlock::FunctionResult(FunctionResultBlock {
                function_call_id,
                content,
                is_error: *is_error,
            }))
        }
        _ => None,
    }
}
