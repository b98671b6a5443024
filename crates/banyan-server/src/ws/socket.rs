//! The life of a WebSocket connection. One task reads, calls, listens and writes. A client that does not read holds up that
//! task and nothing else: calls and frames of its own wait, and each of its subscriptions has its bounded queue.

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures_util::future::BoxFuture;
use futures_util::stream::{AbortHandle, Abortable, BoxStream, FuturesUnordered, SelectAll};
use futures_util::{SinkExt, StreamExt, stream};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::protocol::{self, Ask};
use crate::app::{App, Shared};
use crate::body::share;
use crate::budget::{Holder, Lease, Reason, Refusal};
use crate::caller::Caller;
use crate::events::{Asked, Feed, Frame, News, Session};
use crate::presence::{Leave, Presence};
use crate::problem::Problem;
use crate::response::{self, LARGE};

/// How many calls of one connection run at a time. The next one is read when one of them is answered.
const IN_FLIGHT: usize = 32;

/// How long the other side may take to say that it closes, too.
const LAST_WORD: Duration = Duration::from_secs(1);

/// See the module.
pub(super) struct Socket {
    app: Shared,
    caller: Caller,
    socket: WebSocket,
    presence: Presence,
    ping: Interval,
    /// When the rate of what arrives is looked at.
    pace: Interval,
    working: FuturesUnordered<BoxFuture<'static, Done>>,
    feeds: SelectAll<BoxStream<'static, Told>>,
    /// Subscriptions by id.
    subscriptions: HashMap<String, State>,
    stopping: bool,
    /// Whether a message was incomplete when its rate was last looked at.
    incomplete: bool,
}

/// How far a subscription is.
enum State {
    Opens,
    /// It is not wanted any more, and ends when it has opened. Whoever said so is answered then.
    Leaves(String),
    Runs(AbortHandle),
}

/// What came of an ask.
enum Done {
    Answer(String, Option<Lease>),
    Opened(String, Box<Feed>),
    NotOpened(String, Problem),
}

/// What a subscription has to say, and its id if that was all.
struct Told {
    messages: Vec<String>,
    over: Option<String>,
    /// The part of the budget that the messages have until they are sent.
    _lease: Option<Lease>,
}

/// Why a connection ends.
enum End {
    /// The other side is gone.
    Gone,
    /// The other side says that it closes.
    Closed,
    Close(u16, &'static str),
}

impl Socket {
    pub(super) fn new(app: Shared, caller: Caller, socket: WebSocket) -> Self {
        let every = app.settings.keep_alive;
        let mut ping = tokio::time::interval_at(Instant::now() + every, every);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let window = app.settings.limits.body_timeout;
        let mut pace = tokio::time::interval_at(Instant::now() + window, window);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            presence: Presence::new(&app, caller.key.clone()),
            app,
            caller,
            socket,
            ping,
            pace,
            working: FuturesUnordered::new(),
            feeds: SelectAll::new(),
            subscriptions: HashMap::new(),
            stopping: false,
            incomplete: false,
        }
    }

    pub(super) async fn run(mut self) {
        let end = loop {
            if let Err(end) = self.turn().await {
                break end;
            }
        };
        let closing = async {
            match end {
                End::Gone => return,
                // The answer to it is written already, but not sent.
                End::Closed => drop(self.socket.flush().await),
                End::Close(code, reason) => {
                    let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
                    drop(self.socket.send(close).await);
                }
            }
            // Hanging up on what was sent meanwhile would take this back.
            let rest = async { while let Some(Ok(_)) = self.socket.recv().await {} };
            drop(tokio::time::timeout(LAST_WORD, rest).await);
        };
        drop(tokio::time::timeout(self.app.settings.drain, closing).await);
    }

    /// Does whatever is next.
    async fn turn(&mut self) -> Result<(), End> {
        if self.stopping && self.working.is_empty() && self.feeds.is_empty() {
            return Err(End::Close(close_code::AWAY, "the server is stopping"));
        }
        let reads = !self.stopping && self.working.len() < IN_FLIGHT;
        tokio::select! {
            leave = self.presence.told_to_leave(), if !self.stopping => match leave {
                // No new work; calls are answered and subscriptions send what they have.
                Leave::Stopping => { self.stopping = true; Ok(()) }
                Leave::KeyRemoved => Err(removed()),
            },
            Some(done) = self.working.next() => self.finish(done).await,
            // The last feed ends without a word, and what comes next may depend on it.
            told = self.feeds.next(), if !self.feeds.is_empty() => match told {
                Some(told) => self.tell(told).await,
                None => Ok(()),
            },
            incoming = self.socket.recv(), if reads => match incoming {
                None => Err(End::Gone),
                Some(Err(error)) => Err(self.refused().unwrap_or_else(|| unreadable(&error))),
                Some(Ok(message)) => self.hear(message).await,
            },
            _ = self.pace.tick() => self.check_pace(reads),
            _ = self.ping.tick() => self.send([Message::Ping(Default::default())]).await,
        }
    }

