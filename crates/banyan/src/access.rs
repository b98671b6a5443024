//! Who may see and change what. The boundary is in the handle, so that whoever serves many tenants cannot forget it.
//!
//! A session out of a handle's scope is to it like one that does not exist. There are two ways to a session's state, and
//! both ask here: `Store::look` for reading and `Store::find` for writing. First the catalogue is asked, so that a
//! session out of scope costs what a missing one does: neither is loaded, and nobody waits for its writer. Then the
//! state itself decides, under its lock, because the id may have become another's meanwhile.

use std::sync::{Arc, LazyLock};

use banyan_core::filter;
use banyan_core::record::Record;
use banyan_core::state::{SessionState, Source};
use banyan_formats::history::{hides_something, public_origin};
use banyan_index::Listing;
use banyan_model::{
    Error, Event, EventFilter, EventPayload, MessageAddedEvent, MessageUpdatedEvent, Object, SessionId,
};

use crate::Banyan;
use crate::bodies::{Fetched, Wanted};
use crate::store::Store;

/// Who may see and change what. The default may do everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Access {
    /// Which sessions there are.
    pub scope: Scope,
    /// Whether all that changes something is refused.
    pub read_only: bool,
}

/// Which sessions a handle reaches: those whose metadata has every pair of the scope, with an equal value. Without
/// pairs it is all sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    pairs: Object,
    /// A key that was given two values by narrowing. No session has both, so none is in scope.
    disputed: Option<String>,
}

impl Banyan {
    /// A handle on the same store that may do less. Narrowing a narrowed handle keeps both: it never gets wider.
    ///
    /// Sessions out of scope are to it like sessions that do not exist, in every function and subscription. Sessions that
    /// it starts get the pairs of its scope, and keep them whatever metadata it sets. What is about the store as a whole
    /// ([`Banyan::close`], [`Banyan::flush`], [`Banyan::head`], [`Banyan::poisoned`]) is the same on every handle.
    #[must_use]
    pub fn with_access(&self, access: Access) -> Self {
        Self { store: Arc::clone(&self.store), access: Arc::new(self.access.and(&access)) }
    }

    /// What this handle may do.
    pub fn access(&self) -> &Access {
        &self.access
    }
}

impl Access {
    /// What the store itself works with.
    pub(crate) fn whole() -> &'static Arc<Self> {
        static WHOLE: LazyLock<Arc<Access>> = LazyLock::new(Arc::default);
        &WHOLE
    }

    fn and(&self, other: &Self) -> Self {
        Self { scope: self.scope.and(&other.scope), read_only: self.read_only || other.read_only }
    }

    /// Refuses when this may only read.
    pub(crate) fn must_write(&self) -> Result<(), Error> {
        if self.read_only {
            return Err(Error::forbidden("this access is read-only; use one that may write"));
        }
        Ok(())
    }

    /// Refuses unless this may do everything.
    pub(crate) fn must_do_everything(&self) -> Result<(), Error> {
        if self.read_only || !self.scope.is_everything() {
            return Err(Error::forbidden("only an access to everything may store for other instances"));
        }
        Ok(())
    }

    /// Whether this sees what entries keep for those who run the store: technical details of histories.
    pub(crate) fn sees_hidden(&self) -> bool {
        self.scope.is_everything() && !self.read_only
    }

    /// An event as this may see it.
    pub(crate) fn shown(&self, event: Arc<Event>) -> Arc<Event> {
        if self.sees_hidden() {
            return event;
        }
        let (EventPayload::MessageAdded(MessageAddedEvent { origin: Some(origin), .. })
        | EventPayload::MessageUpdated(MessageUpdatedEvent { origin: Some(origin), .. })) = &event.payload
        else {
            return event;
        };
        let public = public_origin(origin.clone());
        if public == *origin {
            return event;
        }
        let mut payload = event.payload.clone();
        if let EventPayload::MessageAdded(MessageAddedEvent { origin, .. })
        | EventPayload::MessageUpdated(MessageUpdatedEvent { origin, .. }) = &mut payload
        {
            *origin = Some(public);
        }
        let mut shown = Event::new(event.position, payload, event.role, event.metadata.clone());
        shown.added.clone_from(&event.added);
        Arc::new(shown)
    }

    /// Whether a session is in scope.
    pub(crate) fn covers(&self, state: &SessionState) -> bool {
        self.scope.covers(state.metadata().map(Arc::as_ref))
    }

    /// Refuses records that would leave a session out of scope.
    pub(crate) fn must_cover(&self, records: &[Record]) -> Result<(), Error> {
        let out_of_scope = records.iter().any(|record| match record {
            Record::Created(created) => !self.scope.covers(created.metadata.as_ref()),
            Record::MetaSet(set) => set.metadata.is_some() && !self.scope.covers(set.metadata.as_ref()),
            Record::MetaPut(put) => !self.scope.covers(put.meta.metadata.as_ref()),
            _ => false,
        });
        if out_of_scope { Err(Error::forbidden("this would leave the session out of reach")) } else { Ok(()) }
    }
}

impl Scope {
    /// All sessions whose metadata has every one of these pairs.
    pub fn of(pairs: Object) -> Self {
        Self { pairs, disputed: None }
    }

    /// The pairs that a session must have.
    pub fn pairs(&self) -> &Object {
        &self.pairs
    }

