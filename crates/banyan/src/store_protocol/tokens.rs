//! Commits that other instances asked for lately, so that one that is asked for twice is made once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use banyan_model::store::Version;

/// What another instance calls its commit.
pub(crate) type Token = String;

/// See the module. Only so many are remembered: who asks again does so soon.
#[derive(Default)]
pub(crate) struct Tokens(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// What each left its session as, if it is one that goes on.
    known: HashMap<Token, Option<Version>>,
    oldest_first: VecDeque<Token>,
}

const MOST: usize = 4096;

impl Tokens {
    pub(crate) fn note(&self, token: Token, left: Option<Version>) {
        let mut inner = self.lock();
        if inner.known.insert(token.clone(), left).is_some() {
            return;
        }
        inner.oldest_first.push_back(token);
        if inner.oldest_first.len() > MOST
            && let Some(oldest) = inner.oldest_first.pop_front()
        {
            inner.known.remove(&oldest);
        }
    }

    /// What a commit left its session as. `None` when it is not known to have been made.
    pub(crate) fn get(&self, token: &str) -> Option<Option<Version>> {
        self.lock().known.get(token).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered() {
        let tokens = Tokens::default();
        for number in 0..=MOST {
            tokens.note(number.to_string(), None);
        }
        assert_eq!(tokens.get("0"), None);
        assert_eq!(tokens.get("1"), Some(None));
        assert_eq!(tokens.get(&MOST.to_string()), Some(None));
    }
}
