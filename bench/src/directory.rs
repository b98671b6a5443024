//! A directory of very many sessions, made through the API, closed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use banyan::Banyan;
use banyan_model::{CreateRequest, Object};

use crate::session;
use crate::workbench::Outcome;

/// How many sessions belong to [`RARE`], in a directory of any size.
pub(crate) const FEW: usize = 5;
pub(crate) const RARE: &str = "u_rare";
const OWNERS: usize = 1000;
const TASKS: usize = 64;

/// See the module.
pub(crate) struct Directory {
    pub(crate) dir: PathBuf,
    pub(crate) sessions: usize,
    /// How long it took to make them and to close the store.
    pub(crate) took: Duration,
    pub(crate) closing: Duration,
}

impl Directory {
    pub(crate) fn make(dir: &Path, sessions: usize) -> Outcome<Self> {
        let store = session::open_buffered(dir)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
        let next = Arc::new(AtomicUsize::new(0));
        let begun = Instant::now();
        let tasks: Vec<_> =
            (0..TASKS).map(|_| runtime.spawn(make_some(store.clone(), Arc::clone(&next), sessions))).collect();
        for task in tasks {
            runtime.block_on(task)??;
        }
        let made = begun.elapsed();
        store.close()?;
        let took = begun.elapsed();
        Ok(Self { dir: dir.to_owned(), sessions, took, closing: took - made })
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.sessions as f64 / self.took.as_secs_f64()
    }
}

async fn make_some(store: Banyan, next: Arc<AtomicUsize>, sessions: usize) -> Outcome<()> {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= sessions {
            return Ok(());
        }
        let metadata = Some(labels(number, sessions));
        let created = store.create(CreateRequest { metadata, ..CreateRequest::default() }).await?;
        let message = session::user(session::text(number, 200));
        store.append(session::append(&created.session_id, message)).await?;
    }
}

/// One of a thousand owners, and one of two plans, so that one filter meets half of the sessions.
fn labels(number: usize, sessions: usize) -> Object {
    let owner = match number % (sessions / FEW) {
        0 => RARE.to_owned(),
        _ => format!("u_{}", number % OWNERS),
    };
    let plan = if number.is_multiple_of(2) { "free" } else { "paid" };
    Object::from_iter([("owner".to_owned(), owner.into()), ("plan".to_owned(), plan.into())])
}
