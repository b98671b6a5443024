//! The blocks of a message, as text.

use banyan::model::{ContentBlock, FunctionCallBlock, Object};
use serde_json::Value;

use crate::failure::Failure;
use crate::prose::{self, Length, short_width};
use crate::screen::{Screen, Style};
use crate::words::{one_line, safe, size, width};

/// What was told last, for the space before what comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Heading,
    Speech,
    Thought,
    Tool,
}

/// Tells a block, and says what it was.
pub(super) fn tell(
    block: &ContentBlock,
    last: Last,
    length: Length,
    screen: &mut Screen,
) -> Result<Last, Failure> {
    let gap = |screen: &mut Screen| if last == Last::Heading { Ok(()) } else { screen.line("") };
    match block {
        ContentBlock::Text(block) if block.text.trim().is_empty() => return Ok(last),
        ContentBlock::Text(block) => {
            gap(screen)?;
            let lines = prose::said(&block.text, screen);
            lines.iter().try_for_each(|line| screen.line(line))?;
        }
        ContentBlock::Thinking(block) if block.text.trim().is_empty() => return Ok(last),
        ContentBlock::Thinking(block) => {
            gap(screen)?;
            painted(&prose::aside(&block.text, "┊ ", length, screen), Style::Aside, screen)?;
            return Ok(Last::Thought);
        }
        ContentBlock::FunctionCall(call) => {
            if !matches!(last, Last::Heading | Last::Tool) {
                screen.line("")?;
            }
            called(call, length, screen)?;
            return Ok(Last::Tool);
        }
        ContentBlock::FunctionResult(result) => {
            returned(None, &result.content, result.is_error.unwrap_or(false), length, screen)?;
            return Ok(Last::Tool);
        }
        ContentBlock::Image(_) | ContentBlock::File(_) => painted(&[in_words(block)], Style::Aside, screen)?,
    }
    Ok(Last::Speech)
}

/// A function and what it is called with: on one line if they fit, or else each argument for itself.
fn called(call: &FunctionCallBlock, length: Length, screen: &mut Screen) -> Result<(), Failure> {
    let name = format!("→ {}", one_line(&call.function_id));
    let arguments: Vec<(String, String)> = match serde_json::from_str::<Object>(call.arguments.get()) {
        Ok(arguments) => arguments.into_iter().map(|(name, value)| (one_line(&name), value_text(value))).collect(),
        Err(_) => vec![(String::new(), call.arguments.get().to_owned())],
    };
    let label = |name: &str| if name.is_empty() { String::new() } else { format!("{name}: ") };
    let joined: Vec<String> =
        arguments.iter().map(|(name, value)| format!("{}{}", label(name), safe(value))).collect();
    let joined = joined.join("  ");
    let whole = screen.paint(Style::Busy, &name);
    if width(&name) + 1 + width(&joined) <= short_width(screen) && !joined.contains('\n') {
        return screen.line(format!("{whole} {joined}").trim_end());
    }
    screen.line(&whole)?;
    for (name, value) in &arguments {
        let label = format!("  {}", label(name));
        let lines = prose::output(value, &" ".repeat(width(&label)), length, screen);
        for (at, line) in lines.iter().enumerate() {
            let line = if at == 0 { format!("{label}{}", line.trim_start()) } else { line.clone() };
            screen.line(&line)?;
        }
    }
    Ok(())
}

fn value_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        value => value.to_string(),
    }
}

/// What a function gave back: on one line if it fits, or else its first lines.
pub(super) fn returned(
    function: Option<&str>,
    content: &[ContentBlock],
    failed: bool,
    length: Length,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let whole: Vec<String> = content.iter().map(in_words).collect();
    let whole = whole.join("\n");
    let whole = whole.trim_matches('\n').trim_end();
    let mut head = "←".to_owned();
    if let Some(function) = function {
        head = format!("{head} {}", one_line(function));
    }
    let (word, style) = if failed { (" failed:", Style::Bad) } else { ("", Style::Aside) };
    head.push_str(word);
    let short = if whole.is_empty() { "nothing" } else { whole };
    if !short.contains('\n') && width(&head) + 1 + width(short) <= short_width(screen) {
        return painted(&[format!("{head} {short}")], style, screen);
    }
    painted(&[head], style, screen)?;
    painted(&prose::output(whole, "  ", length, screen), Style::Aside, screen)
}

/// A block as text.
pub(super) fn in_words(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(block) => safe(&block.text),
        ContentBlock::Thinking(block) => safe(&block.text),
        ContentBlock::FunctionCall(call) => format!("→ {}", one_line(&call.function_id)),
        ContentBlock::FunctionResult(result) => result.content.iter().map(in_words).collect::<Vec<_>>().join("\n"),
        ContentBlock::Image(image) => match (&image.attachment_id, image.data.is_empty()) {
            (Some(id), true) => format!("[image {}, attachment {}]", one_line(&image.mime), one_line(id.as_str())),
            _ => format!("[image {}, {}]", one_line(&image.mime), size(decoded(&image.data))),
        },
        ContentBlock::File(file) => {
            format!("[file {}, {}, {}]", one_line(&file.name), one_line(&file.mime), size(file.size))
        }
    }
}

/// How many bytes a base64 text stands for.
fn decoded(base64: &str) -> u64 {
    let digits = base64.trim_end_matches('=').len() as u64;
    digits * 3 / 4
}

fn painted(lines: &[String], style: Style, screen: &mut Screen) -> Result<(), Failure> {
    lines.iter().try_for_each(|line| screen.line(&screen.paint(style, line)))
}
