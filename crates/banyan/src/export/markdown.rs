//! `--to markdown`.

use std::io;

use banyan_formats::document::{Head, Markdown};
use banyan_formats::redact::Finding;
use banyan_model::Error;

use super::{Source, Telling};
use crate::walk::Walked;

struct Document(Markdown<Vec<u8>>);

pub(super) fn begin(source: &mut Source) -> Result<io::Result<Box<dyn Telling>>, Error> {
    let head = Head { facts: source.facts()?, meta: source.walk.meta.clone() };
    Ok(Markdown::new(Vec::new(), &head).map(|document| Box::new(Document(document)) as Box<dyn Telling>))
}

impl Telling for Document {
    fn tell(&mut self, step: Walked) -> io::Result<()> {
        match step {
            Walked::Entry { entry, .. } => self.0.entry(&entry),
            Walked::BranchBegins(entries) => self.0.branch(entries),
            Walked::BranchEnds => Ok(()),
        }
    }

    fn written(&mut self) -> &mut Vec<u8> {
        self.0.out()
    }

    fn end(self: Box<Self>, findings: &[Finding]) -> io::Result<Vec<u8>> {
        self.0.finish(findings)
    }
}
