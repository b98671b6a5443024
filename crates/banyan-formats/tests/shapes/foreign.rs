//! Messages that others wrote: they become entries with ids that follow from them, and look the same when they come out.

use banyan_formats::shapes::*;
use banyan_model::*;
use serde_json::{Value, json};

use crate::given;
use crate::session::*;

fn ai_sdk() -> Value {
    json!([
        {"id": "sys", "role": "system", "parts": [{"type": "text", "text": "Be kind."}]},
        {"id": "u1", "role": "user", "metadata": {"mood": "good"}, "parts": [
            {"type": "text", "text": "Look at this"},
            {"type": "file", "mediaType": "application/pdf", "url": "https://example.org/a.pdf", "filename": "a.pdf"},
            {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"},
        ]},
        {"id": "m1", "role": "assistant", "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "text": "Hm.", "state": "done"},
            {"type": "tool-search", "toolCallId": "t1", "state": "output-available", "input": {"q": "x"}, "output": {"hits": [1]}},
            {"type": "dynamic-tool", "toolName": "read", "toolCallId": "t2", "state": "output-error", "input": {}, "errorText": "gone"},
            {"type": "step-start"},
            {"type": "text", "text": "Here.", "state": "done"},
            {"type": "source-url", "sourceId": "s1", "url": "https://example.org"},
            {"type": "data-weather", "data": {"sun": true}},
            {"type": "text", "text": "Bye.", "state": "done"},
        ]},
    ])
}

