//! The blocks of a message.

use std::io::{Read, Seek};

use banyan_model::{
    ContentBlock, FileBlock, FunctionCallBlock, FunctionResultBlock, ImageBlock, Json, ThinkingBlock,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::super::archive::File;
use super::super::error::Error;
use super::super::manifest::safe_display;
use super::super::mark::Mark;
use super::super::mime;
use super::message::Exact;
use super::{Messages, OPEN_CALLS};

impl<R: Read + Seek + Send> Messages<'_, R> {
    /// The content of a message: a string, a list of blocks, one block, or nothing.
    pub(super) fn blocks(
        &mut self,
        content: &Value,
        mark: &mut Mark,
        exact: &mut Exact,
    ) -> Result<Vec<ContentBlock>, Error> {
        match content {
            Value::String(text) => Ok(vec![ContentBlock::text(text.clone())]),
            Value::Array(blocks) => {
                mark.list = is_one_text(blocks);
                let mut read = Vec::with_capacity(blocks.len());
                for (at, block) in blocks.iter().enumerate() {
                    read.push(self.block(block, mark, exact.input(at))?);
                }
                Ok(read)
            }
            Value::Object(_) => Ok(vec![self.block(content, mark, None)?]),
            Value::Null => Ok(Vec::new()),
            other => Ok(vec![ContentBlock::text(other.to_string())]),
        }
    }

    /// The content of a result, in the same forms.
    pub(super) fn result_content(
        &mut self,
        content: Option<&Value>,
        mark: &mut Mark,
    ) -> Result<Vec<ContentBlock>, Error> {
        match content {
            Some(Value::Array(blocks)) => {
                mark.result_lists |= is_one_text(blocks);
                blocks.iter().map(|block| self.block(block, mark, None)).collect()
            }
            Some(Value::Null) | None => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![ContentBlock::text(text.clone())]),
            Some(block @ Value::Object(_)) => Ok(vec![self.block(block, mark, None)?]),
            Some(other) => Ok(vec![ContentBlock::text(other.to_string())]),
        }
    }

    fn block(&mut self, block: &Value, mark: &mut Mark, input: Option<Json>) -> Result<ContentBlock, Error> {
        let text = |key: &str| block.get(key).and_then(Value::as_str);
        let kind = text("type").unwrap_or_default();
        let read = match kind {
            "text" => text("text").map(ContentBlock::text),
            "thinking" => text("thinking").or_else(|| text("text")).map(|thought| {
                let signature = text("signature").map(str::to_owned);
                ContentBlock::Thinking(ThinkingBlock { text: thought.to_owned(), signature })
            }),
            "tool_use" => text("id").zip(text("name")).map(|(id, name)| {
                if self.open_calls.len() == OPEN_CALLS {
                    self.open_calls.pop_front();
                }
                self.open_calls.push_back((id.to_owned(), name.to_owned()));
                let given = || block.get("input").and_then(|input| Json::of(input).ok());
                ContentBlock::FunctionCall(FunctionCallBlock {
                    id: id.to_owned(),
                    function_id: name.to_owned(),
                    arguments: input.or_else(given).unwrap_or_default(),
                })
            }),
            "tool_result" => match text("tool_use_id") {
                Some(call) => {
                    let content = self.result_content(block.get("content"), mark)?;
                    self.open_calls.retain(|(open, _)| open != call);
                    Some(ContentBlock::FunctionResult(FunctionResultBlock {
                        function_call_id: call.to_owned(),
                        content,
                        is_error: block.get("is_error").and_then(Value::as_bool),
                    }))
                }
                None => None,
            },
            "image" | "file" => self.attached(kind, block, mark)?,
            _ => None,
        };
        Ok(read.unwrap_or_else(|| {
            let kind = safe_display(kind);
            self.unplaced(format!("a block of the type `{kind}`"));
            ContentBlock::text(format!("[a block of the type `{kind}`, kept in its entry's origin]"))
        }))
    }

    /// A picture or a file, out of the archive or out of the message itself.
    fn attached(&mut self, kind: &str, block: &Value, mark: &mut Mark) -> Result<Option<ContentBlock>, Error> {
        let source = block.get("source");
        let in_source = |key: &str| source.and_then(|source| source.get(key)).and_then(Value::as_str);
        let media_type = block.get("media_type").and_then(Value::as_str).or_else(|| in_source("media_type"));
        if kind == "image" && in_source("type") == Some("base64") {
            let Some(data) = in_source("data") else { return Ok(None) };
            let Ok(bytes) = STANDARD.decode(data) else { return Ok(None) };
            mark.paths.push(String::new());
            let mime = media_type.unwrap_or_else(|| mime::guess("", &bytes)).to_owned();
            return Ok(Some(ContentBlock::Image(ImageBlock { mime, data: data.to_owned(), attachment_id: None })));
        }
        let in_block = block.get("path").and_then(Value::as_str);
        let of_attachment = in_source("type").is_none_or(|kind| kind == "attachment");
        let Some(path) = in_source("path").filter(|_| of_attachment).or(in_block) else { return Ok(None) };
        // A copy of the reference, because the file is looked at while the rest is changed.
        let archive = self.archive;
        let Some(file) = archive.file(path) else {
            let path = safe_display(path);
            self.unplaced(format!("the attachment `{path}`, which is missing"));
            return Ok(Some(ContentBlock::text(format!("[`{path}` is missing from the archive]"))));
        };
        let attachment_id = (self.attachments)(file);
        if kind == "image" && file.size <= archive.limits.image_size && file.size <= self.images_left {
            self.images_left -= file.size;
            mark.paths.push(path.to_owned());
            return self.picture(file, media_type, attachment_id).map(Some);
        }
        let Some(attachment_id) = attachment_id else {
            self.unplaced(format!("the attachment `{}`, which was not taken", safe_display(path)));
            let shown = format!("[`{}`, {} bytes]", safe_display(path), file.size);
            return Ok(Some(ContentBlock::text(shown)));
        };
        mark.paths.push(path.to_owned());
        let name = block.get("name").and_then(Value::as_str).filter(|name| !name.trim().is_empty());
        Ok(Some(ContentBlock::File(FileBlock {
            attachment_id,
            name: name.unwrap_or_else(|| file.name()).to_owned(),
            mime: media_type.unwrap_or_else(|| file.mime()).to_owned(),
            size: file.size,
        })))
    }

    fn picture(
        &self,
        file: &File,
        media_type: Option<&str>,
        attachment_id: Option<banyan_model::AttachmentId>,
    ) -> Result<ContentBlock, Error> {
        let mut bytes = Vec::with_capacity(usize::try_from(file.size).unwrap_or_default());
        let mut content = self.archive.read(&file.path)?;
        content.read_to_end(&mut bytes).map_err(|error| Error::of_entry(&file.path, error))?;
        let known = media_type.or(file.content_type.as_deref());
        let mime = known.unwrap_or_else(|| mime::guess(&file.path, &bytes)).to_owned();
        Ok(ContentBlock::Image(ImageBlock { mime, data: STANDARD.encode(&bytes), attachment_id }))
    }
}

/// Whether a list is what a writer would write as a string.
fn is_one_text(blocks: &[Value]) -> bool {
    matches!(blocks, [one] if one.get("type").and_then(Value::as_str) == Some("text"))
}
