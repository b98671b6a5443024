//! `--to session-log`.

use std::io;

use banyan_formats::redact::Finding;
use banyan_formats::session_log::{Head, Writer};
use banyan_formats::turns::Outlook;
use banyan_model::Error;

use super::{Source, Telling};
use crate::clock::now_ms;
use crate::walk::Walked;

struct Log {
    writer: Writer<Vec<u8>>,
    outlook: Outlook,
}

pub(super) fn begin(source: &mut Source) -> Result<io::Result<Box<dyn Telling>>, Error> {
    let mut titles = source.walk.titles()?;
    if let Some(redactor) = &mut source.redactor {
        for (_, title) in &mut titles {
            *title = redactor.text(title, "session").into_owned();
        }
    }
    let meta = source.walk.meta.clone();
    let outlook = Outlook::of(meta.status, meta.status_reason.clone(), meta.updated_at, now_ms());
    let head = Head {
        facts: source.facts()?,
        active_leaf: source.walk.active_leaf.clone(),
        titles,
        attachments: source.walk.attachments.clone(),
        meta,
    };
    Ok(Writer::new(Vec::new(), &head).map(|writer| Box::new(Log { writer, outlook }) as Box<dyn Telling>))
}

impl Telling for Log {
    fn tell(&mut self, step: Walked) -> io::Result<()> {
        match step {
            Walked::Entry { entry, on_path: true } => self.writer.on_path(&entry),
            Walked::Entry { entry, on_path: false } => self.writer.off_path(&entry),
            Walked::BranchBegins(_) | Walked::BranchEnds => Ok(()),
        }
    }

    fn written(&mut self) -> &mut Vec<u8> {
        self.writer.out()
    }

    fn end(self: Box<Self>, findings: &[Finding]) -> io::Result<Vec<u8>> {
        self.writer.finish(&self.outlook, findings)
    }
}
