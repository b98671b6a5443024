//! Sessions in the shapes that chat front ends keep their messages in. A shape is one file, and one line in [`SHAPES`].
//!
//! Out: entries in the order of the tree become turns (`turn.rs`), and a shape gives them its form. In: a shape reads its form,
//! and `restore.rs` makes entries of it, always with the same ids. `docs/shapes.md` has the tables.

mod ag_ui;
mod ai_sdk;
mod assistant_ui;
mod compare;
mod item;
mod meta;
mod piece;
mod restore;
mod turn;

use banyan_model::{EntryId, Object};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use ag_ui::{Left, Live, Told};
pub use compare::{Comparison, compare};
pub use item::{Body, Item, Scene};
pub use turn::entries_by_message;

use crate::history::{json_of, value_of};

/// A form that a front end keeps messages in.
pub trait Shape: Sync {
    /// What it is called in a query.
    fn name(&self) -> &'static str;

    /// Which entries it shows at once.
    fn extent(&self) -> Extent;

    /// The entries in this form. Each comes after the one that it follows.
    fn write(&self, items: &[Item], scene: &Scene) -> Value;

    /// The entries that something in this form stands for. What has no time of its own was said now.
    fn read(&self, form: &Value, now: i64) -> Result<Posted, String>;
}

/// Which entries a shape shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All, with their branches.
    Tree,
    /// Those of the active path.
    Path,
}

/// All shapes.
pub const SHAPES: [&dyn Shape; 3] = [&assistant_ui::AssistantUi, &ai_sdk::AiSdk, &ag_ui::AgUi];

/// The shape with a name.
pub fn shape(name: &str) -> Option<&'static dyn Shape> {
    SHAPES.into_iter().find(|shape| shape.name() == name)
}

/// Messages that came in, as entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Posted {
    /// The messages, each after the one that it follows.
    pub messages: Vec<PostedMessage>,
    /// The message that the conversation goes on from, when the form says so.
    pub head: Option<String>,
}

/// A message that came in.
#[derive(Clone, Debug, PartialEq)]
pub struct PostedMessage {
    /// Its id.
    pub id: String,
    /// What it follows.
    pub follows: Follows,
    /// Its entries, each following the one before.
    pub entries: Vec<NewEntry>,
    /// Whether it says itself which entries it was made of.
    pub knows_entries: bool,
}

/// What a message follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follows {
    /// The message with this id.
    Message(String),
    /// Nothing: the conversation begins with it.
    Nothing,
    /// The message before it in the list; the first one follows whatever is there.
    Before,
}

/// An entry to append.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntry {
    /// Its id, always the same for the same message.
    pub id: EntryId,
    /// What it holds. What could not be read is not appended; it is there so that others follow it.
    pub body: Body,
    /// What no content holds.
    pub origin: Option<Object>,
}

/// Reads a value as a type. By way of its text, because the model's types read their numbers from that.
fn parse<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_str(&value.to_string()).ok()
}
