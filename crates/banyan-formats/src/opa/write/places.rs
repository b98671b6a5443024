//! Where pictures and files are in the archive that is being written: where they were, if that is free, else by their content.

use std::collections::HashMap;

use banyan_model::{AttachmentId, FileBlock, ImageBlock};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::super::digest::hex;
use super::super::render::Places;
use super::super::{HISTORY, PROMPT, path};

type Sum = [u8; 32];

/// The places that are taken.
#[derive(Default)]
pub(crate) struct Placed {
    taken: HashMap<String, Sum>,
    by_content: HashMap<Sum, String>,
    by_attachment: HashMap<AttachmentId, (String, Sum)>,
    wishes: HashMap<AttachmentId, String>,
}

impl Placed {
    /// Remembers where an attachment was.
    pub(crate) fn wish(&mut self, attachment: &AttachmentId, wish: &str) {
        if is_free_for_all(wish) {
            self.wishes.entry(attachment.clone()).or_insert_with(|| wish.to_owned());
        }
    }

    /// Takes a place for some content; the path to write it to, when it is not there yet.
    pub(crate) fn place(&mut self, sum: Sum, wish: Option<&str>, extension: &str) -> Option<String> {
        if self.found(sum, wish).is_some() {
            return None;
        }
        let wish = wish.filter(|wish| is_free_for_all(wish) && !self.taken.contains_key(*wish));
        let path = wish.map_or_else(|| self.by_name_of_content(sum, extension), str::to_owned);
        self.taken.insert(path.clone(), sum);
        self.by_content.entry(sum).or_insert_with(|| path.clone());
        Some(path)
    }

    /// The place of an attachment, and whether it still has to be written.
    pub(crate) fn attachment(&mut self, id: &AttachmentId, sum: Sum, extension: &str) -> (String, bool) {
        let wish = self.wishes.get(id).cloned();
        let new = self.place(sum, wish.as_deref(), extension);
        let is_new = new.is_some();
        let path = new.or_else(|| self.found(sum, wish.as_deref())).unwrap_or_default();
        self.by_attachment.insert(id.clone(), (path.clone(), sum));
        (path, is_new)
    }

    /// Where content is: where it was, or anywhere. A wish for a free place is not found yet.
    fn found(&self, sum: Sum, wish: Option<&str>) -> Option<String> {
        match wish.filter(|wish| is_free_for_all(wish)) {
            Some(wish) => match self.taken.get(wish) {
                Some(taken) if *taken == sum => Some(wish.to_owned()),
                Some(_) => self.by_content.get(&sum).cloned(),
                None => None,
            },
            None => self.by_content.get(&sum).cloned(),
        }
    }

    fn by_name_of_content(&self, sum: Sum, extension: &str) -> String {
        let name = hex(&sum);
        let short = format!("session/attachments/{}.{extension}", &name[..16]);
        if self.taken.contains_key(&short) { format!("session/attachments/{name}.{extension}") } else { short }
    }
}

impl Places for Placed {
    fn image(&self, block: &ImageBlock, wish: Option<&str>) -> Option<String> {
        let bytes = STANDARD.decode(&block.data).ok()?;
        self.found(Sha256::digest(&bytes).into(), wish)
    }

    fn file(&self, block: &FileBlock, wish: Option<&str>) -> Option<String> {
        let (path, sum) = self.by_attachment.get(&block.attachment_id)?;
        let wished = wish.filter(|wish| self.taken.get(*wish) == Some(sum));
        Some(wished.unwrap_or(path).to_owned())
    }
}

/// Whether a path is one of those that every archive has.
pub(crate) fn is_own(path: &str) -> bool {
    path == PROMPT || path == HISTORY
}

/// Whether pictures and files may lie there.
fn is_free_for_all(wish: &str) -> bool {
    path::source_flaw(wish).is_none() && !wish.ends_with('/') && !is_own(wish)
}

/// A digest that is written in hex.
pub(crate) fn digest(hex: &str) -> Option<Sum> {
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    let mut sum = [0; 32];
    for (at, byte) in sum.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(sum)
}

/// How a file's name ends, if that is a short word.
pub(crate) fn own_extension(name: &str) -> &str {
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    let is_word = (1..=8).contains(&end.len()) && end.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_word { end } else { "bin" }
}