    /// True when every session is in scope.
    pub fn is_everything(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The sessions that are in both scopes.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.disputed = self.disputed.clone().or_else(|| other.disputed.clone());
        if let Some(key) = add(&other.pairs, &mut both.pairs) {
            both.disputed.get_or_insert(key);
        }
        both
    }

    /// Whether a session with this metadata is in scope.
    pub fn covers(&self, metadata: Option<&Object>) -> bool {
        self.disputed.is_none() && filter::metadata_matches(&self.pairs, metadata)
    }

    /// The metadata that a caller wants for a session, with the scope's pairs put in. Refused when it contradicts them.
    pub(crate) fn put_into(&self, metadata: Option<Object>) -> Result<Option<Object>, Error> {
        self.join(metadata).map_err(|key| match (&self.disputed, self.pairs.get(&key)) {
            (None, Some(value)) => Error::forbidden(format!(
                "`metadata` must have {value} as `{key}` with this access; leave `{key}` out, or give it that value"
            )),
            _ => Error::forbidden(format!(
                "this access asks for two different values of `{key}` in `metadata`, so it reaches no session; use another one"
            )),
        })
    }

    /// The metadata of a session that comes from elsewhere, with the scope's pairs in place of its own. The keys that had another
    /// value, which the session had where it came from.
    pub(crate) fn impose(&self, metadata: Option<Object>) -> Result<(Option<Object>, Vec<String>), Error> {
        let mut metadata = metadata;
        let mut replaced = Vec::new();
        if let (Some(metadata), None) = (&mut metadata, &self.disputed) {
            for (key, value) in &self.pairs {
                if metadata.get(key).is_some_and(|there| there != value) {
                    metadata.shift_remove(key);
                    replaced.push(key.clone());
                }
            }
        }
        Ok((self.put_into(metadata)?, replaced))
    }

    /// What a filter on metadata asks for within the scope. `None` when nothing can match it.
    pub(crate) fn within(&self, wanted: Option<Object>) -> Option<Option<Object>> {
        self.join(wanted).ok()
    }

    /// The filters of a subscription within the scope, without those that nothing can match.
    pub(crate) fn filters(&self, filters: Vec<EventFilter>) -> Vec<EventFilter> {
        if self.is_everything() {
            return filters;
        }
        let within = |filter: EventFilter| {
            let metadata = self.within(filter.metadata)?;
            Some(EventFilter { metadata, ..filter })
        };
        filters.into_iter().filter_map(within).collect()
    }

    /// Other pairs, and then the scope's. The key that they contradict each other by, if they do.
    fn join(&self, other: Option<Object>) -> Result<Option<Object>, String> {
        if let Some(key) = &self.disputed {
            return Err(key.clone());
        }
        if self.is_everything() {
            return Ok(other);
        }
        let mut joined = other.unwrap_or_default();
        match add(&self.pairs, &mut joined) {
            Some(key) => Err(key),
            None => Ok(Some(joined)),
        }
    }
}

/// Adds pairs to others. The first key that is there with another value, if any.
fn add(pairs: &Object, to: &mut Object) -> Option<String> {
    let mut disputed = None;
    for (key, value) in pairs {
        match to.get(key) {
            Some(there) if there == value => {}
            Some(_) => disputed = disputed.or_else(|| Some(key.clone())),
            None => {
                to.insert(key.clone(), value.clone());
            }
        }
    }
    disputed
}

impl Store {
    /// How the catalogue lists a session, seen through a scope. It is not asked when everything is in scope.
    pub(crate) fn listing(&self, access: &Access, id: &SessionId) -> Result<Listing, Error> {
        if access.scope.is_everything() {
            return Ok(Listing::Matching);
        }
        if access.scope.disputed.is_some() {
            return Ok(Listing::Absent);
        }
        self.ask_catalogue(|catalogue| catalogue.listing(id, &access.scope.pairs))
    }

    /// Reads entries that were found in a session's state, which is let go by now; `None` for one whose content is damaged.
    /// Returns `session/not_found` to a handle with a scope if the session ended meanwhile, because its name may stand for
    /// another's file, and to any handle that would miss entries.
    pub(crate) fn fetch_seen(
        &self,
        access: &Access,
        sources: &[Source],
        wanted: &[impl std::borrow::Borrow<Wanted>],
    ) -> Result<Vec<Option<Fetched>>, Error> {
        let mut fetched = self.fetch(sources, wanted)?;
        if !access.sees_hidden() {
            for fetched in fetched.iter_mut().flatten() {
                // What else an origin says is not read for this.
                if fetched.origin.as_ref().is_some_and(hides_something) {
                    fetched.origin = fetched.origin.take().map(|origin| public_origin(origin.object()).into());
                }
            }
        }
        if access.scope.is_everything() && fetched.iter().all(Option::is_some) {
            return Ok(fetched);
        }
        // The first source is the session's own file.
        let same = match sources.first() {
            Some(own) => self.look(Access::whole(), &own.session_id, |state| state.born() == own.born)?,
            None => None,
        };
        match (same, sources.first()) {
            (Some(true), _) => Ok(fetched),
            (_, Some(own)) => Err(Error::not_found(&own.session_id)),
            (_, None) => Ok(wanted.iter().map(|_| None).collect()),
        }
    }
}

#[cfg(test)]
mod tests;
