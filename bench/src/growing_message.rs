//! A message of 16 KB that grows by 400 updates: what it costs on disk.

use banyan::{Banyan, block_on};
use banyan_model::{
    ContentBlock, EntryId, ExtendMessageRequest, SessionId, SessionStatus, SetStatusRequest, UpdateMessageRequest,
};

use crate::long_session::file;
use crate::report::{Row, Section};
use crate::workbench::{Outcome, Workbench};
use crate::{machine, session};

const UPDATES: usize = 400;
const TEXT: usize = 16_000;

/// One update: the text so far, and where the new part begins.
type Update = fn(&Banyan, &SessionId, &EntryId, &str, usize) -> Outcome<()>;

pub(crate) fn run(bench: &Workbench) -> Outcome<Section> {
    let mut section = Section::default();
    for (name, update) in [("update-message", whole as Update), ("extend-message", added)] {
        let (bytes, written) = grow(bench, update)?;
        let ratio = bytes as f64 / TEXT as f64;
        section.rows.push(
            Row::shown(
                format!("{UPDATES} growing updates to {TEXT} bytes by `{name}`, session file"),
                format!("{bytes} bytes"),
            )
            .beside(format!("the text {TEXT} bytes, rewritten each time {} bytes", TEXT * (UPDATES + 1) / 2))
            .ratio(ratio)
            .target("<= 4x the text", ratio <= 4.0),
        );
        section.method.push(format!(
            "Growing by `{name}`: the session file is measured after a clean close. The process wrote {written} bytes \
             in all, among them the zeros of the log's first segments and the index."
        ));
    }
    Ok(section)
}

/// The length of the session's file in the end, and all bytes that were written on the way.
fn grow(bench: &Workbench, update: Update) -> Outcome<(u64, u64)> {
    let dir = bench.scratch()?;
    let store = session::open(dir.path())?;
    let before = machine::bytes_written()?;
    let id = session::create(&store)?;
    set_status(&store, &id, SessionStatus::Working)?;
    let entry = block_on(store.append(session::append(&id, session::assistant(String::new()))))?.entry_id;
    let text = session::text(1, TEXT);
    for number in 0..UPDATES {
        update(&store, &id, &entry, &text[..TEXT * (number + 1) / UPDATES], TEXT * number / UPDATES)?;
    }
    set_status(&store, &id, SessionStatus::Done)?;
    store.close()?;
    let written = machine::bytes_written()? - before;
    Ok((std::fs::metadata(file(dir.path(), &id))?.len(), written))
}

fn set_status(store: &Banyan, session: &SessionId, status: SessionStatus) -> Outcome<()> {
    block_on(store.set_status(SetStatusRequest { session_id: session.clone(), status, reason: None }))?;
    Ok(())
}

fn whole(store: &Banyan, session: &SessionId, entry: &EntryId, text: &str, _: usize) -> Outcome<()> {
    block_on(store.update_message(UpdateMessageRequest {
        session_id: session.clone(),
        entry_id: entry.clone(),
        content: vec![ContentBlock::text(text)],
        details: None,
        usage: None,
        expected_revision: None,
        origin: None,
    }))?;
    Ok(())
}

fn added(store: &Banyan, session: &SessionId, entry: &EntryId, text: &str, from: usize) -> Outcome<()> {
    block_on(store.extend_message(ExtendMessageRequest {
        session_id: session.clone(),
        entry_id: entry.clone(),
        text: text[from..].to_owned(),
        block: None,
        expected_revision: None,
        origin: None,
    }))?;
    Ok(())
}
