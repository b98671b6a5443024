//! Cursors: where a page ended, as text that callers hand back. Padded base64 of compact JSON.

use banyan_model::{EntryId, Error, ListOrder, SessionId, SessionMeta};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Where a page of sessions ended: the order, the sort key and the id of its last session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListCursor {
    /// The order that the page was listed in.
    #[serde(rename = "o")]
    pub order: ListOrder,
    /// The last session's sort key in that order.
    #[serde(rename = "k")]
    pub key: i64,
    /// The last session.
    pub id: SessionId,
}

impl ListCursor {
    /// The cursor after this session.
    pub fn after(order: ListOrder, meta: &SessionMeta) -> Self {
        Self { order, key: sort_key(order, meta), id: meta.session_id.clone() }
    }

    /// The cursor as text.
    pub fn encode(&self) -> String {
        encode(self)
    }

    /// Reads a cursor, which must continue a list in this order.
    pub fn decode(text: &str, order: ListOrder) -> Result<Self, Error> {
        let cursor: Self = decode(text)?;
        if cursor.order != order {
            return Err(Error::invalid_cursor(format!(
                "the cursor continues a list in order `{}`, not `{}`; list from the beginning",
                cursor.order.as_str(),
                order.as_str()
            )));
        }
        Ok(cursor)
    }
}

/// What a session is sorted by in this order; equal keys are sorted by id.
pub fn sort_key(order: ListOrder, meta: &SessionMeta) -> i64 {
    match order {
        ListOrder::CreatedAsc | ListOrder::CreatedDesc => meta.created_at,
        ListOrder::UpdatedDesc => meta.updated_at,
    }
}

/// Where a page of entries ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryCursor {
    /// The page's last entry.
    pub id: EntryId,
}

impl EntryCursor {
    /// The cursor as text.
    pub fn encode(&self) -> String {
        encode(self)
    }

    /// Reads a cursor.
    pub fn decode(text: &str) -> Result<Self, Error> {
        decode(text)
    }
}

/// Where a page of turns ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnCursor {
    /// The page's last entry.
    pub id: EntryId,
    /// Entries before the next page that told of an agent's surroundings; there are only a few such facts.
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<EntryId>,
}

impl TurnCursor {
    /// The cursor as text.
    pub fn encode(&self) -> String {
        encode(self)
    }

    /// Reads a cursor.
    pub fn decode(text: &str) -> Result<Self, Error> {
        decode(text)
    }
}

/// Where a page of a search ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchCursor {
    /// How many hits came before.
    #[serde(rename = "s")]
    pub skip: usize,
    /// What counted as now on the first page, so that the order is the same on all.
    #[serde(rename = "t")]
    pub now_ms: i64,
}

impl SearchCursor {
    /// The cursor as text.
    pub fn encode(&self) -> String {
        encode(self)
    }

    /// Reads a cursor.
    pub fn decode(text: &str) -> Result<Self, Error> {
        decode(text)
    }
}

fn encode(cursor: &impl Serialize) -> String {
    // Cursors are strings and integers, which always have a JSON form.
    STANDARD.encode(serde_json::to_vec(cursor).unwrap_or_default())
}

fn decode<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let json = STANDARD.decode(text).ok();
    json.and_then(|json| serde_json::from_slice(&json).ok()).ok_or_else(|| {
        Error::invalid_cursor(format!("`{text}` is not a cursor; pass `next_cursor` of the page before, or none"))
    })
}

#[cfg(test)]
mod tests {
    use banyan_model::ErrorCode;

    use super::*;

    #[test]
    fn a_list_cursor_is_the_contracts_json_in_base64() {
        let cursor = ListCursor { order: ListOrder::UpdatedDesc, key: 7, id: SessionId::from("s_1") };
        assert_eq!(STANDARD.decode(cursor.encode()).unwrap(), br#"{"o":"updated_desc","k":7,"id":"s_1"}"#);
        assert_eq!(ListCursor::decode(&cursor.encode(), ListOrder::UpdatedDesc), Ok(cursor));
    }

    #[test]
    fn an_entry_cursor_is_the_contracts_json_in_base64() {
        let cursor = EntryCursor { id: EntryId::from("e") };
        assert_eq!(STANDARD.decode(cursor.encode()).unwrap(), br#"{"id":"e"}"#);
        assert_eq!(EntryCursor::decode(&cursor.encode()), Ok(cursor));
    }

    #[test]
    fn what_is_no_cursor_or_of_another_order_is_refused() {
        let other = ListCursor { order: ListOrder::CreatedAsc, key: 7, id: SessionId::from("s") }.encode();
        for text in ["", "?", "e30=", "bnVsbA==", other.as_str()] {
            let refused = ListCursor::decode(text, ListOrder::UpdatedDesc).unwrap_err();
            assert_eq!(refused.code, ErrorCode::InvalidCursor, "{text}");
        }
    }
}
