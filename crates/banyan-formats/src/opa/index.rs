//! `INDEX.json` beside the data: what the files there are, in either of the forms that are written.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

/// What the index says of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asset {
    pub description: Option<String>,
    pub content_type: Option<String>,
}

/// The files that an index names; none when it is not an index.
pub(crate) fn read(bytes: &[u8]) -> Option<HashMap<String, Asset>> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Index {
        Named { assets: Vec<Value> },
        Bare(Vec<Value>),
    }
    let (Index::Named { assets } | Index::Bare(assets)) = serde_json::from_slice(bytes).ok()?;
    let text = |asset: &Value, key: &str| asset.get(key).and_then(Value::as_str).map(str::to_owned);
    let named = assets.iter().filter_map(|asset| {
        let about = Asset { description: text(asset, "description"), content_type: text(asset, "content_type") };
        Some((text(asset, "path")?, about))
    });
    Some(named.collect())
}
