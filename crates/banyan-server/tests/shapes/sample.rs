//! A session with everything that a shape has to hold: parallel calls, failures, pictures, files, data, branches, secrets.

use serde_json::{Value, json};

use crate::front_end::user;
use crate::listening::Server;

pub(crate) fn assistant(content: Value, stop_reason: &str) -> Value {
    json!({"role": "assistant", "content": content, "timestamp": 2000, "model": "m", "provider": "p",
        "stop_reason": stop_reason})
}

pub(crate) fn result(call: &str, text: &str, is_error: bool) -> Value {
    json!({"role": "function_result", "function_call_id": call, "function_id": "look", "timestamp": 3000,
        "content": [{"type": "text", "text": text}], "is_error": is_error,
        "details": {"n": 1, "technical_details": "a secret"}})
}

pub(crate) fn call(id: &str) -> Value {
    json!({"type": "function_call", "id": id, "function_id": "look",
        "arguments": {"q": id, "technical_details": "a secret"}})
}

pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Makes the session `s`.
pub(crate) fn everything(server: &Server) {
    server.session("s");
    let say = |message: Value| server.say("s", message);
    let file = server
        .call("put-attachment", json!({"session_id": "s", "name": "a.txt", "mime": "text/plain", "data": "AAAA"}));
    say(json!({"role": "user", "timestamp": 1000, "content": [text("Look at this"),
        {"type": "image", "mime": "image/png", "data": "AAAA"}, file["block"]]}));
    let thinking = json!({"type": "thinking", "text": "Hm.", "signature": "seal"});
    say(assistant(json!([thinking, text("I look."), call("c1"), call("c2")]), "function_call"));
    say(result("c1", "42", false));
    let branch = say(result("c2", "broken", true));
    say(assistant(json!([text("It is 42.")]), "end"));
    say(json!({"role": "custom", "custom_type": "note", "content": [text("aside")], "display": "aside",
        "details": {"technical_details": "a secret", "k": 1}, "timestamp": 4000}));
    server.call("append", json!({"session_id": "s", "custom": {"custom_type": "state", "data": {"n": 1, "technical_details": "a secret"}}}));
    let second = say(user("Again?", 5000));
    say(assistant(json!([call("c1")]), "function_call"));
    say(result("c1", "43", false));
    say(assistant(json!([text("No.")]), "aborted"));
    // Another answer to the second question, and another end of the first one.
    for (parent, words) in [(&branch, "41, perhaps."), (&second, "Yes.")] {
        server.call(
            "append",
            json!({"session_id": "s", "parent_id": parent, "message": assistant(json!([text(words)]), "end")}),
        );
    }
}
