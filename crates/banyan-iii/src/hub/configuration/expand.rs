//! `${NAME}` and `${NAME:otherwise}` in values.

use serde_json::Value;

/// The value with the environment filled in, and the names that are neither set nor have a default.
pub(super) fn expand(value: &Value) -> (Value, Vec<String>) {
    let mut unset = Vec::new();
    let expanded = walk(value, &|name| std::env::var(name).ok(), &mut unset);
    (expanded, unset)
}

fn walk(value: &Value, look_up: &dyn Fn(&str) -> Option<String>, unset: &mut Vec<String>) -> Value {
    match value {
        Value::String(text) => fill(text, look_up, unset),
        Value::Array(items) => items.iter().map(|item| walk(item, look_up, unset)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| (name.clone(), walk(field, look_up, unset))).collect()
        }
        other => other.clone(),
    }
}

/// A string that is one placeholder and nothing else becomes what the text reads as: a number, a boolean, a list.
fn fill(text: &str, look_up: &dyn Fn(&str) -> Option<String>, unset: &mut Vec<String>) -> Value {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    let mut lone = false;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        let (before, placeholder, after) =
            (&rest[..start], &rest[start..=start + length], &rest[start + length + 1..]);
        let inside = &placeholder[2..length];
        let (name, otherwise) = inside.split_once(':').map_or((inside, None), |(name, it)| (name, Some(it)));
        lone = filled.is_empty() && before.trim().is_empty() && after.trim().is_empty();
        filled.push_str(before);
        match look_up(name).filter(|_| !name.is_empty()).or_else(|| otherwise.map(str::to_owned)) {
            Some(found) if !name.is_empty() => filled.push_str(&found),
            _ => {
                if !name.is_empty() {
                    unset.push(name.to_owned());
                }
                filled.push_str(placeholder);
            }
        }
        rest = after;
    }
    filled.push_str(rest);
    if lone { read(filled) } else { Value::String(filled) }
}

/// What a text reads as where no quotes are needed.
fn read(text: String) -> Value {
    match text.trim() {
        "" => Value::String(text),
        "~" | "Null" | "NULL" => Value::Null,
        "True" | "TRUE" => Value::Bool(true),
        "False" | "FALSE" => Value::Bool(false),
        trimmed => serde_json::from_str(trimmed).unwrap_or_else(|_| Value::String(trimmed.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::walk;

    fn expanded(value: &Value) -> (Value, Vec<String>) {
        let mut unset = Vec::new();
        let look_up = |name: &str| match name {
            "PORT" => Some("8080".to_owned()),
            "WHO" => Some("you".to_owned()),
            _ => None,
        };
        (walk(value, &look_up, &mut unset), unset)
    }

    #[test]
    fn placeholders_are_filled_in() {
        let given = json!({
            "port": "${PORT}", "other": "${NONE:true}", "word": "${NONE:on}", "zeros": "${NONE:007}", "empty": "${NONE:}",
            "list": ["${NONE:[1, 2]}", 5, null], "text": "hi ${WHO}, ${NONE:and you}!", "two": "${PORT}${PORT}",
            "url": "${NONE:ws://127.0.0.1:1}", "odd": "${:x} $PORT ${PORT"
        });
        let filled = json!({
            "port": 8080, "other": true, "word": "on", "zeros": "007", "empty": "", "list": [[1, 2], 5, null],
            "text": "hi you, and you!", "two": "80808080", "url": "ws://127.0.0.1:1", "odd": "${:x} $PORT ${PORT"
        });
        assert_eq!(expanded(&given), (filled, vec![]));
    }

    #[test]
    fn what_is_not_set_is_named() {
        let (value, unset) = expanded(&json!({"a": "${NONE}", "b": "x${MISSING}"}));
        assert_eq!(
            (value, unset),
            (json!({"a": "${NONE}", "b": "x${MISSING}"}), vec!["NONE".into(), "MISSING".into()])
        );
    }
}
