//! Sessions that changed in another way than by commits, remembered in the catalogue until they are indexed.

use banyan_model::SessionId;

use super::Home;
use crate::store::Store;

/// The state under which the catalogue remembers which sessions search has not looked at, as a JSON array.
const MARKS: &str = "search marks";

/// The state under which the catalogue remembers that search has seen all its sessions. A catalogue that was rebuilt has
/// none, so search then compares all of them.
const COMPARED: &str = "search compared";

impl Store {
    /// Has search look at sessions whose files are not as their commits made them. To be called before the catalogue notes
    /// them, so that they are looked at also when the store ends before.
    pub(crate) fn mark_for_search(&self, sessions: Vec<SessionId>) {
        if sessions.is_empty() {
            return;
        }
        self.search.mark_all(sessions);
        self.keep_search_marks();
    }

    /// Takes up what search had not looked at when the store was closed or killed.
    pub(crate) fn restore_search_marks(&self) {
        let marks = self.catalogue.state(MARKS).ok().flatten();
        match marks.as_deref().map(serde_json::from_str::<Vec<SessionId>>) {
            Some(Ok(marks)) => self.search.mark_all(marks),
            Some(Err(_)) => self.search.doubt(),
            None => {}
        }
        if !matches!(self.catalogue.state(COMPARED), Ok(Some(_))) {
            self.search.doubt();
        }
    }

    /// Remembers that search has looked at everything, unless there is something new.
    pub(crate) fn settle_search_marks(&self) {
        if !matches!(self.catalogue.state(COMPARED), Ok(Some(_))) {
            // What cannot be noted is compared once more after the next start.
            let _ = self.catalogue.set_state(COMPARED, "yes");
        }
        self.keep_search_marks();
    }

    /// Writes the marks as they are now. One that comes meanwhile writes them again.
    fn keep_search_marks(&self) {
        if matches!(self.search.home, Home::Nowhere) {
            // The next indexer compares everything.
            let _ = self.catalogue.take_state(COMPARED);
            return;
        }
        loop {
            let marks = self.search.marks();
            let kept = if marks.is_empty() {
                self.catalogue.take_state(MARKS).map(drop)
            } else {
                let text = serde_json::to_string(&marks).unwrap_or_default();
                self.catalogue.set_state(MARKS, &text)
            };
            // A catalogue that cannot be written is rebuilt, and search compares everything then.
            if kept.is_err() || self.search.marks() == marks {
                return;
            }
        }
    }
}
