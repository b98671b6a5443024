//! The main instance as the bridge sees it: functions to call, and the ways in which a call fails.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use banyan::model::{Error, ErrorCode};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::Instant;

/// What the functions of the store protocol begin with.
const STORE: &str = "session::store::";

/// A way to call the functions of a main instance. It never waits for ever: a call that takes too long has failed.
pub trait Main: Send + Sync {
    /// Calls a function with the text of a request. `within` is the time that is left for it, if there is a limit.
    fn call<'a>(
        &'a self,
        function_id: &'a str,
        body: String,
        within: Option<Duration>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, MainFailed>>;

    /// How long a call of the bridge may take, with all that it asks of the main and with waiting for earlier calls on the
    /// same session. `None` is as long as it takes.
    fn within(&self) -> Option<Duration> {
        None
    }
}

/// Why a call of the main instance failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MainFailed {
    /// There is no connection; what was wrong with it.
    #[error("the main instance cannot be reached: {0}")]
    Unreachable(String),
    /// The connection was lost before the answer came. What was asked for may have been done.
    #[error("the main instance was lost before it answered: {0}")]
    Lost(String),
    /// No answer came in time.
    #[error("the main instance did not answer within {} ms", after.as_millis())]
    Timeout {
        /// How long the call waited.
        after: Duration,
    },
    /// The call is larger than the bus carries; by how much.
    #[error("{0}")]
    TooLarge(String),
    /// The main instance has no such function.
    #[error("the main instance has no such function")]
    NoSuchFunction,
    /// The function said no.
    #[error("the main instance refused: {code}: {message}")]
    Refused {
        /// What programs match on.
        code: String,
        /// What people read; where the bus has a code of its own, the session's is in here.
        message: String,
    },
}

/// What is waited before something is tried again that may be possible by then.
const MOMENT: Duration = Duration::from_millis(100);

/// Calls of the main instance, with requests and answers of the right types.
#[derive(Clone)]
pub(super) struct Caller {
    main: Arc<dyn Main>,
    kind: Arc<Mutex<Kind>>,
    time: Time,
}

/// How long the main may take.
#[derive(Clone, Copy)]
enum Time {
    /// As long as a call may take, for each call.
    Each,
    /// Until then, for all calls together.
    Until(Instant),
}

/// What the main is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// That is not known, or not any more.
    Unknown,
    /// A Banyan.
    Banyan,
    /// Any other that serves the published protocol.
    Reference,
}

impl Caller {
    pub(super) fn new(main: Arc<dyn Main>) -> Self {
        Self { main, kind: Arc::new(Mutex::new(Kind::Unknown)), time: Time::Each }
    }

    /// A caller whose calls have the time of one call together, which begins now.
    pub(super) fn all_in_time(&self) -> Self {
        let time = self.main.within().map_or(Time::Each, |within| Time::Until(Instant::now() + within));
        Self { time, ..self.clone() }
    }

    /// A caller whose calls have the time of one call each: what has to be done in many steps is not left half done for
    /// being long.
    pub(super) fn each_in_time(&self) -> Self {
        Self { time: Time::Each, ..self.clone() }
    }

    /// Waits for something, no longer than there is time.
    pub(super) async fn in_time<T>(&self, something: impl Future<Output = T>) -> Result<T, MainFailed> {
        let Some(left) = self.left() else { return Ok(something.await) };
        tokio::time::timeout(left, something).await.map_err(|_| self.late(left))
    }

    /// Waits for a moment. False when there is no time for that.
    pub(super) async fn rest(&self) -> bool {
        let Time::Until(deadline) = self.time else { return false };
        let rested = Instant::now() + MOMENT;
        if rested >= deadline {
            return false;
        }
        tokio::time::sleep_until(rested).await;
        true
    }

    /// How much time is left.
    fn left(&self) -> Option<Duration> {
        match self.time {
            Time::Each => self.main.within(),
            Time::Until(deadline) => Some(deadline.saturating_duration_since(Instant::now())),
        }
    }

    /// The time is over. Callers know the whole of it.
    fn late(&self, waited: Duration) -> MainFailed {
        MainFailed::Timeout { after: self.main.within().unwrap_or(waited) }
    }

