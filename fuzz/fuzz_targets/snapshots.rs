//! The snapshot of a session's state, whatever its bytes: left aside, or a state that holds together.

#![no_main]

use banyan_core::SessionState;
use banyan_fuzz::sessions;
use libfuzzer_sys::fuzz_target;

/// How many bytes at the beginning name the form.
const FORM: usize = 16;

fuzz_target!(|data: &[u8]| {
    let _ = SessionState::from_snapshot(data);
    let mut bytes = snapshot(&SessionState::begin("s_fuzz".into()));
    bytes.truncate(FORM);
    bytes.extend_from_slice(data);
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());

    let Some(mut state) = SessionState::from_snapshot(&bytes) else { return };
    state.finish();
    sessions::assert_holds_together(&state);
    let again = snapshot(&state);
    let back = SessionState::from_snapshot(&again).expect("a snapshot of ours can be read");
    assert_eq!(snapshot(&back), again);
});

fn snapshot(state: &SessionState) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.to_snapshot(&mut bytes);
    bytes
}
