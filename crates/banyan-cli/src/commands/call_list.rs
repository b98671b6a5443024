//! `banyan call --list` and `--schema`: what can be called.

use banyan::{CallError, Effect, functions};
use serde_json::json;

use super::call::print;
use crate::args::Globals;
use crate::failure::Failure;
use crate::screen::{Screen, Style};

/// Every function, with what it does.
pub(super) fn list(globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let widest = functions().iter().map(|function| function.id.len()).max().unwrap_or(0);
    for function in functions() {
        let effect = match function.effect {
            Effect::Reads => "reads",
            Effect::Writes => "writes",
        };
        if globals.json {
            screen.json(&json!({"id": function.id, "description": function.description, "effect": effect}))?;
        } else {
            let id = screen.paint(Style::Heading, &format!("{:widest$}", function.id));
            screen.line(&format!("{id}  {}", function.description))?;
        }
    }
    Ok(())
}

/// What a function takes and gives back.
pub(super) fn schema(id: &str, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let Some(function) = functions().iter().find(|function| function.id == id) else {
        let unknown = CallError::UnknownFunction { id: id.to_owned(), similar: Vec::new() };
        return Err(unknown.into());
    };
    let schemas = json!({
        "id": function.id,
        "description": function.description,
        "request": function.request_schema(),
        "response": function.response_schema(),
    });
    print(&schemas.to_string(), globals, screen)
}
