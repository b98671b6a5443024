//! JSON Schemas of the types, in the dialect of the contract.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The JSON Schema (draft-07) of what is accepted as a `T`. An `Option` at the root is a nullable `T`.
pub fn schema_of<T: JsonSchema>() -> Value {
    SchemaSettings::draft07().into_generator().into_root_schema_for::<T>().to_value()
}
