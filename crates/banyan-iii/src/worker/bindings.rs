//! The bindings: who wants to hear what, and the task that delivers it to each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use banyan::model::{Error, EventFilter, EventType, Position};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::delivery::{AWAY, Consumer, Form, Mode, Progress, Standing, deliver};
use super::pace::Pace;
use super::replay::Replay;
use super::runtime::Runtime;
use super::source::Source;
use crate::link::Connection;
use crate::wire::RegisterTrigger;

/// The kind of trigger that other instances of this worker bind to.
pub(super) const FEED: &str = "session::store::events";

/// See the module.
#[derive(Default)]
pub(super) struct Bindings {
    inner: Mutex<Inner>,
    pace: Arc<Pace>,
}

#[derive(Default)]
struct Inner {
    bound: HashMap<String, Bound>,
    /// How far bindings had come when this process began.
    remembered: HashMap<String, Position>,
    /// Until when they may come back.
    remembers_until: Option<Instant>,
}

struct Bound {
    consumer: Arc<Consumer>,
    filters: Vec<EventFilter>,
    standing: watch::Sender<Standing>,
    progress: Arc<Progress>,
    task: JoinHandle<()>,
}

impl Bindings {
    /// Says how far bindings had come before this process began.
    pub(super) fn remember(&self, positions: HashMap<String, Position>) {
        let mut inner = self.lock();
        inner.remembered = positions;
        inner.remembers_until = Some(Instant::now() + AWAY);
    }

    /// Takes a binding. One that is known goes on where it was, and one that is refused ends what was bound under its id: its
    /// owner does not want that any more, and the engine has nothing left to end it by. `runtime` is asked for when no other can take its place meanwhile.
    pub(super) fn bind(
        &self,
        runtime: impl FnOnce() -> Result<Arc<Runtime>, Error>,
        connection: &Arc<Connection>,
        asked: RegisterTrigger<'_>,
    ) -> Result<(), Error> {
        let (filters, form) = match asked_for(&asked) {
            Ok(asked_for) => asked_for,
            Err(error) => {
                self.lock().end(&asked.id);
                return Err(error);
            }
        };
        let consumer = Consumer {
            id: asked.id.into_owned(),
            function_id: asked.function_id.into_owned(),
            metadata: asked.metadata.map(|metadata| metadata.get().to_owned()),
            namespace: asked.namespace.map(|namespace| namespace.into_owned()),
            form,
        };
        let mut inner = self.lock();
        let runtime = runtime()?;
        inner.forget(Instant::now());
        inner.bound.retain(|_, bound| !bound.task.is_finished());
        if let Some(bound) = inner.bound.get(&consumer.id)
            && bound.is_for(&consumer, &filters)
        {
            bound.stand(Mode::Active(Arc::clone(connection)));
            return Ok(());
        }
        let before = inner.end(&consumer.id);
        let source = runtime.source(filters.clone(), before)?;
        let mode = Mode::Active(Arc::clone(connection));
        let bound = Bound::begin(Arc::new(consumer), filters, source, mode, &self.pace);
        inner.bound.insert(bound.consumer.id.clone(), bound);
        Ok(())
    }

    /// A binding is gone, or its consumer is: nothing more is delivered, unless the same binding comes back.
    pub(super) fn unbind(&self, id: &str) {
        if let Some(bound) = self.lock().bound.get(id) {
            bound.stand(Mode::Paused);
        }
    }

    /// The engine is away.
    pub(super) fn pause(&self) {
        for bound in self.lock().bound.values() {
            bound.stand(Mode::Paused);
        }
    }

    /// Another store takes the place of the one before: everyone is told what it holds, and what happened there `since`.
    pub(super) fn begin_anew(&self, runtime: &Runtime, since: Option<Position>, replay: impl Fn() -> Replay) {
        let mut inner = self.lock();
        inner.remembered.clear();
        let before = std::mem::take(&mut inner.bound);
        for (id, bound) in before {
            let mode = bound.standing.borrow().mode.clone();
            let (consumer, filters) = (Arc::clone(&bound.consumer), bound.filters.clone());
            bound.end();
            match runtime.source(filters.clone(), since) {
                Ok(source) => {
                    let source = (source.0.beginning_with(replay()), source.1);
                    inner.bound.insert(id, Bound::begin(consumer, filters, source, mode, &self.pace));
                }
                Err(error) => tracing::error!(binding = %id, %error, "a binding hears nothing any more"),
            }
        }
    }

    /// Nothing is delivered any more.
    pub(super) fn end(&self) {
        for (_, bound) in std::mem::take(&mut self.lock().bound) {
            bound.end();
        }
    }

    /// How far each binding has come.
    pub(super) fn positions(&self) -> HashMap<String, Position> {
        let mut inner = self.lock();
        inner.forget(Instant::now());
        let live = inner.bound.iter().filter(|(_, bound)| !bound.task.is_finished());
        let live = live.map(|(id, bound)| (id.clone(), bound.progress.get()));
        inner.remembered.iter().map(|(id, position)| (id.clone(), *position)).chain(live).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Ends what is bound under an id, and says how far it came.
    fn end(&mut self, id: &str) -> Option<Position> {
        let remembered = self.remembered.remove(id);
        self.bound.remove(id).map(Bound::end).or(remembered)
    }

    /// Who has not come back for long is not waited for.
    fn forget(&mut self, now: Instant) {
        if self.remembers_until.is_some_and(|until| now >= until) {
            self.remembered.clear();
            self.remembers_until = None;
        }
    }
}

impl Bound {
    fn begin(
        consumer: Arc<Consumer>,
        filters: Vec<EventFilter>,
        source: (Source, Position),
        mode: Mode,
        pace: &Arc<Pace>,
    ) -> Self {
        let (source, position) = source;
        let (standing, changes) = watch::channel(Standing { mode, epoch: 0 });
        let progress = Arc::new(Progress::at(position));
        let task = tokio::spawn(deliver(
            Arc::clone(&consumer),
            source,
            position,
            changes,
            Arc::clone(&progress),
            Arc::clone(pace),
        ));
        Self { consumer, filters, standing, progress, task }
    }

    /// What was under way until now has to be sent again.
    fn stand(&self, mode: Mode) {
        self.standing.send_modify(|standing| *standing = Standing { mode, epoch: standing.epoch + 1 });
    }

    fn is_for(&self, consumer: &Consumer, filters: &[EventFilter]) -> bool {
        self.filters == filters && *self.consumer == *consumer
    }

    /// Stops delivering, and says how far it came.
    fn end(self) -> Position {
        self.task.abort();
        self.progress.get()
    }
}

/// What a binding asks for.
fn asked_for(asked: &RegisterTrigger<'_>) -> Result<(Vec<EventFilter>, Form), Error> {
    if asked.trigger_type == FEED {
        return Ok((EventType::ALL.map(EventFilter::all).into(), Form::Envelope));
    }
    let event_type = asked.trigger_type.parse::<EventType>()?;
    Ok((vec![EventFilter::parse(event_type, Some(asked.config.get()))?], Form::Payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_of_before_are_remembered_for_as_long_as_they_may_be_away() {
        let bindings = Bindings::default();
        bindings.remember(HashMap::from([("b".to_owned(), Position::BEGINNING)]));
        let begin = Instant::now();
        bindings.lock().forget(begin);
        assert_eq!(bindings.positions().len(), 1);
        bindings.lock().forget(begin + AWAY);
        assert_eq!(bindings.positions().len(), 0);
    }
}
