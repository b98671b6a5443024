//! What holds for every context.

use std::collections::HashSet;

use banyan_formats::ocp::{
    Headers, LONGEST_HEADER, Received, Uncounted, decode, encode, from_headers, merge, read, to_headers,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::schema::assert_valid;
use crate::session::there_and_back;

fn times() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..60_u8, 0..1000_u16).prop_map(|(second, ms)| format!("2026-03-01T10:00:{second:02}.{ms:03}Z")),
        (0..60_u8).prop_map(|second| format!("2026-03-01T10:00:{second:02}.000001+00:00")),
        (0..60_u8).prop_map(|second| format!("2026-03-01 10:00:{second:02}")),
    ]
}

fn words() -> impl Strategy<Value = Value> {
    prop_oneof![Just(Value::Null), "[a-z ü]{0,12}".prop_map(Value::from)]
}

fn actions() -> impl Strategy<Value = Value> {
    (times(), "[a-c]{1,2}", words(), words(), proptest::option::of("[a-b]")).prop_map(
        |(timestamp, action, endpoint, result, note)| {
            json!({"timestamp": timestamp, "action": action, "api_endpoint": endpoint, "result": result,
                "metadata": note.map_or(json!({}), |note| json!({"note": note, "n": 1.0}))})
        },
    )
}

fn contexts() -> impl Strategy<Value = Received> {
    let texts = (words(), words(), words(), words(), words(), words());
    let lists = (
        proptest::collection::vec(actions(), 0..12),
        proptest::collection::vec("[a-z]{0,5}", 0..13),
        proptest::collection::hash_map("[a-c]{1}", "https://[a-c]{1}\\.example", 0..3),
    );
    (texts, lists, times(), proptest::option::of(times()), 0..5_u64).prop_map(
        |((user, workspace, file, goal, summary, error), (history, changes, specs), created, updated, count)| {
            let given = json!({
                "context_id": "ocp-a1b2c3d4", "agent_type": "tester", "user": user, "workspace": workspace,
                "current_file": file, "current_goal": goal, "context_summary": summary, "error_context": error,
                "history": history, "recent_changes": changes, "api_specs": specs, "created_at": created,
                "last_updated": updated,
                "session": {"start_time": created, "interaction_count": count, "agent_type": "tester", "own": count},
            });
            read(given, 1_800_000_000_000).unwrap()
        },
    )
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        times().prop_map(Value::from),
    ];
    let keys = prop_oneof![
        Just("history".to_owned()),
        Just("timestamp".to_owned()),
        Just("action".to_owned()),
        Just("session".to_owned()),
        Just("created_at".to_owned()),
        Just("recent_changes".to_owned()),
        Just("api_specs".to_owned()),
        "[a-z]{1,4}",
    ];
    leaf.prop_recursive(4, 64, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((keys.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merging_again_changes_nothing_and_no_action_is_lost(a in contexts(), b in contexts()) {
        let merged = merge(&a, &b);
        prop_assert_eq!(&merge(&merged, &b), &merged);
        prop_assert_eq!(&merge(&merged, &a).context.history, &merged.context.history);
        let keys = |received: &Received| received.context.history.iter().map(|it| it.key()).collect::<HashSet<_>>();
        let both: HashSet<_> = keys(&a).union(&keys(&b)).copied().collect();
        prop_assert_eq!(keys(&merged), both);
        prop_assert_eq!(merged.context.history.len(), keys(&merged).len());
        prop_assert_eq!(merge(&b, &a).context.history.len(), merged.context.history.len());
        assert_valid(&serde_json::to_value(&merged.context).unwrap());
    }

    #[test]
    fn a_context_in_a_session_comes_out_as_it_went_in(received in contexts()) {
        prop_assert_eq!(there_and_back(&received), serde_json::to_value(&received.context).unwrap());
    }

    #[test]
    fn headers_that_were_written_are_read_as_the_same_context(received in contexts()) {
        let lines = to_headers(&received.context, Uncounted::default());
        let of = |name: &str| lines.iter().find(|(it, _)| *it == name).map(|(_, value)| value.as_bytes());
        let headers = Headers {
            context_id: of("ocp-context-id"), agent_type: of("ocp-agent-type"), current_goal: of("ocp-current-goal"),
            session: of("ocp-session"), user: of("ocp-user"), workspace: of("ocp-workspace"), agent_goal: None,
        };
        let reading = from_headers(&headers, 0);
        prop_assert_eq!(reading.ignored, vec![]);
        prop_assert_eq!(reading.received.unwrap().context, received.context);
    }

    #[test]
    fn whatever_is_read_is_valid_and_fits(mut value in any_json(), size in 0..100_usize) {
        if let Some(fields) = value.as_object_mut() {
            fields.insert("context_id".to_owned(), json!("anything"));
            fields.insert("context_summary".to_owned(), json!("ß~".repeat(size * 50)));
        }
        if let Ok(received) = read(value, 0) {
            assert_valid(&serde_json::to_value(&received.context).unwrap());
            prop_assert_eq!(&merge(&received, &received).context, &received.context);
            for (name, line) in to_headers(&received.context, Uncounted::default()) {
                prop_assert!(line.len() <= LONGEST_HEADER);
                if name == "ocp-session" {
                    assert_valid(&decode(line.as_bytes()).unwrap());
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&bytes);
        let _ = decode(format!("gzip:{}", String::from_utf8_lossy(&bytes)).as_bytes());
        let _ = from_headers(&Headers { session: Some(&bytes), context_id: Some(&bytes), ..Headers::default() }, 0);
    }

    #[test]
    fn what_is_encoded_is_decoded(text in "\\PC{0,2000}") {
        let object = json!({"t": text});
        prop_assert_eq!(decode(encode(&object.to_string()).as_bytes()).unwrap(), object);
    }
}
