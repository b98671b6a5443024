//! One connection, and the loop that makes the next one.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use banyan::model::{Error, ErrorCode};
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::{self, Message as Frame};
use uuid::Uuid;

use super::{Call, CallFailed, Engine, MOST_SENT, Service, Standing, text};
use crate::wire::{ErrorBody, InvokeFunction, Message};

/// One connection to an engine.
pub struct Connection {
    name: String,
    out: mpsc::Sender<Frame>,
    /// Calls of others' functions. Answers to those who call this worker go out before them.
    calls: mpsc::Sender<Frame>,
    waiting: Mutex<HashMap<Uuid, oneshot::Sender<Reply>>>,
    /// Ids of calls are this and a number that counts up.
    stem: u64,
    next: AtomicU64,
    over: AtomicBool,
    /// How many calls of others are being answered.
    answering: watch::Sender<usize>,
}

type Reply = Result<Box<RawValue>, CallFailed>;

/// A call under way. Dropping it forgets about the answer.
pub struct Invocation {
    id: Uuid,
    reply: oneshot::Receiver<Reply>,
    connection: Arc<Connection>,
}

/// How many frames may wait to be written before whoever has another one waits too.
const OUTBOX: usize = 256;
/// The same for calls, and how many of them go out before it is looked whether there is an answer.
const CALLS: usize = 64;
const AT_ONCE: usize = 8;
/// How often the engine is asked whether it is there, and how long it may say nothing.
const PING_EVERY: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_secs(20);
/// So many times in a row the engine may say no.
const REJECTIONS: usize = 10;
/// How long calls under way may take to be answered when the worker stops, and how long it may take to say so.
const LAST_CALLS: Duration = Duration::from_secs(1);
const FAREWELL: Duration = Duration::from_secs(1);
/// How long connecting may take, and how long until it is tried again.
const DIALLING: Duration = Duration::from_secs(10);
const PAUSES: [u64; 5] = [50, 100, 250, 500, 1000];

/// Connects for as long as nobody says stop.
pub(super) async fn keep(
    engine: Engine,
    service: Arc<dyn Service>,
    standing: watch::Sender<Standing>,
    mut stop: watch::Receiver<bool>,
) {
    let mut failures = 0;
    let mut rejections = 0;
    let mut before = None;
    while !*stop.borrow() {
        let dialled = tokio::select! {
            dialled = tokio::time::timeout(DIALLING, engine.dial()) => dialled,
            () = told(&mut stop) => break,
        };
        match dialled {
            Ok(Ok(socket)) => {
                tracing::info!(engine = %engine, "connected to the engine");
                failures = 0;
                let ended = converse(&engine, socket, &service, &standing, &mut stop, &mut before).await;
                rejections = if matches!(ended, Ended::Rejected(_)) { rejections + 1 } else { 0 };
                let over = rejections == REJECTIONS;
                match ended {
                    Ended::Rejected(why) if over => {
                        standing.send_replace(Standing::Rejected(why));
                    }
                    Ended::Rejected(why) => {
                        // The other one may be this worker as it was before, and not be missed yet.
                        tracing::warn!(engine = %engine, %why, "the engine does not take this worker; trying again");
                        failures = PAUSES.len();
                    }
                    Ended::Lost(why) => {
                        tracing::warn!(engine = %engine, %why, "the connection to the engine is lost");
                    }
                    Ended::Stopped => {}
                }
                Arc::clone(&service).lost();
                if over {
                    return;
                }
            }
            Ok(Err(error)) if failures == 0 => {
                tracing::warn!(engine = %engine, %error, "the engine cannot be reached; trying again until it can");
            }
            Ok(Err(error)) => tracing::debug!(engine = %engine, %error, "the engine still cannot be reached"),
            Err(_) => tracing::warn!(engine = %engine, "the engine does not answer; trying again"),
        }
        let pause = Duration::from_millis(PAUSES[failures.min(PAUSES.len() - 1)]);
        failures += 1;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = told(&mut stop) => {}
        }
    }
}

/// Waits until somebody says stop.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// How a connection ended.
enum Ended {
    Stopped,
    Lost(String),
    Rejected(String),
}

/// What is taken of what the engine says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Calls,
    /// The worker stops: no call is begun that it may not get to answer.
    AnswersOnly,
}

