//! Readers beside a writer: no session is missed or met twice while it moves from memory into the database.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use banyan_index::ListQuery;
use banyan_model::SessionId;

use crate::support::*;

const SESSIONS: usize = 60;
const ROUNDS: i64 = 3000;

#[test]
fn given_sessions_that_change_and_are_flushed_when_listed_meanwhile_then_each_is_there_once_and_current() {
    let dir = tempfile::tempdir().unwrap();
    let (catalogue, _) = unready(&dir.path().join("catalogue.sqlite"));
    let row = |i: usize| session(&format!("s{i}"));
    rebuild(&catalogue, &(0..SESSIONS).map(row).collect::<Vec<_>>());
    // The newest time that is certainly noted.
    let noted = AtomicI64::new(0);

    thread::scope(|scope| {
        scope.spawn(|| {
            for now in 1..=ROUNDS {
                let i = usize::try_from(now * 7).unwrap() % SESSIONS;
                catalogue.note(with_meta(row(i), |meta| meta.updated_at = now));
                noted.store(now, Ordering::Release);
            }
        });
        scope.spawn(|| {
            while noted.load(Ordering::Acquire) < ROUNDS {
                catalogue.flush().unwrap();
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while last < ROUNDS {
                    let before = noted.load(Ordering::Acquire);
                    let page = catalogue.list(&ListQuery { limit: SESSIONS, ..ALL }).unwrap();
                    assert!(!page.more);
                    let ids: BTreeSet<&SessionId> = page.sessions.iter().map(|meta| &meta.session_id).collect();
                    assert_eq!(ids.len(), SESSIONS);
                    assert!(page.sessions[0].updated_at >= before);
                    last = before;
                }
            });
        }
    });
}
