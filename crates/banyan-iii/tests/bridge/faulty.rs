//! A way to a main that fails where a test says so.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use banyan_iii::bridge::{Main, MainFailed};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

/// How a call goes wrong.
pub enum Fault {
    /// The main never gets it.
    Unreachable,
    /// The connection is lost before the main gets it.
    LostCall,
    /// The main does it, and the answer is lost with the connection.
    LostAnswer,
    /// The main does it, and the answer comes too late.
    Late,
    /// The answer is this.
    Answer(&'static str),
    /// The main says no.
    Refused,
    /// The main has no such function at that moment.
    Missing,
    /// Somebody else does something first.
    First(Arc<dyn Fn() + Send + Sync>),
}

/// See the module. Faults of a function are used up one by one, in order.
pub struct Faulty<M> {
    pub main: M,
    faults: Mutex<VecDeque<(&'static str, Fault)>>,
}

impl<M: Main> Faulty<M> {
    pub fn new(main: M) -> Self {
        Self { main, faults: Mutex::default() }
    }

    /// The next call of a function goes wrong.
    pub fn fail(&self, function: &'static str, fault: Fault) {
        self.faults.lock().unwrap().push_back((function, fault));
    }

    fn next(&self, function_id: &str) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap();
        let at = faults.iter().position(|(function, _)| function_id.ends_with(function))?;
        faults.remove(at).map(|(_, fault)| fault)
    }
}

impl<M: Main> Main for Faulty<M> {
    fn call<'a>(
        &'a self,
        function_id: &'a str,
        body: String,
        within: Option<Duration>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, MainFailed>> {
        Box::pin(async move {
            let lost = || MainFailed::Lost("the connection was lost".into());
            match self.next(function_id) {
                None => self.main.call(function_id, body, within).await,
                Some(Fault::Unreachable) => Err(MainFailed::Unreachable("nobody is there".into())),
                Some(Fault::LostCall) => Err(lost()),
                Some(Fault::LostAnswer) => {
                    self.main.call(function_id, body, within).await?;
                    Err(lost())
                }
                Some(Fault::Late) => {
                    self.main.call(function_id, body, within).await?;
                    Err(MainFailed::Timeout { after: Duration::from_millis(5000) })
                }
                Some(Fault::Answer(text)) => Ok(RawValue::from_string(text.to_owned()).unwrap()),
                Some(Fault::Refused) => Err(MainFailed::Refused {
                    code: "invocation_failed".into(),
                    message: "handler error: session/storage: the disk is full".into(),
                }),
                Some(Fault::Missing) => Err(MainFailed::NoSuchFunction),
                Some(Fault::First(something)) => {
                    something();
                    self.main.call(function_id, body, within).await
                }
            }
        })
    }
}