    pub(super) fn kind(&self) -> Kind {
        *self.kind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_kind(&self, kind: Kind) {
        *self.kind.lock().unwrap_or_else(PoisonError::into_inner) = kind;
    }

    /// Calls a function, and gives its answer as it came.
    pub(super) async fn text(
        &self,
        function_id: &str,
        request: &impl Serialize,
    ) -> Result<Box<RawValue>, MainFailed> {
        let body = serde_json::to_string(request).map_err(|error| MainFailed::Refused {
            code: ErrorCode::InvalidRequest.to_string(),
            message: format!("the request could not be written as JSON: {error}"),
        })?;
        let within = self.left();
        if within.is_some_and(|left| left.is_zero()) {
            return Err(self.late(Duration::ZERO));
        }
        let answer = self.main.call(function_id, body, within).await.map_err(|failed| match failed {
            MainFailed::Timeout { after } => self.late(after),
            failed => failed,
        });
        // It is gone, or another one took its place.
        if matches!(answer, Err(MainFailed::NoSuchFunction)) && function_id.starts_with(STORE) {
            self.set_kind(Kind::Unknown);
        }
        answer
    }

    /// Calls a function of the store protocol. Whatever goes wrong, the storage failed.
    pub(super) async fn store<A: DeserializeOwned>(
        &self,
        function_id: &str,
        request: &impl Serialize,
    ) -> Result<A, Error> {
        let answer = self.text(function_id, request).await.map_err(|failed| storage(function_id, &failed))?;
        read(function_id, &answer)
    }
}

/// Reads an answer.
pub(super) fn read<A: DeserializeOwned>(function_id: &str, answer: &RawValue) -> Result<A, Error> {
    serde_json::from_str(answer.get())
        .map_err(|error| Error::storage(format!("{function_id}: the main instance answered nonsense: {error}")))
}

/// A failed call as what its caller is told.
pub(super) fn storage(function_id: &str, failed: &MainFailed) -> Error {
    let text = format!("{function_id}: {failed}");
    let error = match failed {
        MainFailed::TooLarge(_) => Error::new(ErrorCode::TooLarge, text),
        _ => Error::storage(text),
    };
    match failed {
        MainFailed::Unreachable(_) | MainFailed::Lost(_) | MainFailed::Timeout { .. } => error.retryable(),
        MainFailed::TooLarge(_) | MainFailed::NoSuchFunction | MainFailed::Refused { .. } => error,
    }
}

/// A refusal of one of the main's own functions, which is the caller's answer as it would be here.
pub(super) fn refusal(function_id: &str, failed: MainFailed) -> Error {
    if let MainFailed::Refused { code, message } = &failed {
        let text = if known(code).is_some() { format!("{code}: {message}") } else { message.clone() };
        let found = ErrorCode::ALL.into_iter().find_map(|code| {
            let (_, message) = text.split_once(&format!("{code}: "))?;
            Some(Error::new(code, message.strip_prefix(&format!("{code}: ")).unwrap_or(message)))
        });
        if let Some(error) = found {
            return error;
        }
    }
    storage(function_id, &failed)
}

fn known(code: &str) -> Option<ErrorCode> {
    ErrorCode::ALL.into_iter().find(|known| known.as_str() == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str, message: &str) -> Error {
        let failed = MainFailed::Refused { code: code.into(), message: message.into() };
        refusal("session::messages", failed)
    }

    #[test]
    fn a_refusal_keeps_its_code_wherever_the_bus_put_it() {
        let plain = Error::new(ErrorCode::NotFound, "no such session");
        assert_eq!(refused("session/not_found", "no such session"), plain);
        assert_eq!(refused("session/not_found", "session/not_found: no such session"), plain);
        assert_eq!(refused("invocation_failed", "handler error: session/not_found: no such session"), plain);
        assert_eq!(
            refused("invocation_failed", "serialization error: what"),
            Error::storage(
                "session::messages: the main instance refused: invocation_failed: serialization error: what"
            )
        );
    }

    #[test]
    fn what_a_retry_can_cure_says_so() {
        assert!(storage("f", &MainFailed::Unreachable("gone".into())).retryable);
        assert!(storage("f", &MainFailed::Timeout { after: Duration::from_millis(7) }).retryable);
        assert!(!storage("f", &MainFailed::NoSuchFunction).retryable);
    }
}