/// What the engine called this worker, so that it can end what is left of that connection.
struct Before {
    worker_id: String,
    token: Option<String>,
}

async fn converse<S>(
    engine: &Engine,
    socket: S,
    service: &Arc<dyn Service>,
    standing: &watch::Sender<Standing>,
    stop: &mut watch::Receiver<bool>,
    before: &mut Option<Before>,
) -> Ended
where
    S: Stream<Item = Result<Frame, tungstenite::Error>> + Sink<Frame, Error = tungstenite::Error>,
    S: Send + Unpin + 'static,
{
    let (sink, mut source) = socket.split();
    let (out, outbox) = mpsc::channel(OUTBOX);
    let (calls, called) = mpsc::channel(CALLS);
    let mut writing = tokio::spawn(write(sink, outbox, called));
    let connection = Arc::new(Connection {
        name: engine.to_string(),
        out,
        calls,
        waiting: Mutex::default(),
        stem: Uuid::new_v4().as_u64_pair().0,
        next: AtomicU64::new(0),
        over: AtomicBool::new(false),
        answering: watch::Sender::new(0),
    });
    let introduced = tokio::spawn(introduce(Arc::clone(&connection), Arc::clone(service), before.take()));
    let mut heard = Instant::now();
    let mut ping = tokio::time::interval(PING_EVERY);
    let mut introduced = Some(introduced);
    let mut last_calls = None;
    let ended = loop {
        tokio::select! {
            frame = source.next() => {
                heard = Instant::now();
                let text = match frame {
                    Some(Ok(Frame::Text(text))) => text,
                    Some(Ok(Frame::Close(_))) | None => break Ended::Lost("the engine closed it".to_owned()),
                    Some(Ok(_)) => continue,
                    Some(Err(error)) => break Ended::Lost(error.to_string()),
                };
                let takes = if last_calls.is_none() { Takes::Calls } else { Takes::AnswersOnly };
                if let Some(why) = connection.hear(text.as_str(), service, before, takes) {
                    break Ended::Rejected(why);
                }
            }
            // Whoever hears that the connection stands may count on everything being offered.
            done = async { match &mut introduced { Some(task) => task.await, None => std::future::pending().await } } => {
                introduced = None;
                if !matches!(done, Ok(true)) {
                    break Ended::Lost("the engine closed it".to_owned());
                }
                standing.send_replace(Standing::Connected(Arc::clone(&connection)));
                Arc::clone(service).connected(&connection);
            }
            _ = ping.tick() => {
                if heard.elapsed() > SILENCE {
                    break Ended::Lost("the engine says nothing any more".to_owned());
                }
                // A full outbox says that much is under way, which is as good as a ping.
                let _ = connection.out.try_send(Frame::Ping(Vec::new().into()));
            }
            written = &mut writing => {
                break Ended::Lost(written.map_or_else(|error| error.to_string(), |error| error.to_string()));
            }
            () = told(stop), if last_calls.is_none() => last_calls = Some(Instant::now() + LAST_CALLS),
            () = connection.answered(last_calls) => {
                let goodbye = async {
                    let _ = connection.out.send(Frame::Close(None)).await;
                    let _ = (&mut writing).await;
                };
                let _ = tokio::time::timeout(FAREWELL, goodbye).await;
                break Ended::Stopped;
            }
        }
    };
    writing.abort();
    // Whoever calls again because its call failed waits for the next connection.
    standing.send_replace(Standing::Away);
    connection.fail_all();
    ended
}

/// Writes what is to be said; whatever waits goes out together, and calls a few at a time.
async fn write<S>(
    mut sink: S,
    mut outbox: mpsc::Receiver<Frame>,
    mut calls: mpsc::Receiver<Frame>,
) -> tungstenite::Error
where
    S: Sink<Frame, Error = tungstenite::Error> + Unpin,
{
    let mut frames = Vec::with_capacity(OUTBOX);
    loop {
        let first = tokio::select! {
            biased;
            said = outbox.recv_many(&mut frames, OUTBOX) => (said > 0).then_some(None),
            call = calls.recv() => call.map(Some),
        };
        let Some(first) = first else { return tungstenite::Error::ConnectionClosed };
        frames.extend(first);
        let more = std::iter::from_fn(|| calls.try_recv().ok());
        frames.extend(more.take(AT_ONCE));
        let mut last = false;
        for frame in frames.drain(..) {
            last |= frame.is_close();
            if let Err(error) = sink.feed(frame).await {
                return error;
            }
        }
        if let Err(error) = sink.flush().await {
            return error;
        }
        if last {
            return tungstenite::Error::ConnectionClosed;
        }
    }
}