    /// Ends the connection when a message arrives too slowly. While nothing is read, that is nobody's fault.
    fn check_pace(&mut self, reads: bool) -> Result<(), End> {
        let Some(peer) = &self.caller.peer else { return Ok(()) };
        let limits = &self.app.settings.limits;
        let recent = peer.intake().take_recent();
        // The first window of a message is not looked at: it began somewhere within it.
        let begun = std::mem::replace(&mut self.incomplete, recent.is_some() && reads);
        match recent {
            Some(bytes) if begun && reads && bytes < share(limits.body_rate as u64, limits.body_timeout) => {
                Err(End::Close(close_code::POLICY, "the message arrives too slowly"))
            }
            _ => Ok(()),
        }
    }

    /// Why reading failed, when the budget for requests had no room.
    fn refused(&self) -> Option<End> {
        let refusal = self.caller.peer.as_ref()?.intake().refusal()?;
        Some(End::Close(
            close_code::AGAIN,
            match refusal.reason {
                Reason::Full => "this server holds as many bytes of requests as it may",
                Reason::Share => {
                    "this key or address holds more than half of the bytes of requests that this server may hold"
                }
            },
        ))
    }

    async fn hear(&mut self, message: Message) -> Result<(), End> {
        self.incomplete = false;
        let arrived = self.caller.peer.as_ref().and_then(|peer| peer.intake().complete());
        let text = match message {
            Message::Text(text) => text,
            Message::Binary(_) => {
                let problem = Problem::invalid("frames are JSON text, not binary");
                return self.say(protocol::refused(None, &problem)).await;
            }
            Message::Ping(_) | Message::Pong(_) => return Ok(()),
            Message::Close(_) => return Err(End::Closed),
        };
        let (id, ask) = protocol::read(&text);
        if let (Some(id), Ok(Ask::Call { .. } | Ask::Subscribe(_))) = (&id, &ask)
            && let Err(problem) = self.app.rates.check(self.caller.key.as_deref())
        {
            return self.say(protocol::refused(Some(id), &problem)).await;
        }
        match (id, ask) {
            (id, Err(problem)) => self.say(protocol::refused(id.as_deref(), &problem)).await,
            (None, Ok(_)) => Ok(()),
            (Some(id), Ok(Ask::Call { function, request })) => {
                let (app, caller) = (self.app.clone(), self.caller.clone());
                self.working.push(Box::pin(async move {
                    let mut room = None;
                    if response::call_must_wait(&app, &function) {
                        match response::room(&app, caller.holder()).await {
                            Ok(lease) => room = Some(lease),
                            Err(refusal) => {
                                return Done::Answer(protocol::refused(Some(&id), &refusal.into()), None);
                            }
                        }
                    }
                    let answer = match caller.store.call(&function, request.as_bytes()).await {
                        Ok(response) => protocol::answered(&id, &response),
                        Err(error) => protocol::refused(Some(&id), &error.into()),
                    };
                    drop((arrived, room));
                    let lease = (answer.len() >= LARGE)
                        .then(|| app.response_memory.take_regardless(caller.holder(), answer.len() as u64));
                    Done::Answer(answer, lease)
                }));
                Ok(())
            }
            (Some(id), Ok(Ask::Subscribe(asked))) => self.subscribe(id, *asked).await,
            (Some(id), Ok(Ask::Unsubscribe(subscription))) => self.unsubscribe(id, &subscription).await,
        }
    }

    async fn subscribe(&mut self, id: String, asked: Asked) -> Result<(), End> {
        let most = self.app.settings.limits.subscriptions_per_socket;
        if self.subscriptions.len() >= most {
            let problem = Problem::busy(
                "events/too_many_subscriptions",
                format!("this connection has {most} subscriptions, which is as many as one may have"),
            );
            return self.say(protocol::refused(Some(&id), &problem)).await;
        }
        if self.subscriptions.contains_key(&id) {
            let problem = Problem::invalid(format!("this connection has a subscription {id} already"));
            return self.say(protocol::refused(Some(&id), &problem)).await;
        }
        self.subscriptions.insert(id.clone(), State::Opens);
        let (app, caller) = (self.app.clone(), self.caller.clone());
        self.working.push(Box::pin(async move {
            match Feed::open(&app, &caller, asked, Session::MayCome).await {
                Ok(feed) => Done::Opened(id, Box::new(feed)),
                Err(problem) => Done::NotOpened(id, problem),
            }
        }));
        Ok(())
    }

    async fn unsubscribe(&mut self, id: String, subscription: &str) -> Result<(), End> {
        match self.subscriptions.get_mut(subscription) {
            Some(State::Runs(running)) => {
                running.abort();
                self.subscriptions.remove(subscription);
                self.say(protocol::unsubscribed(&id)).await
            }
            Some(opens @ State::Opens) => {
                *opens = State::Leaves(id);
                Ok(())
            }
            Some(State::Leaves(_)) | None => {
                let problem = Problem::invalid(format!("this connection has no subscription {subscription}"));
                self.say(protocol::refused(Some(&id), &problem)).await
            }
        }
    }

