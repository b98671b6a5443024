//! The back end that stores through a main instance.
//!
//! The rules are here, and the same as anywhere: what a call needs of its session is fetched, the decision is made on
//! that, and what was decided is stored by the main. With a Banyan at the other end that is one look and one commit, which
//! succeeds only if nobody changed the session in between. Any other main serves session-manager's published store
//! protocol, in which things are put one after another and the last one wins.

mod banyan_main;
mod locks;
mod main_instance;
mod mutations;
mod order;
mod reads;
mod recent;
mod reference_main;
mod seen;

use std::sync::{Arc, PoisonError, RwLock};

use banyan::model::store::{LookRequest, SessionIdRequest};
use banyan::model::{AttachmentId, EntryId, Error, SessionId, read_request};
use banyan::rules::Limits;
use banyan::rules::decide::Ctx;
use banyan::rules::record::Record;
use banyan::{CallError, FreshIds};
use serde::Serialize;
use serde::de::DeserializeOwned;

use banyan_main::{BanyanMain, Committed};
use locks::{Lock, Locks};
use main_instance::{Caller, Kind, read, refusal, storage};
use recent::Recent;
use reference_main::ReferenceMain;
use seen::{Place, Seen};

pub use main_instance::{Main, MainFailed};
pub(crate) use order::parents_first;

/// Serves every function of [`banyan::functions`] on what a main instance keeps.
pub struct Bridge {
    main: Caller,
    limits: RwLock<Limits>,
    locks: Locks,
    recent: Recent,
}

/// A call that is served.
struct Serving<'a> {
    bridge: &'a Bridge,
    /// The main, which has until the call's time is over.
    main: Caller,
}

/// So often a call is decided here. When somebody else changed its session each time, the main decides.
const ATTEMPTS: usize = 8;

/// The function that only a Banyan has, and one that every main has.
const LOOK: &str = "session::store::look";
const GET_META: &str = "session::store::get-meta";

/// What a decision needs to know of a session.
#[derive(Clone, Debug)]
struct Ask {
    session_id: SessionId,
    /// Entries that are named.
    entries: Vec<EntryId>,
    /// The entry whose message is changed.
    message: Option<EntryId>,
    /// Whether the active leaf matters.
    leaf: Leaf,
    /// The entry to fork at.
    fork_at: Option<EntryId>,
    /// The attachment to delete.
    attachment_id: Option<AttachmentId>,
}

/// Whether the active leaf matters to a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaf {
    Wanted,
    Unwanted,
}

/// What was decided.
enum Change {
    /// Records, and what attachments among them contain.
    Records(Vec<Record>, Vec<String>),
    /// A fork begins with these.
    Fork(SessionId, Vec<Record>),
    /// The session ends.
    Delete,
}

enum MainKind {
    Banyan(BanyanMain),
    Reference(ReferenceMain),
}

impl Ask {
    fn of(session_id: &SessionId) -> Self {
        Self {
            session_id: session_id.clone(),
            entries: Vec::new(),
            message: None,
            leaf: Leaf::Unwanted,
            fork_at: None,
            attachment_id: None,
        }
    }
}

impl Bridge {
    /// A bridge to a main instance. Nothing is asked of it before the first call.
    pub fn new(main: Arc<dyn Main>, limits: Limits) -> Self {
        Self {
            main: Caller::new(main),
            limits: RwLock::new(limits),
            locks: Locks::default(),
            recent: Recent::default(),
        }
    }

