//! `--to html`.

use std::io;

use banyan_formats::document::{Head, Html, Picture};
use banyan_formats::redact::Finding;
use banyan_model::{AttachmentId, Error, GetAttachmentRequest, SessionId};

use super::{Source, Telling};
use crate::Banyan;
use crate::walk::Walked;

struct Page {
    html: Html<Vec<u8>>,
    banyan: Banyan,
    session_id: SessionId,
}

pub(super) fn begin(source: &mut Source) -> Result<io::Result<Box<dyn Telling>>, Error> {
    let head = Head { facts: source.facts()?, meta: source.walk.meta.clone() };
    let (banyan, session_id) = (source.banyan.clone(), head.meta.session_id.clone());
    Ok(Html::new(Vec::new(), &head).map(|html| Box::new(Page { html, banyan, session_id }) as Box<dyn Telling>))
}

impl Telling for Page {
    fn tell(&mut self, step: Walked) -> io::Result<()> {
        match step {
            Walked::Entry { entry, .. } => {
                let (banyan, session_id) = (&self.banyan, &self.session_id);
                self.html.entry(&entry, &mut |id| picture(banyan, session_id, id))
            }
            Walked::BranchBegins(entries) => self.html.begin_branch(entries),
            Walked::BranchEnds => self.html.end_branch(),
        }
    }

    fn written(&mut self) -> &mut Vec<u8> {
        self.html.out()
    }

    fn end(self: Box<Self>, findings: &[Finding]) -> io::Result<Vec<u8>> {
        self.html.finish(findings)
    }
}

/// A picture that is an attachment. One that is missing or damaged is named in place of being shown.
fn picture(banyan: &Banyan, session_id: &SessionId, attachment_id: &AttachmentId) -> Option<Picture> {
    let request = GetAttachmentRequest {
        session_id: session_id.clone(),
        attachment_id: attachment_id.clone(),
        include_data: Some(true),
    };
    let found = crate::block_on(banyan.get_attachment(request)).ok().flatten()?;
    Some(Picture { mime: found.attachment.mime, data: found.data? })
}
