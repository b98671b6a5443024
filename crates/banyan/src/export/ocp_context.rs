//! `--to ocp-context`.

use std::io;

use banyan_formats::ocp::Gathering;
use banyan_formats::redact::Finding;
use banyan_model::SessionMeta;

use super::{Source, Telling};
use crate::contexts::gather;
use crate::walk::Walked;

/// Actions are told in the order of their times, so nothing is written before the last is known.
struct Context {
    gathering: Gathering,
    meta: SessionMeta,
    nothing: Vec<u8>,
}

pub(super) fn begin(source: &Source) -> Box<dyn Telling> {
    Box::new(Context { gathering: Gathering::default(), meta: source.walk.meta.clone(), nothing: Vec::new() })
}

impl Telling for Context {
    fn tell(&mut self, step: Walked) -> io::Result<()> {
        gather(&mut self.gathering, &step);
        Ok(())
    }

    fn written(&mut self) -> &mut Vec<u8> {
        &mut self.nothing
    }

    fn end(self: Box<Self>, findings: &[Finding]) -> io::Result<Vec<u8>> {
        let mut told = self.gathering.finish(&self.meta);
        told.redacted.splice(0..0, findings.iter().cloned());
        let mut text = serde_json::to_vec_pretty(&told.listed())?;
        text.push(b'\n');
        Ok(text)
    }
}