    /// How much one call may ask for from now on.
    pub fn set_limits(&self, limits: Limits) {
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Says that the connection was made anew, so that another kind of main may be at its other end.
    pub fn reconnected(&self) {
        self.main.set_kind(Kind::Unknown);
        self.recent.forget();
    }

    /// Calls a function by its id. An empty body is `{}`.
    pub async fn call(&self, function_id: &str, body: &[u8]) -> Result<String, CallError> {
        if !banyan::functions().iter().any(|function| function.id == function_id) {
            return Err(banyan::unknown_function(function_id));
        }
        let serving = Serving { bridge: self, main: self.main.all_in_time() };
        serving.serve(function_id, body).await.map_err(CallError::Refused)
    }
}

impl Serving<'_> {
    fn limits(&self) -> Limits {
        *self.bridge.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(&self, function_id: &str, body: &[u8]) -> Result<String, Error> {
        match function_id {
            "session::create" => answer(&self.create(read_request(body)?).await?),
            "session::ensure" => answer(&self.ensure(read_request(body)?).await?),
            "session::set-meta" => answer(&self.set_meta(read_request(body)?).await?),
            "session::set-status" => answer(&self.set_status(read_request(body)?).await?),
            "session::delete" => answer(&self.delete(read_request(body)?).await?),
            "session::append" => answer(&self.append(read_request(body)?).await?),
            "session::append-many" => answer(&self.append_many(read_request(body)?).await?),
            "session::update-message" => answer(&self.update_message(read_request(body)?).await?),
            "session::extend-message" => answer(&self.extend_message(read_request(body)?).await?),
            "session::fork" => answer(&self.fork(read_request(body)?).await?),
            "session::set-active-leaf" => answer(&self.set_active_leaf(read_request(body)?).await?),
            "session::put-attachment" => answer(&self.put_attachment(read_request(body)?).await?),
            "session::delete-attachment" => answer(&self.delete_attachment(read_request(body)?).await?),
            _ => self.read(function_id, body).await,
        }
    }

    /// Looks, decides and commits, again when somebody else came in between. Who always comes too late would never be
    /// done, so in the end the main is asked to do it, by the same rules, while nobody else can.
    async fn mutate<R: DeserializeOwned>(
        &self,
        (function_id, request): (&str, &impl Serialize),
        ask: Ask,
        decide: impl Fn(&Seen, &mut Ctx<'_>) -> Result<(Option<Change>, R), Error>,
    ) -> Result<R, Error> {
        let _lock = self.lock(function_id, &ask.session_id).await?;
        let main = self.main().await?;
        let mut known = self.bridge.recent.take(&ask);
        for _ in 0..ATTEMPTS {
            let is_known = known.is_some();
            let mut seen = match (known.take(), &main) {
                (Some(seen), _) => seen,
                (None, MainKind::Banyan(main)) => main.look(&ask).await?,
                (None, MainKind::Reference(main)) => main.look(&ask).await?,
            };
            let time_ms = seen.now_ms();
            let decided = {
                let mut ctx = Ctx { now_ms: time_ms, ids: &mut FreshIds, limits: self.limits() };
                decide(&seen, &mut ctx)
            };
            let (change, response) = match decided {
                // What was seen a while ago is only good for what is then committed, which tells whether it still holds.
                Err(_) | Ok((None, _)) if is_known => continue,
                Err(error) => return Err(error),
                Ok((None, response)) => return Ok(response),
                Ok((Some(change), response)) => (change, response),
            };
            match &main {
                MainKind::Banyan(main) => match main.commit(&seen, &change, time_ms).await? {
                    Committed::As(version) => {
                        if let (Some(version), Change::Records(records, _)) = (version, &change) {
                            seen.take_in(records, time_ms, Place::Banyan(version));
                            self.bridge.recent.keep(seen);
                        }
                    }
                    Committed::Not => continue,
                },
                MainKind::Reference(main) => main.commit(&seen, change, time_ms).await?,
            }
            return Ok(response);
        }
        match self.main.text(function_id, request).await {
            Ok(answer) => read(function_id, &answer),
            Err(MainFailed::NoSuchFunction) => Err(Error::conflict(format!(
                "session `{}` was changed by others {ATTEMPTS} times while this call was decided; call again",
                ask.session_id
            ))
            .retryable()),
            Err(failed) => Err(refusal(function_id, failed)),
        }
    }

    /// Waits for earlier calls on a session.
    async fn lock(&self, function_id: &str, session_id: &SessionId) -> Result<Lock<'_>, Error> {
        let taken = self.main.in_time(self.bridge.locks.take(session_id)).await;
        taken.map_err(|failed| storage(function_id, &failed))
    }

    /// What the main is. It is asked once, until it lacks a function that it had.
    async fn main(&self) -> Result<MainKind, Error> {
        let mut kind = self.main.kind();
        if kind == Kind::Unknown {
            kind = self.find_out().await?;
            self.bridge.recent.forget();
            self.main.set_kind(kind);
        }
        let main = self.main.clone();
        Ok(match kind {
            Kind::Banyan => MainKind::Banyan(BanyanMain(main)),
            Kind::Unknown | Kind::Reference => MainKind::Reference(ReferenceMain(main)),
        })
    }

    /// Asks what the main is. While its worker has not joined its bus, every function is missing there, and that says nothing.
    async fn find_out(&self) -> Result<Kind, Error> {
        if self.looks().await? {
            return Ok(Kind::Banyan);
        }
        let anybody = SessionIdRequest { session_id: SessionId::from("nobody") };
        match self.main.text(GET_META, &anybody).await {
            Ok(_) => {}
            Err(failed @ MainFailed::NoSuchFunction) => {
                let error = storage(GET_META, &failed);
                return Err(Error::storage(format!("{}; it may still be starting", error.message)).retryable());
            }
            Err(failed) => return Err(storage(GET_META, &failed)),
        }
        // A Banyan offers the one before the other, so by now it would have both.
        Ok(if self.looks().await? { Kind::Banyan } else { Kind::Reference })
    }

    /// Whether the main has the function that only a Banyan has.
    async fn looks(&self) -> Result<bool, Error> {
        let request = LookRequest {
            session_id: SessionId::from(""),
            entries: Vec::new(),
            message: None,
            fork_at: None,
            attachment_id: None,
        };
        match self.main.text(LOOK, &request).await {
            Ok(_) => Ok(true),
            Err(MainFailed::NoSuchFunction) => Ok(false),
            Err(failed) => Err(storage(LOOK, &failed)),
        }
    }
}

fn answer(response: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(response)
        .map_err(|error| Error::storage(format!("the answer could not be written as JSON: {error}")))
}
