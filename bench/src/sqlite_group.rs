//! SQLite with group commit: one thread writes, and what is queued goes into one transaction.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::sqlite::{body, insert, open};
use crate::workbench::Outcome;
use crate::writers::{Done, While, as_tasks, as_threads};

/// A row that waits to be written, and whom to tell.
struct Queued {
    writer: usize,
    body: Arc<str>,
    done: oneshot::Sender<()>,
}

/// The writers are threads.
pub(crate) fn threads(dir: &Path, time: While) -> Outcome<Done> {
    let (sender, thread) = start(dir)?;
    let done = as_threads(time, |writer| {
        let (sender, body): (_, Arc<str>) = (sender.clone(), body(writer)?.into());
        Ok(move || Ok(queue(&sender, writer, &body)?.blocking_recv()?))
    });
    finish(sender, thread)?;
    done
}

/// The writers are tasks.
pub(crate) fn tasks(dir: &Path, time: While) -> Outcome<Done> {
    let (sender, thread) = start(dir)?;
    let done = as_tasks(time, 2, |writer| {
        let (sender, body): (_, Arc<str>) = (sender.clone(), body(writer)?.into());
        Ok(move || {
            let queued = queue(&sender, writer, &body);
            async move { Ok(queued?.await?) }
        })
    });
    finish(sender, thread)?;
    done
}

fn queue(sender: &Sender<Queued>, writer: usize, body: &Arc<str>) -> Outcome<oneshot::Receiver<()>> {
    let (done, told) = oneshot::channel();
    sender.send(Queued { writer, body: Arc::clone(body), done }).map_err(|_| "the writing thread is gone")?;
    Ok(told)
}

fn start(dir: &Path) -> Outcome<(Sender<Queued>, JoinHandle<Outcome<()>>)> {
    let conn = open(dir)?;
    let (sender, receiver) = channel();
    Ok((sender, thread::spawn(move || write(&conn, &receiver))))
}

fn finish(sender: Sender<Queued>, thread: JoinHandle<Outcome<()>>) -> Outcome<()> {
    drop(sender);
    thread.join().map_err(|_| "the writing thread panicked")?
}

fn write(conn: &Connection, receiver: &Receiver<Queued>) -> Outcome<()> {
    while let Ok(first) = receiver.recv() {
        conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut told = Vec::new();
        for queued in std::iter::once(first).chain(receiver.try_iter()) {
            insert(conn, queued.writer, &queued.body)?;
            told.push(queued.done);
        }
        conn.prepare_cached("COMMIT")?.execute([])?;
        for done in told {
            let _ = done.send(());
        }
    }
    Ok(())
}
