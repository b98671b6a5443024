//! Headers that never exceed 8 KiB.

use banyan_formats::ocp::{Context, LONGEST_HEADER, Uncounted, decode, read, to_headers};
use serde_json::{Value, json};

use crate::schema::assert_valid;

/// Text that does not pack well.
fn noise(seed: u64, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + (state % 90) as u8)
    };
    (0..length).map(|_| next()).collect()
}

fn context(actions: usize, length: usize) -> Context {
    let history: Vec<Value> = (0..actions)
        .map(|at| {
            let timestamp = format!("2026-03-01T{:02}:{:02}:{:02}Z", at / 3600, at / 60 % 60, at % 60);
            json!({"timestamp": timestamp, "action": format!("step_{at}"), "result": noise(at as u64 + 1, length)})
        })
        .collect();
    let given = json!({"context_id": "ocp-a1b2c3d4", "agent_type": "a", "created_at": "2026-03-01T00:00:00Z",
        "last_updated": "2026-03-02T00:00:00Z", "history": history});
    read(given, 0).unwrap().context
}

fn session_of(context: &Context, uncounted: Uncounted) -> Option<Value> {
    let lines = to_headers(context, uncounted);
    assert!(lines.iter().all(|(_, value)| value.len() <= LONGEST_HEADER));
    let (_, value) = lines.into_iter().find(|(name, _)| *name == "ocp-session")?;
    let value = decode(value.as_bytes()).unwrap();
    assert_valid(&value);
    Some(value)
}

#[test]
fn given_more_history_than_fits_when_headers_are_written_then_the_oldest_goes_and_is_counted() {
    let value = session_of(&context(1000, 40), Uncounted { older_actions: 7, entries: 3 }).unwrap();
    let history = value["history"].as_array().unwrap();
    assert!(history.len() > 20 && history.len() < 1000, "{}", history.len());
    assert_eq!(history.last().unwrap()["action"], "step_999");
    assert_eq!(history[0]["action"], format!("step_{}", 1000 - history.len()));
    assert_eq!(value["session"]["history_total"], 1007);
    assert_eq!(value["session"]["history_dropped"], 1007 - history.len());
    assert_eq!(value["session"]["entries_not_read"], 3);
}

#[test]
fn given_history_that_fits_when_headers_are_written_then_nothing_is_counted() {
    let value = session_of(&context(20, 40), Uncounted::default()).unwrap();
    assert_eq!(value["history"].as_array().unwrap().len(), 20);
    assert!(value["session"].get("history_total").is_none());
    // One that reads them back takes none of the counts for its own.
    let again = read(session_of(&context(500, 100), Uncounted::default()).unwrap(), 0).unwrap();
    assert_eq!(again.context.session.len(), 3);
}

#[test]
fn given_texts_that_are_too_long_when_headers_are_written_then_they_are_cut_and_named() {
    let mut long = context(3, 40);
    long.context_summary = Some(noise(1, 20_000));
    long.error_context = Some("é".repeat(200_000));
    let value = session_of(&long, Uncounted::default()).unwrap();
    assert_eq!(value["session"]["shortened"], json!(["context_summary", "error_context"]));
    assert_eq!(value["history"].as_array().unwrap().len(), 3);
    long.recent_changes = (0..10).map(|at| noise(at, 3000)).collect();
    long.session.insert("own".to_owned(), json!(noise(3, 30_000)));
    let value = session_of(&long, Uncounted::default()).unwrap();
    assert_eq!(
        value["session"]["shortened"],
        json!(["context_summary", "error_context", "recent_changes", "session"])
    );
    assert_eq!(value["recent_changes"], json!([]));
}

#[test]
fn given_the_same_context_when_headers_are_written_twice_then_they_are_the_same_bytes() {
    let context = context(80, 30);
    assert_eq!(to_headers(&context, Uncounted::default()), to_headers(&context, Uncounted::default()));
}
