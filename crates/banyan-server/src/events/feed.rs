//! A subscription as it is sent: what is ready goes out together, what is not sent yet stays in the subscription's own
//! bounded queue, and the past is read where reading holds up nobody.

use std::sync::Arc;
use std::time::Duration;

use banyan::model::{Error, GetRequest, Position, SessionId};
use banyan::{Banyan, Delivery, Subscription};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use super::deltas::Deltas;
use super::frames::Frame;
use super::query::Asked;
use crate::app::Shared;
use crate::budget::Lease;
use crate::caller::Caller;
use crate::presence::{Leave, Presence};
use crate::problem::Problem;
use crate::response::LARGE;

/// See the module.
pub(crate) struct Feed {
    source: Source,
    readers: Arc<Semaphore>,
    presence: Presence,
    /// Whoever is on the other side is to be sent something.
    nudges: watch::Receiver<()>,
    keep_alive: Duration,
    over: bool,
    snapshot: bool,
    _place: Lease,
}

/// What there is to send.
pub(crate) enum News {
    Frames(Vec<Frame>),
    /// Nothing, and no more is to be read of the past.
    PastOver,
    /// Nothing has happened for a while.
    Quiet,
}

/// Whether a session that is asked about has to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Session {
    MustExist,
    MayCome,
}

enum Source {
    Here(Box<Intake>),
    /// The past is being read on another thread.
    Reading(JoinHandle<Result<Chapter, Error>>),
    Lost,
}

/// What was read of the past, and who reads on.
type Chapter = (Box<Intake>, Vec<Frame>);

/// Takes deliveries in and makes frames of them.
struct Intake {
    subscription: Subscription,
    /// What was taken from the subscription already.
    first: Option<Delivery>,
    deltas: Option<Deltas>,
    broken: bool,
    /// Counts those that could not keep up.
    lagged: Counter,
}

/// About how many bytes are sent at once.
const AT_ONCE: usize = 16 << 10;

impl Feed {
    /// Subscribes. When this returns, nothing that happens is missed.
    pub(crate) async fn open(
        app: &Shared,
        caller: &Caller,
        asked: Asked,
        session: Session,
    ) -> Result<Self, Problem> {
        if app.stopping() {
            return Err(Problem::busy("http/stopping", "the server is stopping"));
        }
        let place = app.subscriptions.take(caller.holder()).await?;
        let (store, lagged) = (caller.store.clone(), app.metrics.lagged.clone());
        let snapshot = asked.begins_with_snapshot();
        let readers = Arc::clone(&app.readers);
        let intake = read(Arc::clone(&readers), move || Intake::open(&store, &asked, session, lagged)).await??;
        Ok(Self {
            source: Source::Here(Box::new(intake)),
            readers,
            presence: Presence::new(app, caller.key.clone()),
            nudges: app.subscriptions.nudges(),
            keep_alive: app.settings.keep_alive,
            over: false,
            snapshot,
            _place: place,
        })
    }

    /// Up to where the past has been told, once all of it has. A snapshot says so itself.
    pub(crate) fn caught_up(&self) -> Option<Position> {
        match &self.source {
            Source::Here(intake) if !self.snapshot && intake.first.is_none() && !intake.broken => {
                (!intake.subscription.has_past()).then(|| intake.subscription.began_at())
            }
            Source::Here(_) | Source::Reading(_) | Source::Lost => None,
        }
    }

    /// Waits for what is to be sent next; `None` when the stream is over.
    pub(crate) async fn next(&mut self) -> Option<News> {
        while !self.over {
            if let Source::Here(intake) = &self.source
                && intake.broken
            {
                return None;
            }
            self.begin_reading();
            tokio::select! {
                biased;
                leave = self.presence.told_to_leave() => {
                    self.over = true;
                    // What is here already is still sent when the server stops; the rest is there to resume.
                    return match (&mut self.source, leave) {
                        (Source::Here(intake), Leave::Stopping) => some(intake.take_ready()),
                        _ => None,
                    };
                }
                taken = self.source.take() => match taken {
                    None => self.over = true,
                    Some(frames) if frames.is_empty() => {
                        if self.caught_up().is_some() {
                            return Some(News::PastOver);
                        }
                    }
                    Some(frames) => return some(frames),
                },
                Ok(()) = self.nudges.changed() => return Some(News::Quiet),
                () = tokio::time::sleep(self.keep_alive) => return Some(News::Quiet),
            }
        }
        None
    }

    /// Lets another thread read when there is something to read from disk.
    fn begin_reading(&mut self) {
        let behind = matches!(&self.source, Source::Here(intake) if intake.subscription.has_past());
        if behind && let Source::Here(mut intake) = std::mem::replace(&mut self.source, Source::Lost) {
            self.source = Source::Reading(tokio::spawn(read(Arc::clone(&self.readers), move || {
                let frames = intake.take_ready();
                (intake, frames)
            })));
        }
    }
}

