//! The model that the user works with in OpenCode. A file to import has to name one, and OpenCode goes on with the one it names.

use std::path::Path;

use serde_json::{Value, json};

use super::DATABASE;
use crate::sqlite::Database;
use crate::{Destination, Outgoing};

/// The model of the newest session, else the one in the settings, else the one that the session had elsewhere.
pub(super) fn model(session: &Outgoing, to: &Destination) -> Value {
    of_newest(&to.home.join(DATABASE)).or_else(|| in_settings(to)).unwrap_or_else(|| {
        let of = |key: &str, otherwise: &str| session.metadata(key).unwrap_or(otherwise).to_owned();
        json!({ "providerID": of("provider", "unknown"), "modelID": of("model", "unknown") })
    })
}

fn of_newest(database: &Path) -> Option<Value> {
    let database = database.is_file().then(|| Database::open(database))?.ok()?;
    if !database.table("session").ok()?.has("model") {
        return None;
    }
    let sql = "SELECT model FROM session WHERE model IS NOT NULL ORDER BY time_updated DESC LIMIT 1";
    let row = database.all(sql, &[]).ok()?.into_iter().next()?;
    let model: Value = serde_json::from_str(row.get("model")?.as_str()?).ok()?;
    Some(json!({ "providerID": model.get("providerID")?, "modelID": model.get("id")? }))
}

/// The settings are beside the data by the XDG rules, or in the directory itself.
fn in_settings(to: &Destination) -> Option<Value> {
    let user = to.home.ancestors().nth(3).map(|home| home.join(".config/opencode"));
    let folders = [Some(to.cwd.clone()), user].into_iter().flatten();
    let files = folders.flat_map(|folder| [folder.join("opencode.json"), folder.join("opencode.jsonc")]);
    let model = |text: String| {
        let settings: Value = serde_json::from_str(&text).ok()?;
        let (provider, model) = settings.get("model")?.as_str()?.split_once('/')?;
        Some(json!({ "providerID": provider, "modelID": model }))
    };
    files.filter_map(|file| std::fs::read_to_string(file).ok()).find_map(model)
}
