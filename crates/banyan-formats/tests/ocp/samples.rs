//! Every sample: what the protocol's own libraries wrote, and what was made by hand.

use std::fs;
use std::path::{Path, PathBuf};

use banyan_formats::ocp::{Headers, Reading, from_headers, to_headers};
use serde_json::{Value, json};

use crate::schema::assert_valid;

const NOW: i64 = 1_800_000_000_000;

/// What becomes of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    /// The context that its writer meant, all of it.
    Whole,
    /// A context, of which this was left out.
    Without(&'static str),
    /// `OCP-Session` is left out for this reason; the other headers name the context.
    Named(&'static str),
}
use Outcome::{Named, Whole, Without};

const SAMPLES: &[(&str, Outcome)] = &[
    ("edge_bad_date", Without("created_at=not-a-time")),
    ("edge_gzip_bomb_under_8k", Named("ocp-session=inflates-too-far")),
    ("edge_gzip_prefix_uppercase", Named("ocp-session=not-base64")),
    ("edge_id_not_schema", Whole),
    ("edge_ids_only_no_session", Whole),
    ("edge_legacy_agent_goal", Without("ocp-current-goal=another-in-session")),
    ("edge_minimal_required_only", Whole),
    ("edge_no_padding", Whole),
    ("edge_not_base64", Named("ocp-session=not-base64")),
    ("edge_recent_changes_11", Without("recent_changes=more-than-10")),
    ("edge_unknown_top_field", Whole),
    ("js_api_spec_registry", Whole),
    ("js_history6_nocompress", Whole),
    ("js_minimal", Whole),
    ("js_recent_changes_12", Whole),
    ("js_small_plain", Whole),
    ("py_api_spec_registry", Whole),
    ("py_history1000_oversize", Named("ocp-session=oversized")),
    ("py_history50", Whole),
    ("py_history6_gzip", Whole),
    ("py_history6_nocompress", Whole),
    ("py_minimal", Whole),
    ("py_recent_changes_12", Whole),
    ("py_unicode", Whole),
];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ocp")
}

fn sample(name: &str) -> Value {
    serde_json::from_slice(&fs::read(directory().join(format!("{name}.json"))).unwrap()).unwrap()
}

fn reading(sample: &Value) -> Reading {
    let header = |name: &str| sample["headers"].get(name).map(|value| value.as_str().unwrap().as_bytes());
    let headers = Headers {
        context_id: header("OCP-Context-ID"),
        agent_type: header("OCP-Agent-Type"),
        current_goal: header("OCP-Current-Goal"),
        agent_goal: header("OCP-Agent-Goal"),
        session: header("OCP-Session"),
        user: header("OCP-User"),
        workspace: header("OCP-Workspace"),
    };
    from_headers(&headers, NOW)
}

#[test]
fn given_every_sample_when_it_is_read_then_it_has_its_outcome() {
    let files = fs::read_dir(directory()).unwrap().map(|file| file.unwrap().file_name());
    let files = files.filter(|name| name.to_string_lossy().ends_with(".json")).count();
    assert_eq!(files, SAMPLES.len(), "every sample is in the list");
    for (name, outcome) in SAMPLES {
        let sample = sample(name);
        let Reading { received, ignored } = reading(&sample);
        let said: Vec<String> =
            ignored.iter().map(|ignored| format!("{}={}", ignored.what, ignored.why)).collect();
        let expected: Vec<&str> = match outcome {
            Whole => vec![],
            Without(one) | Named(one) => vec![one],
        };
        assert_eq!(said, expected, "{name}");
        let received = received.unwrap();
        let context: Value = serde_json::to_value(&received.context).unwrap();
        assert_valid(&context);
        if let (Whole, Some(meant)) = (outcome, sample.get("context")) {
            assert_eq!(context, *meant, "{name}");
        }
        if matches!(outcome, Named(_)) {
            assert_eq!(context["history"], json!([]), "{name}");
            assert_eq!(context["context_id"], sample["headers"]["OCP-Context-ID"], "{name}");
        }
        for (_, value) in to_headers(&received.context, Default::default()) {
            assert!(value.len() <= 8192, "{name}");
        }
    }
}

#[test]
fn given_the_edges_when_they_are_read_then_what_matters_is_there() {
    let of = |name: &str| reading(&sample(name)).received.unwrap();
    let bad_date = of("edge_bad_date");
    assert_eq!(bad_date.context.created_at, bad_date.context.last_updated);
    let other_id = of("edge_id_not_schema");
    assert_eq!(other_id.given_id.as_deref(), Some("debug-session-456"));
    assert!(other_id.context.context_id.starts_with("ocp-"));
    let thin = of("edge_ids_only_no_session");
    assert!(thin.undated);
    assert_eq!(
        (thin.context.user.as_deref(), thin.context.workspace.as_deref()),
        (Some("alice"), Some("payment-service"))
    );
    assert_eq!(of("edge_legacy_agent_goal").context.current_goal.as_deref(), Some("debug_payment_error"));
    assert_eq!(of("edge_recent_changes_11").context.recent_changes.len(), 10);
    assert_eq!(of("edge_unknown_top_field").extra["x_vendor"], json!({"a": 1}));
    assert_eq!(of("py_history50").context.history.len(), 50);
}

#[test]
fn given_the_old_name_of_the_goal_when_nothing_else_says_it_then_it_is_the_goal() {
    let headers =
        Headers { context_id: Some(b"ocp-a1b2c3d4"), agent_goal: Some(b"find it"), ..Headers::default() };
    let reading = from_headers(&headers, NOW);
    assert_eq!(reading.received.unwrap().context.current_goal.as_deref(), Some("find it"));
    let both = Headers { current_goal: Some(b"the newer"), ..headers };
    assert_eq!(from_headers(&both, NOW).received.unwrap().context.current_goal.as_deref(), Some("the newer"));
}