/// Does what reads from disk on a thread where that holds up nobody, when it is its turn.
pub(crate) async fn read<T: Send + 'static>(
    readers: Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let _turn = readers.acquire().await;
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::storage(format!("reading the past failed: {error}")))
}

fn some(frames: Vec<Frame>) -> Option<News> {
    (!frames.is_empty()).then_some(News::Frames(frames))
}

impl Source {
    /// Waits for something, and takes what is ready with it. `None` at the end.
    async fn take(&mut self) -> Option<Vec<Frame>> {
        match self {
            Self::Here(intake) => {
                if intake.first.is_none() {
                    intake.first = intake.ready();
                    if intake.first.is_none() && !intake.broken {
                        let next = intake.subscription.next().await;
                        intake.first = intake.heard(next);
                    }
                }
                intake.first.is_some().then(|| intake.take_ready())
            }
            Self::Reading(reading) => {
                let (intake, frames) = reading.await.ok()?.ok()?;
                let over = intake.broken && frames.is_empty();
                *self = Self::Here(intake);
                (!over).then_some(frames)
            }
            Self::Lost => None,
        }
    }
}

impl Intake {
    fn open(store: &Banyan, asked: &Asked, session: Session, lagged: Counter) -> Result<Self, Problem> {
        let must_exist = asked.session_id.as_ref().filter(|_| session == Session::MustExist);
        let request = asked.subscribe()?;
        if let Some(id) = must_exist.filter(|_| !asked.resumes()) {
            require(store, id)?;
        }
        let mut subscription = store.subscribe(request)?;
        if asked.joins_additions() {
            subscription = subscription.with_joined_additions();
        }
        let mut first = None;
        if let Some(id) = must_exist.filter(|_| asked.resumes())
            && let Err(missing) = require(store, id)
        {
            // Who comes back to a session that was deleted meanwhile is told so. Who has heard of it is refused.
            first = subscription.try_next()?;
            if first.is_none() {
                return Err(missing);
            }
        }
        Ok(Self { subscription, first, deltas: asked.deltas.then(Deltas::default), broken: false, lagged })
    }

    /// Takes what is ready, up to about a chunk.
    fn take_ready(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut bytes = 0;
        while bytes < AT_ONCE {
            let Some(delivery) = self.first.take().or_else(|| self.ready()) else { break };
            // A large event goes alone, so that its text is shared with the other subscribers and not copied.
            if !frames.is_empty() && self.is_large(&delivery) {
                self.first = Some(delivery);
                break;
            }
            bytes += self.add(delivery, &mut frames);
        }
        frames
    }

    /// Whether an event is sent whole, and is large.
    fn is_large(&self, delivery: &Delivery) -> bool {
        match delivery {
            // Its text is not needed when only the addition is sent.
            Delivery::Event(event) => {
                (self.deltas.is_none() || event.added.is_none()) && event.frame().len() >= LARGE
            }
            Delivery::Snapshot(_) | Delivery::SnapshotEnd(_) | Delivery::Lagged | Delivery::Resync => false,
        }
    }

    /// What is ready without waiting.
    fn ready(&mut self) -> Option<Delivery> {
        let next = self.subscription.try_next();
        self.heard(next)
    }

    fn heard(&mut self, next: Result<Option<Delivery>, Error>) -> Option<Delivery> {
        next.unwrap_or_else(|error| {
            tracing::warn!(%error, "a stream ended because its events could not be read");
            self.broken = true;
            None
        })
    }

    /// Adds a delivery to what is to be sent; about how many bytes that is.
    fn add(&mut self, delivery: Delivery, frames: &mut Vec<Frame>) -> usize {
        if let Some(deltas) = &mut self.deltas
            && let Some(bytes) = deltas.add(&delivery, frames)
        {
            return bytes;
        }
        let frame = match delivery {
            Delivery::Event(event) => Frame::Event(event),
            Delivery::Snapshot(event) => Frame::Part(event),
            Delivery::SnapshotEnd(position) => Frame::SnapshotEnd(position),
            Delivery::Lagged => {
                self.lagged.inc();
                Frame::Lagged
            }
            Delivery::Resync => Frame::Resync(self.subscription.began_at()),
        };
        let bytes = frame.size();
        frames.push(frame);
        bytes
    }
}

fn require(store: &Banyan, id: &SessionId) -> Result<(), Problem> {
    let found = banyan::block_on(store.get(GetRequest { session_id: id.clone() }))?;
    found.map(|_| ()).ok_or_else(|| Error::not_found(id).into())
}