#[test]
fn given_messages_of_the_ai_sdk_when_they_go_in_then_they_are_typed_entries() {
    let read = find("ai-sdk").read(&ai_sdk(), 7).unwrap();
    let entries: Vec<&NewEntry> = read.messages.iter().flat_map(|message| &message.entries).collect();
    let roles: Vec<&str> = entries
        .iter()
        .map(|entry| match &entry.body {
            Body::Message(message) => message.role().as_str(),
            _ => "",
        })
        .collect();
    assert_eq!(
        roles,
        [
            "custom",
            "user",
            "custom",
            "assistant",
            "function_result",
            "function_result",
            "assistant",
            "custom",
            "custom",
            "assistant"
        ]
    );
    assert_eq!((entries[0].id.as_str(), entries[1].id.as_str(), entries[3].id.as_str()), ("sys", "u1", "m1"));
    let Body::Message(result) = &entries[4].body else { panic!() };
    let AgentMessage::FunctionResult(result) = &**result else { panic!() };
    assert_eq!((result.function_id.as_str(), result.details.get()), ("search", r#"{"hits":[1]}"#));
}

#[test]
fn given_messages_of_the_ai_sdk_when_they_come_out_then_every_part_is_there_in_its_place() {
    let mut session = Session::default();
    assert_eq!(session.post(find("ai-sdk"), &ai_sdk()), 10);
    assert_eq!(session.post(find("ai-sdk"), &ai_sdk()), 0);
    let out = session.shown(find("ai-sdk"));
    for (at, message) in ai_sdk().as_array().unwrap().iter().enumerate() {
        assert_eq!((&out[at]["id"], &out[at]["role"]), (&message["id"], &message["role"]));
        let parts = message["parts"].as_array().unwrap().iter().filter(|part| part["type"] != "step-start");
        let shown: Vec<_> =
            out[at]["parts"].as_array().unwrap().iter().filter(|part| part["type"] != "step-start").collect();
        assert_eq!(parts.clone().count(), shown.len());
        for (part, shown) in parts.zip(shown) {
            for (key, value) in part.as_object().unwrap() {
                let same = if key == "type" && value == "tool-search" { &json!("dynamic-tool") } else { value };
                assert_eq!(&shown[key], same, "{part} {shown}");
            }
        }
    }
    assert_eq!(out[1]["metadata"]["mood"], "good");
    assert_eq!(session.post(find("ai-sdk"), &out), 0);
}

#[test]
fn given_a_message_that_goes_on_when_it_is_posted_again_then_only_what_is_new_is_added() {
    let shape = find("ai-sdk");
    let mut session = Session::default();
    let waiting = json!({"type": "dynamic-tool", "toolName": "ask", "toolCallId": "t", "state": "input-available", "input": {}});
    let answered = json!({"type": "dynamic-tool", "toolName": "ask", "toolCallId": "t", "state": "output-available", "input": {}, "output": "yes"});
    let user = json!({"id": "u", "role": "user", "parts": [{"type": "text", "text": "Ask me"}]});
    assert_eq!(session.post(shape, &json!([user, {"id": "m", "role": "assistant", "parts": [waiting]}])), 2);
    let mut shown = session.shown(shape);
    shown[1]["parts"] = json!([answered, {"type": "step-start"}, {"type": "text", "text": "Good."}]);
    assert_eq!(session.post(shape, &shown), 2);
    assert_eq!(session.post(shape, &shown), 0);
    let out = session.shown(shape);
    assert_eq!((&out[1]["parts"][0]["output"], &out[1]["parts"][2]["text"]), (&json!("yes"), &json!("Good.")));
    // The same without what this server said about it.
    shown[1]["metadata"] = Value::Null;
    assert_eq!(session.post(shape, &shown), 0);
}

#[test]
fn given_a_repository_of_assistant_ui_when_it_goes_in_then_its_branches_are_there() {
    let shape = find("assistant-ui");
    let assistant = |id: &str, text: &str| {
        json!({"id": id, "role": "assistant", "createdAt": "2026-01-22T21:47:29.763Z",
        "content": [{"type": "text", "text": text}, {"type": "tool-call", "toolCallId": "t", "toolName": "f",
            "args": {"a": 1}, "argsText": "{\"a\": 1}", "result": [1, 2], "isError": false}],
        "status": {"type": "complete", "reason": "stop"}, "metadata": {"custom": {"mine": 1}}})
    };
    let form = json!({"headId": "b1", "messages": [
        {"parentId": null, "message": {"id": "a", "role": "user", "createdAt": "2026-01-22T21:47:28.000Z", "attachments": [],
            "content": [{"type": "text", "text": "Hi"}], "metadata": {"custom": {}}}},
        {"parentId": "a", "message": assistant("b1", "One")},
        {"parentId": "a", "message": assistant("b2", "Two")},
    ]});
    let mut session = Session::default();
    assert_eq!(session.post(shape, &form), 5);
    assert_eq!(session.post(shape, &form), 0);
    let out = session.shown(shape);
    assert_eq!(out["headId"], "b1");
    let parents: Vec<(&Value, &Value)> = out["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (&item["message"]["id"], &item["parentId"]))
        .collect();
    assert_eq!(parents, [(&json!("a"), &Value::Null), (&json!("b1"), &json!("a")), (&json!("b2"), &json!("a"))]);
    let shown = &out["messages"][1]["message"];
    assert_eq!(
        (&shown["content"][1]["result"], &shown["metadata"]["custom"]["mine"]),
        (&json!([1, 2]), &json!(1))
    );
    assert_eq!(shown["createdAt"], "2026-01-22T21:47:29.763000+00:00");
    assert_eq!(session.post(shape, &out), 0);
}

#[test]
fn given_messages_of_ag_ui_when_they_go_in_then_each_is_an_entry_with_its_id() {
    let shape = find("ag-ui");
    let input = json!({"threadId": "t", "runId": "r", "messages": [
        {"id": "d", "role": "developer", "content": "Be brief."},
        {"id": "u", "role": "user", "content": [{"type": "text", "text": "See"},
            {"type": "image", "source": {"type": "url", "value": "https://example.org/a.png"}}]},
        {"id": "r", "role": "reasoning", "content": "Hm", "encryptedValue": "seal"},
        {"id": "a", "role": "assistant", "content": "So", "toolCalls": [
            {"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]},
        {"id": "x", "role": "tool", "toolCallId": "t1", "content": "", "error": "no"},
        {"id": "v", "role": "activity", "activityType": "PLAN", "content": {"steps": []}},
    ]});
    let mut session = Session::default();
    assert_eq!(session.post(shape, &input), 6);
    assert_eq!(session.post(shape, &input), 0);
    let out = session.shown(shape);
    for (at, message) in input["messages"].as_array().unwrap().iter().enumerate() {
        for (key, value) in message.as_object().unwrap() {
            match key.as_str() {
                "toolCalls" => assert_eq!(out[at][key][0]["function"], value[0]["function"]),
                // A result that failed says why in both.
                "content" if message["role"] == "tool" => assert_eq!(out[at][key], "no"),
                // Reasoning is a part of an entry.
                "id" if message["role"] == "reasoning" => assert_eq!(out[at][key], "r#0"),
                _ => assert_eq!(&out[at][key], value, "{key}"),
            }
        }
    }
    assert_eq!(session.post(shape, &out), 0);
}

#[test]
fn given_a_client_of_ag_ui_that_knows_no_metadata_when_it_sends_messages_back_then_nothing_is_added() {
    let shape = find("ag-ui");
    let mut session = Session::default();
    session.say("e_1", given::user(vec![given::text("Hi")], 1));
    let call = given::call("c", "f", &json!({}));
    let blocks = vec![given::thinking("hm"), given::text("So"), call];
    session.say("e_2", given::assistant(blocks, StopReason::FunctionCall, 2));
    session.say("e_3", given::result("c", "f", vec![given::text("1")], 3));
    let mut shown = session.shown(shape);
    for message in shown.as_array_mut().unwrap() {
        message.as_object_mut().unwrap().remove("metadata");
        for call in message.get_mut("toolCalls").and_then(Value::as_array_mut).into_iter().flatten() {
            call.as_object_mut().unwrap().remove("metadata");
        }
    }
    assert_eq!(session.post(shape, &shown), 0);
}

#[test]
fn given_something_else_when_it_is_read_then_it_is_refused_in_words() {
    for (name, form, words) in [
        ("assistant-ui", json!([]), "the body is not an exported repository: `messages` should be an array"),
        ("ai-sdk", json!({}), "the body is neither an array of UI messages nor an object with `messages`"),
        (
            "ai-sdk",
            json!([{"id": "a", "role": "tool", "parts": []}]),
            "message `a` has the role `tool`; there is system, user and assistant",
        ),
        ("ai-sdk", json!([{"role": "user", "parts": []}]), "every message needs an `id`"),
        (
            "ag-ui",
            json!([{"id": "a", "role": "owner"}]),
            "message `a` has the role `owner`, which AG-UI does not have",
        ),
    ] {
        assert_eq!(find(name).read(&form, 7).unwrap_err(), words);
    }
}
