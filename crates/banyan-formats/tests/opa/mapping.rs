//! What becomes of a history's messages.

use banyan_model::*;
use serde_json::{Value, json};

use crate::given::*;

fn entries(bytes: &[u8]) -> (Vec<banyan_formats::opa::Imported>, banyan_formats::opa::Report) {
    let archive = open(bytes).unwrap();
    let (mut entries, report) = taken(&archive);
    assert_eq!(entries.pop().unwrap().message.role(), Role::User, "the prompt is last");
    (entries, report)
}

fn messages(bytes: &[u8]) -> Value {
    let (entries, _) = entries(bytes);
    entries.iter().map(|entry| serde_json::to_value(&entry.message).unwrap()).collect()
}

const T: i64 = 1_772_359_200_000;

#[test]
fn the_full_sample_becomes_messages() {
    let bytes = sample("spec_full.opa");
    let mut found = messages(&bytes);
    let image = found[2]["content"][1].as_object_mut().unwrap();
    let data = image.insert("data".into(), "…".into()).unwrap();
    assert!(data.as_str().unwrap().starts_with("iVBORw0KGgo"));
    let archive = open(&bytes).unwrap();
    let id = |path: &str| archive.file(path).unwrap().attachment_id();
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    assert_eq!(
        found,
        json!([
            {"role": "custom", "custom_type": "system", "content": text("You are a careful analyst."), "timestamp": T},
            {"role": "user", "content": text("Plain string — ünïcode ✓"), "timestamp": T + 1000},
            {"role": "user", "timestamp": T + 2000, "content": [
                {"type": "text", "text": "Look"},
                {"type": "image", "mime": "image/png", "data": "…", "attachment_id": id("session/attachments/image.png")},
                {"type": "file", "attachment_id": id("session/attachments/report.pdf"), "name": "report.pdf",
                 "mime": "application/pdf", "size": archive.file("session/attachments/report.pdf").unwrap().size},
            ]},
            {"role": "assistant", "model": "m-1", "provider": "unknown", "stop_reason": "function_call", "timestamp": T + 3000,
             "content": [
                {"type": "text", "text": "Calling"},
                {"type": "function_call", "id": "toolu_01", "function_id": "read_csv",
                 "arguments": {"path": "data/q1/north.csv", "limit": 10}},
                {"type": "function_call", "id": "toolu_02", "function_id": "now", "arguments": {}},
            ]},
            {"role": "function_result", "function_call_id": "toolu_01", "function_id": "read_csv", "content": text("a,b\n1,2\n"),
             "details": null, "is_error": false, "timestamp": T + 4250},
            {"role": "function_result", "function_call_id": "toolu_02", "function_id": "now", "content": text("2026-03-01"),
             "details": null, "is_error": false, "timestamp": T + 4250},
            {"role": "assistant", "model": "unknown", "provider": "unknown", "stop_reason": "end", "content": [],
             "timestamp": T + 5000},
            {"role": "assistant", "model": "unknown", "provider": "unknown", "stop_reason": "end",
             "content": text("No id, no timestamp."), "timestamp": T + 5000},
        ])
    );
    let (_, report) = entries(&bytes);
    let invented: Vec<(&str, u64)> = report.invented.into_iter().collect();
    assert_eq!(invented, [("model", 2), ("provider", 3), ("stop_reason", 3), ("timestamp", 1)]);
    assert_eq!(report.unplaced_count, 0);
}

#[test]
fn unknown_blocks_are_kept_and_named() {
    let bytes = sample("spec_unknown_blocks.opa");
    let (entries, report) = entries(&bytes);
    let first = serde_json::to_value(&entries[0].message).unwrap();
    assert_eq!(
        first["content"],
        json!([
            {"type": "thinking", "text": "hmm", "signature": "sig"},
            {"type": "text", "text": "hi"},
            {"type": "image", "mime": "image/png", "data": "AAAA"},
            {"type": "function_call", "id": "t", "function_id": "n", "arguments": [1, 2]},
        ])
    );
    let second = serde_json::to_value(&entries[1].message).unwrap();
    assert_eq!((&second["is_error"], &second["function_id"]), (&json!(true), &json!("n")));
    assert_eq!(second["content"][0], json!({"type": "text", "text": "block array"}));
    assert_eq!(second["content"][1]["mime"], "image/png");
    assert_eq!(entries[3].message.content(), []);
    // The second message is written again as it was; of the others something has no other place.
    let kept: Vec<bool> = entries.iter().map(|entry| entry.origin["opa"].get("raw").is_some()).collect();
    assert_eq!(kept, [true, false, true, true]);
    assert_eq!(report.unplaced_count, 0);

    let odd = json!([
        {"role": "user", "content": [{"type": "audio", "source": {"type": "url", "url": "x"}}, {"type": "image", "source": {"type": "url", "url": "y"}}, 7]},
        {"role": "critic", "content": "no"},
        "not even an object",
    ]);
    let (entries, report) = self::entries(&with_messages(&odd));
    let AgentMessage::Custom(critic) = &entries[1].message else { panic!() };
    assert_eq!(critic.custom_type, "opa:critic");
    let said: Vec<(u64, &str)> = report.unplaced.iter().map(|note| (note.message, note.what.as_str())).collect();
    assert_eq!(
        said,
        [
            (1, "a block of the type `audio`"),
            (1, "a block of the type `image`"),
            (1, "a block of the type ``"),
            (2, "the role `critic`"),
            (3, "a message that cannot be read"),
        ]
    );
}

