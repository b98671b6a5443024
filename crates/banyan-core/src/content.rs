//! Looking into the blocks of a message: attachments that they use, images that need not be sent.

use std::collections::BTreeSet;

use banyan_model::{AgentMessage, AttachmentId, ContentBlock};

/// The attachments that a message refers to: files and linked images, in function results too.
pub fn attachments_in(message: &AgentMessage) -> BTreeSet<AttachmentId> {
    let mut found = BTreeSet::new();
    collect(message.content(), &mut found);
    found
}

fn collect(blocks: &[ContentBlock], found: &mut BTreeSet<AttachmentId>) {
    for block in blocks {
        match block {
            ContentBlock::File(file) => {
                found.insert(file.attachment_id.clone());
            }
            ContentBlock::Image(image) => found.extend(image.attachment_id.clone()),
            ContentBlock::FunctionResult(result) => collect(&result.content, found),
            ContentBlock::Text(_) | ContentBlock::Thinking(_) | ContentBlock::FunctionCall(_) => {}
        }
    }
}

/// Empties the data of images that can be had as attachments, in function results too.
pub fn drop_image_data(message: &mut AgentMessage) {
    drop_from(message.content_mut());
}

fn drop_from(blocks: &mut [ContentBlock]) {
    for block in blocks {
        match block {
            ContentBlock::Image(image) if image.attachment_id.is_some() => image.data.clear(),
            ContentBlock::FunctionResult(result) => drop_from(&mut result.content),
            _ => {}
        }
    }
}
