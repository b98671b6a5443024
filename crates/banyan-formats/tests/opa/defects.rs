//! What the other libraries lose or get wrong is not so here.

use serde_json::json;

use crate::given::*;

#[test]
fn php_writes_empty_objects_as_lists_and_they_stay_what_they_are() {
    let message = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": []}], "metadata": []});
    let bytes = with_messages(&json!([message]));
    let (again, _) = Session::imported(&bytes).written(banyan_formats::opa::Options::default());
    assert_eq!(history(&again)["messages"][0], message);
}

#[test]
fn a_mark_before_the_history_is_skipped() {
    let text = b"\xef\xbb\xbf{\"opa_version\":\"0.1\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}";
    let bytes = archive(&[("session/history.json", text)]);
    assert_eq!(open(&bytes).unwrap().history().unwrap().messages, 1);
}

#[test]
fn titles_cannot_add_attributes() {
    let mut session = Session::new(Vec::new());
    session.meta.title = "x\r\nSession-File: ../../etc/passwd\r\n\r\nName: prompt.md".into();
    let (bytes, _) = session.written(banyan_formats::opa::Options::default());
    let archive = open(&bytes).unwrap();
    assert_eq!(archive.manifest().get("Session-File"), Some("session/history.json"));
    assert_eq!(archive.manifest().get("Title"), Some("x  Session-File: ../../etc/passwd    Name: prompt.md"));
}
