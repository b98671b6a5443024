//! A damaged entry is marked in every answer that leaves it out.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{OnDisk, assistant, door, file_of, user};
use crate::wire::{Server, settings};

const MARK: &str = "[entry e21 is damaged and was left out]";

/// What entry `n` says. The session has more than 1 MiB, so it is loaded without reading its lines.
fn said(n: usize) -> String {
    format!("{n:02} {}", "x".repeat(20_000))
}

/// A closed directory with a session of questions and answers, in which the answer `e21` is zeros.
fn damaged() -> TempDir {
    let on_disk = OnDisk::new();
    let store = door(&on_disk.store);
    store.ok("ensure", json!({"session_id": "mine"}));
    for n in 0..60 {
        let message = if n % 2 == 0 { user(&said(n)) } else { assistant(&said(n)) };
        store.append(&json!("mine"), json!({"message": message, "entry_id": format!("e{n:02}")}));
    }
    let dir = on_disk.close();
    let file = file_of(dir.path(), "mine");
    let mut bytes = std::fs::read(&file).unwrap();
    let ends: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
    bytes[ends[21] + 1..=ends[22]].fill(0);
    std::fs::write(file, bytes).unwrap();
    dir
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_that_leaves_a_damaged_entry_out_says_so() {
    let server = Server::start_in(damaged(), settings()).await;
    let call = async |function: &str, body: Value| {
        let answer = server.ask("POST", &format!("/v1/call/session::{function}"), "", &body.to_string()).await;
        assert_eq!(answer.status, 200, "{function}");
        serde_json::from_str::<Value>(answer.text()).unwrap()
    };
    let named = json!([{"entry_id": "e21", "parent_id": "e20", "role": "assistant"}]);
    let all = json!({"session_id": "mine", "limit": 500});
    let range = json!({"session_id": "mine", "from_entry_id": "e10", "to_entry_id": "e30"});
    for (function, request, count) in
        [("messages", all.clone(), 59), ("messages-tail", all, 59), ("messages-range", range, 20)]
    {
        let page = call(function, request).await;
        assert_eq!((page["messages"].as_array().unwrap().len(), &page["damaged"]), (count, &named), "{function}");
    }
    let page = server.get("/v1/sessions/mine/messages?limit=100", "").await;
    assert_eq!(serde_json::from_str::<Value>(page.text()).unwrap()["damaged"], named);
    assert!(call("get-message", json!({"session_id": "mine", "entry_id": "e21"})).await.is_null());
    let tree = call("tree", json!({"session_id": "mine"})).await;
    let marked: Vec<&Value> =
        tree["entries"].as_array().unwrap().iter().filter(|node| node["damaged"] == true).collect();
    assert_eq!(marked.len(), 1);
    assert_eq!(marked[0]["entry_id"], "e21");

    for address in [
        "/sessions/mine/history",
        "/sessions/mine/history?limit=100",
        "/v1/sessions/mine/messages?format=assistant-ui",
        "/v1/sessions/mine/messages?format=ai-sdk&limit=100",
        "/v1/sessions/mine/export?to=markdown",
        "/v1/sessions/mine/export?to=html",
        "/v1/sessions/mine/export?to=session-log",
    ] {
        let answer = server.get(address, "").await;
        assert_eq!(answer.status, 200, "{address}");
        let text = answer.text().replace("\\[", "[").replace("\\]", "]");
        assert!(text.contains(MARK), "{address}");
        assert!(text.contains(&said(20)) && !text.contains(&said(21)) && text.contains(&said(22)), "{address}");
    }
    let history = server.get("/sessions/mine/history", "").await;
    let history: Value = serde_json::from_str(history.text()).unwrap();
    assert_eq!(history.as_array().unwrap().len(), 60, "the answer is there, and says what is missing");
    assert_eq!(history[21]["role"], "assistant");

    let metrics = server.get("/metrics", "").await.text().to_owned();
    assert!(metrics.lines().any(|line| line == "banyan_damaged_entries 1"), "{metrics}");
    server.stop().await;
}