/// Says who this is and what it offers.
async fn introduce(connection: Arc<Connection>, service: Arc<dyn Service>, before: Option<Before>) -> bool {
    if let Some(Before { worker_id, token }) = before {
        let again =
            Message::Reattach { previous_worker_id: worker_id.into(), reattach_token: token.map(Into::into) };
        if !connection.say(again.write()).await {
            return false;
        }
    }
    let register = format!(
        r#"{{"type":"invokefunction","invocation_id":null,"function_id":"engine::workers::register","action":{{"type":"void"}},"data":{}}}"#,
        service.identity()
    );
    if !connection.say(register).await {
        return false;
    }
    for offer in service.offers() {
        if !connection.say(offer).await {
            return false;
        }
    }
    true
}

impl Connection {
    /// Sends a frame. False when the connection is lost.
    pub async fn say(&self, text: String) -> bool {
        self.out.send(Frame::Text(text.into())).await.is_ok()
    }

    /// Calls a function of whoever has it, with JSON, and waits for the answer.
    pub async fn call(self: &Arc<Self>, function_id: &str, data: &str) -> Reply {
        self.invoke(function_id, data, None, None).await?.await
    }

    /// Begins a call; the answer can be waited for.
    pub async fn invoke(
        self: &Arc<Self>,
        function_id: &str,
        data: &str,
        metadata: Option<&str>,
        namespace: Option<&str>,
    ) -> Result<Invocation, CallFailed> {
        let id = Uuid::from_u64_pair(self.stem, self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, reply) = oneshot::channel();
        self.waiting().insert(id, sender);
        let invocation = Invocation { id, reply, connection: Arc::clone(self) };
        let frame = text::invoke(&id.to_string(), function_id, data, metadata, namespace);
        // The engine would end the connection, for everyone who calls this worker.
        if frame.len() > MOST_SENT {
            return Err(CallFailed::TooLarge { bytes: frame.len() });
        }
        // A connection that ended has failed the calls of before; this one would wait for ever.
        let said = self.calls.send(Frame::Text(frame.into())).await.is_ok() && !self.over.load(Ordering::Acquire);
        if said { Ok(invocation) } else { Err(self.lost()) }
    }

    fn lost(&self) -> CallFailed {
        CallFailed::Lost(self.name.clone())
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<Uuid, oneshot::Sender<Reply>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody will answer any more.
    fn fail_all(&self) {
        self.over.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut *self.waiting());
        for (_, sender) in waiting {
            let _ = sender.send(Err(self.lost()));
        }
    }

    /// Takes in a frame. Says why the engine does not want this worker, if that is what it is about.
    fn hear(
        self: &Arc<Self>,
        text: &str,
        service: &Arc<dyn Service>,
        before: &mut Option<Before>,
        takes: Takes,
    ) -> Option<String> {
        let message = match Message::read(text) {
            Ok(Some(message)) => message,
            Ok(None) => return None,
            Err(error) => {
                tracing::warn!(%error, "the engine said something that is not understood");
                return None;
            }
        };
        match message {
            Message::InvokeFunction(call) if takes == Takes::Calls => self.answer(call, service),
            Message::InvocationResult(result) => {
                let id = Uuid::parse_str(&result.invocation_id).ok();
                if let Some(sender) = id.and_then(|id| self.waiting().remove(&id)) {
                    let _ = sender.send(match result.error {
                        Some(error) => Err(CallFailed::Refused(owned(error))),
                        None => Ok(result.result.map_or_else(|| RawValue::NULL.to_owned(), |it| it.into_owned())),
                    });
                }
            }
            Message::RegisterTrigger(binding) => {
                let (id, trigger_type) =
                    (binding.id.clone().into_owned(), binding.trigger_type.clone().into_owned());
                let function_id = binding.function_id.clone().into_owned();
                let error = Arc::clone(service).bind(self, binding).err();
                self.say_later(
                    Message::TriggerRegistrationResult {
                        id: id.into(),
                        trigger_type: trigger_type.into(),
                        function_id: function_id.into(),
                        error,
                    }
                    .write(),
                );
            }
            Message::UnregisterTrigger { id, .. } => Arc::clone(service).unbind(&id),
            Message::Ping => self.say_later(Message::Pong.write()),
            Message::WorkerRegistered { worker_id, reattach_token } => {
                *before = Some(Before {
                    worker_id: worker_id.into_owned(),
                    token: reattach_token.map(|token| token.into_owned()),
                });
            }
            Message::RegistrationRejected { code, worker_name, function_id, owner_worker_id, .. } => {
                let what = function_id.or(worker_name).unwrap_or_default();
                if code != "FUNCTION_NAMESPACE_CONFLICT" {
                    return Some(format!(
                        "another worker ({owner_worker_id}) is `{what}` there already ({code}). Stop that one first, \
                         or give this one a namespace of its own (III_NAMESPACE)"
                    ));
                }
                tracing::error!(function = %what, owner = %owner_worker_id, "another worker has this function already");
            }
            Message::TriggerRegistrationResult { trigger_type, error: Some(error), .. } => {
                tracing::warn!(%trigger_type, code = %error.code, message = %error.message, "a binding was refused");
            }
            _ => {}
        }
        None
    }

