//! Commits that other instances asked for lately, so that one that is asked for twice is made once.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What another instance calls its commit.
pub(crate) type Token = String;

/// See the module. Only so many are remembered: who asks again does so soon.
#[derive(Default)]
pub(crate) struct Tokens(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    known: HashSet<Token>,
    oldest_first: VecDeque<Token>,
}

const MOST: usize = 4096;

impl Tokens {
    pub(crate) fn note(&self, token: Token) {
        let mut inner = self.lock();
        if !inner.known.insert(token.clone()) {
            return;
        }
        inner.oldest_first.push_back(token);
        if inner.oldest_first.len() > MOST
            && let Some(oldest) = inner.oldest_first.pop_front()
        {
            inner.known.remove(&oldest);
        }
    }

    pub(crate) fn contains(&self, token: &str) -> bool {
        self.lock().known.contains(token)
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
            tokens.note(number.to_string());
        }
        assert!(!tokens.contains("0"));
        assert!(tokens.contains("1"));
        assert!(tokens.contains(&MOST.to_string()));
    }
}
