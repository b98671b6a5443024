//! Response items on their way back into a file: what messages say, put where it was taken from.

use banyan_model::{ContentBlock, Json};
use serde_json::Value;

use crate::native::{Blocks, is_taken, text_at};

/// Puts blocks back where they were taken from. None if they do not fit any more.
pub(super) fn fill(item: &mut Value, blocks: &mut Blocks) -> Option<()> {
    match text_at(item, "type") {
        "message" => fill_content(item, "content", blocks),
        "reasoning" => fill_reasoning(item, blocks),
        "function_call" => {
            let ContentBlock::FunctionCall(call) = blocks.next()? else { return None };
            let spelled =
                item.get("arguments").and_then(Value::as_str).and_then(|text| Json::from_text(text).ok());
            if spelled.as_ref() != Some(&call.arguments) {
                let text = call.arguments.parse::<String>().unwrap_or_else(|_| call.arguments.get().to_owned());
                let is_text = text_at(item, "arguments") == text;
                if !is_text {
                    *item.get_mut("arguments")? = call.arguments.get().into();
                }
            }
            Some(())
        }
        "custom_tool_call" => {
            let ContentBlock::FunctionCall(call) = blocks.next()? else { return None };
            let mut arguments: Value = call.arguments.parse().ok()?;
            *item.get_mut("input")? = arguments.get_mut("input")?.take();
            Some(())
        }
        "local_shell_call" => {
            let ContentBlock::FunctionCall(call) = blocks.next()? else { return None };
            *item.get_mut("action")? = call.arguments.parse().ok()?;
            Some(())
        }
        "function_call_output" | "custom_tool_call_output" => {
            if item.get("output").is_some_and(Value::is_object) {
                return fill_content(item.get_mut("output")?, "content", blocks);
            }
            fill_content(item, "output", blocks)
        }
        _ => None,
    }
}

fn fill_content(item: &mut Value, key: &str, blocks: &mut Blocks) -> Option<()> {
    let place = item.get_mut(key)?;
    let Some(parts) = place.as_array_mut() else {
        *place = blocks.text()?;
        return Some(());
    };
    for part in parts {
        if is_taken(part, "text") {
            part["text"] = blocks.text()?;
        } else if is_taken(part, "image_url") {
            let image = blocks.image()?;
            part["image_url"] = format!("data:{};base64,{}", image.mime, image.data).into();
        }
    }
    Some(())
}

fn fill_reasoning(item: &mut Value, blocks: &mut Blocks) -> Option<()> {
    let ContentBlock::Thinking(thinking) = blocks.next()? else { return None };
    if let Some(signature) = thinking.signature {
        item["encrypted_content"] = signature.into();
    }
    for key in ["summary", "content"] {
        let Some(parts) = item.get_mut(key).and_then(Value::as_array_mut).filter(|parts| !parts.is_empty()) else {
            continue;
        };
        match parts.as_mut_slice() {
            [part] => part["text"] = thinking.text.into(),
            parts if joined(parts) == thinking.text => {}
            _ => return None,
        }
        return Some(());
    }
    thinking.text.is_empty().then_some(())
}

fn joined(parts: &[Value]) -> String {
    parts.iter().map(|part| text_at(part, "text")).collect::<Vec<_>>().join("\n\n")
}
