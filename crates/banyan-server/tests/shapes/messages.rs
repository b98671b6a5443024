//! Messages in the shapes of front ends: what comes out.

use serde_json::{Value, json};

use super::sample::everything;
use crate::front_end::*;
use crate::listening::Server;

#[test]
fn given_a_session_with_branches_when_assistant_ui_asks_then_the_whole_tree_comes_with_its_head() {
    let server = Server::new();
    everything(&server);
    let form = server.get("/v1/sessions/s/messages?format=assistant-ui").json();
    let text = |item: &Value| {
        let parts = item["message"]["content"].as_array().unwrap().iter();
        parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("|")
    };
    let items = form["messages"].as_array().unwrap();
    let shown: Vec<(String, Option<String>)> = items
        .iter()
        .map(|item| {
            let parent = items.iter().find(|other| other["message"]["id"] == item["parentId"]);
            (text(item), parent.map(text))
        })
        .collect();
    let tree = [
        ("Look at this", None),
        ("Hm.|I look.", Some("Look at this")),
        ("It is 42.", Some("Hm.|I look.")),
        ("Again?", Some("It is 42.")),
        ("No.", Some("Again?")),
        ("41, perhaps.", Some("Hm.|I look.")),
        ("Yes.", Some("Again?")),
    ];
    assert_eq!(shown, tree.map(|(text, parent)| (text.to_owned(), parent.map(str::to_owned))));
    let head = items.iter().find(|item| item["message"]["id"] == form["headId"]).unwrap();
    assert_eq!(text(head), "Yes.");
    let calls: Vec<(&Value, &Value)> = items[1]["message"]["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|part| part["type"] == "tool-call")
        .map(|part| (&part["result"], &part["isError"]))
        .collect();
    assert_eq!(calls, [(&json!("42"), &json!(false)), (&json!("broken"), &json!(true))]);
}

#[test]
fn given_a_long_session_when_the_ai_sdk_reads_it_in_pages_then_they_are_all_of_it_and_no_turn_is_torn() {
    let server = Server::new();
    everything(&server);
    for turn in 0..300 {
        server.say("s", user(&format!("question {turn}"), turn));
        server.say("s", answer("one", turn));
        server.say("s", answer("two", turn));
    }
    let address = "/v1/sessions/s/messages?format=ai-sdk";
    let mut next = Some(format!("{address}&limit=7"));
    let mut paged = Vec::new();
    while let Some(page) = next {
        let answer = server.get(&page);
        paged.extend(answer.json().as_array().unwrap().clone());
        next = answer.link("next");
        assert!(paged.len() % 7 == 0 || next.is_none());
    }
    let whole = server.get(&format!("{address}&limit=500"));
    assert_eq!(whole.link("next").is_some(), paged.len() > 500);
    assert_eq!(whole.json().as_array().unwrap()[..], paged[..500]);
    assert_eq!(paged.len(), 604);
    let kinds: Vec<&Value> = paged[603]["parts"].as_array().unwrap().iter().map(|part| &part["type"]).collect();
    assert_eq!(kinds, ["text", "step-start", "text"]);
}

#[test]
fn given_an_empty_session_when_it_is_asked_for_then_every_shape_is_empty() {
    let server = Server::new();
    server.session("s");
    let form = |name: &str| server.get(&format!("/v1/sessions/s/messages?format={name}")).json();
    assert_eq!(form("assistant-ui"), json!({"headId": null, "messages": []}));
    assert_eq!((form("ai-sdk"), form("ag-ui")), (json!([]), json!([])));
}

#[test]
fn given_secrets_in_a_session_when_it_is_asked_for_then_no_shape_tells_them() {
    let server = Server::new();
    everything(&server);
    for name in ["assistant-ui", "ai-sdk", "ag-ui"] {
        let text = server.get(&format!("/v1/sessions/s/messages?format={name}")).text;
        assert!(text.len() > 1000 && !text.contains("technical_details") && !text.contains("secret"), "{text}");
    }
}

#[test]
fn given_a_wrong_question_when_it_is_asked_then_it_is_refused_in_words() {
    let server = Server::new();
    server.session("s");
    for (path, words) in [
        (
            "messages?format=xml",
            "there is no format `xml` for messages; the formats are assistant-ui, ai-sdk, ag-ui",
        ),
        (
            "messages?format=ai-sdk&roles=user",
            "`roles` is not known in this format; there is format, limit, cursor",
        ),
        ("messages?format=assistant-ui&limit=3", "`limit` is not known in this format; there is format"),
        ("messages?format=ai-sdk&limit=0", "`limit` is a whole number from 1, not `0`"),
        ("messages?format=ai-sdk&format=ag-ui", "`format` is given twice in the query"),
        ("events?format=ai-sdk", "there is no format `ai-sdk` for events; the formats are ag-ui"),
        ("events?format=ag-ui&snapshot=1", "`snapshot` is not known in this format; there is format, after"),
    ] {
        let answer = server.get(&format!("/v1/sessions/s/{path}"));
        assert_eq!(
            (answer.refused(), answer.json()["detail"].as_str()),
            ((400, "session/invalid_request".to_owned()), Some(words))
        );
    }
    assert_eq!(
        server.get("/v1/sessions/s/messages?format=ai-sdk&cursor=x").refused(),
        (400, "session/invalid_cursor".to_owned())
    );
    assert_eq!(
        server.refused("/v1/sessions/s/events?format=ag-ui&after=x"),
        (400, "session/invalid_cursor".to_owned())
    );
    for path in ["messages?format=assistant-ui", "messages?format=ai-sdk"] {
        assert_eq!(
            server.get(&format!("/v1/sessions/no/{path}")).refused(),
            (404, "session/not_found".to_owned())
        );
    }
    assert_eq!(server.refused("/v1/sessions/no/events?format=ag-ui"), (404, "session/not_found".to_owned()));
}

#[test]
fn given_the_document_when_it_is_read_then_it_names_the_formats() {
    let document = Server::new().get("/openapi.json").json();
    let formats = |path: &str, verb: &str| {
        let parameters = document["paths"][path][verb]["parameters"].as_array().unwrap().clone();
        parameters.iter().find(|it| it["name"] == "format").unwrap()["schema"]["enum"].clone()
    };
    let all = json!(["assistant-ui", "ai-sdk", "ag-ui"]);
    assert_eq!(formats("/v1/sessions/{session_id}/messages", "get"), all);
    assert_eq!(formats("/v1/sessions/{session_id}/messages", "post"), all);
    assert_eq!(formats("/v1/sessions/{session_id}/events", "get"), json!(["ag-ui"]));
}
