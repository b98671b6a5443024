//! What the index keeps: one document for each entry, and one for each session.

use tantivy::schema::{
    BytesOptions, FAST, Field, INDEXED, IndexRecordOption, NumericOptions, STORED, STRING, Schema,
    TextFieldIndexing, TextOptions,
};

use crate::tokens::WORDS;

/// The version of all this. An index of another version is made anew.
pub(crate) const VERSION: u32 = 3;

/// The fields of both kinds of documents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    /// What an entry says.
    pub(crate) text: Field,
    /// The functions that an entry calls or has the result of.
    pub(crate) tool: Field,
    /// Names an entry among all, so that it can be replaced.
    pub(crate) key: Field,
    /// The number of the entry's session.
    pub(crate) session: Field,
    /// Who speaks, and whether the entry is on the active path.
    pub(crate) flags: Field,
    /// When it was said.
    pub(crate) time: Field,
    /// How many entries come before it on its path, so that a beginning of a path can be told from the rest.
    pub(crate) place: Field,
    /// The session's id as the caller knows it. A session's own document is found by it.
    pub(crate) session_id: Field,
    /// The entry's id.
    pub(crate) entry_id: Field,
    /// The number of a session, in its own document.
    pub(crate) number: Field,
    /// What a session's metadata says, pair by pair.
    pub(crate) label: Field,
    /// The session in which a fork's inherited entries are found, in its own document.
    pub(crate) base: Field,
    /// What the index must remember of a session.
    pub(crate) record: Field,
}

/// The name of [`Fields::flags`], for readers of columns.
pub(crate) const FLAGS: &str = "flags";
/// The name of [`Fields::session`].
pub(crate) const SESSION: &str = "session";
/// The name of [`Fields::time`].
pub(crate) const TIME: &str = "time";
/// The name of [`Fields::place`].
pub(crate) const PLACE: &str = "place";
/// The name of [`Fields::number`].
pub(crate) const NUMBER: &str = "number";

pub(crate) fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let words = TextFieldIndexing::default()
        .set_tokenizer(WORDS)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let fields = Fields {
        text: schema.add_text_field("text", TextOptions::default().set_indexing_options(words).set_stored()),
        tool: schema.add_text_field("tool", STRING),
        key: schema.add_bytes_field("key", BytesOptions::default().set_indexed()),
        session: schema.add_u64_field(SESSION, NumericOptions::from(INDEXED | FAST)),
        flags: schema.add_u64_field(FLAGS, FAST),
        time: schema.add_i64_field(TIME, FAST),
        place: schema.add_u64_field(PLACE, FAST),
        session_id: schema.add_text_field("session_id", STRING | STORED),
        entry_id: schema.add_text_field("entry_id", STORED),
        number: schema.add_u64_field(NUMBER, FAST),
        label: schema.add_text_field("label", STRING),
        base: schema.add_text_field("base", STRING),
        record: schema.add_text_field("record", STORED),
    };
    (schema.build(), fields)
}