    fn answer(self: &Arc<Self>, call: InvokeFunction<'_>, service: &Arc<dyn Service>) {
        let (connection, service) = (Arc::clone(self), Arc::clone(service));
        let invocation = call.invocation_id.map(|id| id.into_owned());
        let function_id = call.function_id.into_owned();
        let data = call.data.get().to_owned();
        let answering = Answering::begin(self);
        tokio::spawn(async move {
            let _answering = answering;
            let answered = service.call(Call { function_id: function_id.clone(), data }).await;
            let Some(id) = invocation else { return };
            let frame = match answered {
                Ok(result) => match text::answer(&id, &function_id, &result) {
                    frame if frame.len() > MOST_SENT => {
                        text::refusal(&id, &function_id, too_large(&function_id, frame.len()))
                    }
                    frame => frame,
                },
                Err(error) => text::refusal(&id, &function_id, error),
            };
            connection.say(frame).await;
        });
    }

    /// Waits until every call that was taken is answered, or it is late. Without such a time, it is not waited for at all.
    async fn answered(&self, late: Option<Instant>) {
        let Some(late) = late else { return std::future::pending().await };
        let mut answering = self.answering.subscribe();
        let _ = tokio::time::timeout_at(late, answering.wait_for(|answering| *answering == 0)).await;
    }

    /// Sends a frame without keeping the reader from reading on.
    fn say_later(self: &Arc<Self>, text: String) {
        let Err(mpsc::error::TrySendError::Full(frame)) = self.out.try_send(Frame::Text(text.into())) else {
            return;
        };
        let out = self.out.clone();
        tokio::spawn(async move { out.send(frame).await });
    }
}

/// A call of somebody's that is being answered.
struct Answering(Arc<Connection>);

impl Answering {
    fn begin(connection: &Arc<Connection>) -> Self {
        connection.answering.send_modify(|answering| *answering += 1);
        Self(Arc::clone(connection))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answering.send_modify(|answering| *answering -= 1);
    }
}

/// What a caller is told whose answer would end the connection.
fn too_large(function_id: &str, bytes: usize) -> ErrorBody<'static> {
    let error = Error::new(
        ErrorCode::TooLarge,
        format!(
            "the answer of {function_id} has {bytes} bytes, and the bus carries {MOST_SENT} at most; ask for a smaller page"
        ),
    );
    ErrorBody { code: error.code.as_str().into(), message: error.to_string().into(), stacktrace: None }
}

fn owned(error: ErrorBody<'_>) -> ErrorBody<'static> {
    ErrorBody {
        code: error.code.into_owned().into(),
        message: error.message.into_owned().into(),
        stacktrace: error.stacktrace.map(|it| it.into_owned().into()),
    }
}

impl Future for Invocation {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        Pin::new(&mut self.reply).poll(cx).map(|reply| reply.unwrap_or_else(|_| Err(self.connection.lost())))
    }
}

impl Drop for Invocation {
    fn drop(&mut self) {
        self.connection.waiting().remove(&self.id);
    }
}