#[test]
fn results_without_a_call_go_to_the_one_that_is_open() {
    let bytes = sample("py_signed_rsa.opa");
    let (entries, report) = entries(&bytes);
    // The call was answered before, so the plain string is nobody's.
    let AgentMessage::Custom(message) = &entries[5].message else { panic!() };
    assert_eq!(message.custom_type, "opa:tool");
    let notes: Vec<&str> = report.unplaced.iter().map(|note| note.what.as_str()).collect();
    assert_eq!(
        notes,
        [
            "the attachment `session/attachments/image.png`, which is missing",
            "the attachment `session/attachments/report.pdf`, which is missing",
            "a result that does not say which call it is of",
        ]
    );
    let call =
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": []}]});
    let (entries, _) = self::entries(&with_messages(&json!([call, {"role": "tool", "content": "done"}])));
    let AgentMessage::FunctionResult(result) = &entries[1].message else { panic!() };
    assert_eq!((result.function_call_id.as_str(), result.function_id.as_str()), ("c", "f"));
}

#[test]
fn results_inside_what_users_say_stay_there() {
    let content = json!([{"type": "tool_result", "tool_use_id": "c", "content": "x", "is_error": false}, {"type": "text", "text": "y"}]);
    let found = messages(&with_messages(&json!([{"role": "user", "content": content}])));
    assert_eq!(
        found[0]["content"],
        json!([
            {"type": "function_result", "function_call_id": "c", "content": [{"type": "text", "text": "x"}], "is_error": false},
            {"type": "text", "text": "y"},
        ])
    );
}

#[test]
fn roles_are_read_in_any_case_and_times_in_any_spelling() {
    let found = messages(&with_messages(&json!([
        {"role": "USER", "content": "a", "timestamp": "2026-03-01T10:00:00.078067+00:00"},
        {"role": "Assistant", "content": "b", "timestamp": "yesterday"},
        {"role": "user", "content": "c", "timestamp": 5},
    ])));
    let roles: Vec<&Value> = found.as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    let times: Vec<i64> =
        found.as_array().unwrap().iter().map(|message| message["timestamp"].as_i64().unwrap()).collect();
    assert_eq!(times, [T + 78, T + 78, T + 78]);
}

#[test]
fn numbers_keep_their_digits_and_half_pairs_their_message() {
    let history = r#"{"messages":[
        {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"big":123456789012345678901234567890,"one":1.0}}]},
        {"role":"user","content":"\ud83d"}]}"#;
    let (entries, report) = entries(&archive(&[("session/history.json", history.as_bytes())]));
    let ContentBlock::FunctionCall(call) = &entries[0].message.content()[0] else { panic!() };
    assert_eq!(call.arguments.get(), r#"{"big":123456789012345678901234567890,"one":1.0}"#);
    assert_eq!(entries[1].origin["opa"]["raw"], r#"{"role":"user","content":"\ud83d"}"#);
    assert_eq!(report.unplaced.len(), 1);
}

#[test]
fn the_prompt_follows_the_messages_unless_it_asks_nothing() {
    let bytes = sample("py_plain.opa");
    let archive = open(&bytes).unwrap();
    let (entries, _) = taken(&archive);
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].message.content(), [ContentBlock::text(archive.prompt())]);
    let blank = zip(&[("META-INF/MANIFEST.MF", MANIFEST.as_bytes()), ("prompt.md", b" \n")]);
    assert!(taken(&open(&blank).unwrap()).0.is_empty());
}