    async fn finish(&mut self, done: Done) -> Result<(), End> {
        match done {
            Done::Answer(answer, _lease) => self.say(answer).await,
            Done::NotOpened(id, problem) => {
                let answer = protocol::refused(Some(&id), &problem);
                let state = self.subscriptions.remove(&id);
                self.say(answer).await?;
                self.left(state).await
            }
            Done::Opened(id, feed) => {
                let answer = protocol::subscribed(&id);
                if let Some(state @ State::Leaves(_)) = self.subscriptions.remove(&id) {
                    drop(feed);
                    self.say(answer).await?;
                    return self.left(Some(state)).await;
                }
                let (handle, registration) = AbortHandle::new_pair();
                self.subscriptions.insert(id.clone(), State::Runs(handle));
                let account = (self.app.clone(), self.caller.holder());
                self.feeds.push(Abortable::new(messages(id, feed, account), registration).boxed());
                self.say(answer).await
            }
        }
    }

    /// Answers whoever wanted a subscription to end before it had opened.
    async fn left(&mut self, state: Option<State>) -> Result<(), End> {
        match state {
            Some(State::Leaves(id)) => self.say(protocol::unsubscribed(&id)).await,
            Some(State::Opens | State::Runs(_)) | None => Ok(()),
        }
    }

    async fn tell(&mut self, told: Told) -> Result<(), End> {
        // Who reads the last message can use the id again at once.
        if let Some(id) = told.over {
            self.subscriptions.remove(&id);
        }
        self.send(told.messages.into_iter().map(|text| Message::Text(text.into()))).await
    }

    async fn say(&mut self, text: String) -> Result<(), End> {
        self.send([Message::Text(text.into())]).await
    }

    /// Sends, as long as the other side takes it and the key is there.
    async fn send(&mut self, messages: impl IntoIterator<Item = Message>) -> Result<(), End> {
        let socket = &mut self.socket;
        let sending = async {
            for message in messages {
                socket.feed(message).await.map_err(|_| End::Gone)?;
            }
            socket.flush().await.map_err(|_| End::Gone)
        };
        tokio::pin!(sending);
        let leave = tokio::select! {
            biased;
            sent = &mut sending => return sent,
            leave = self.presence.told_to_leave() => leave,
        };
        match leave {
            Leave::KeyRemoved => Err(removed()),
            Leave::Stopping => {
                tokio::time::timeout(self.app.settings.drain, sending).await.unwrap_or(Err(End::Gone))
            }
        }
    }
}

fn removed() -> End {
    End::Close(close_code::POLICY, "the key of this connection was removed")
}

fn unreadable(error: &axum::Error) -> End {
    let text = error.to_string();
    if text.contains("too long") || text.contains("too large") || text.contains("exceeded") {
        return End::Close(close_code::SIZE, "the message is larger than this server takes");
    }
    if text.contains("UTF-8") {
        return End::Close(close_code::INVALID, "text is UTF-8");
    }
    if text.contains("protocol error") {
        return End::Close(close_code::PROTOCOL, "this is not the protocol of RFC 6455");
    }
    End::Gone
}

/// What a subscription sends. The last of it says that it is over. A large message waits for its part of the budget for
/// responses, and the subscription ends as if it had lagged when there is none.
fn messages(id: String, feed: Box<Feed>, account: (Shared, Holder)) -> BoxStream<'static, Told> {
    stream::unfold(Some((id, feed, account)), |running| async move {
        let (id, mut feed, account) = running?;
        loop {
            match feed.next().await {
                Some(News::Frames(frames)) => {
                    let (app, holder) = &account;
                    let Ok(lease) = room(app, holder, &frames).await else {
                        app.metrics.lagged.inc();
                        let messages = vec![Frame::Lagged.message(&id)];
                        return Some((Told { messages, over: Some(id), _lease: None }, None));
                    };
                    let messages = frames.iter().map(|frame| frame.message(&id)).collect();
                    return Some(match frames.last().is_some_and(Frame::is_last) {
                        true => (Told { messages, over: Some(id), _lease: lease }, None),
                        false => (Told { messages, over: None, _lease: lease }, Some((id, feed, account))),
                    });
                }
                // The connection has pings of its own.
                Some(News::Quiet | News::PastOver) => {}
                None => return Some((Told { messages: Vec::new(), over: Some(id), _lease: None }, None)),
            }
        }
    })
    .boxed()
}

/// Room for the messages of large frames: as text, and once more as what is written.
async fn room(app: &App, holder: &Holder, frames: &[Frame]) -> Result<Option<Lease>, Refusal> {
    let bytes: usize = frames.iter().map(Frame::size).sum();
    if bytes < LARGE {
        return Ok(None);
    }
    // Half of the limit is within everybody's share, so no message is too large to be sent at all.
    let budget = &app.response_memory;
    budget.take(holder.clone(), (2 * bytes as u64).min(budget.limit() / 2)).await.map(Some)
}
