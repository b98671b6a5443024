//! A log to read: every line that a session with a bit of everything makes.

use banyan_model::*;
use serde_json::json;

use crate::given::{assistant, call, result, session, user};

#[test]
fn given_a_session_with_a_bit_of_everything_when_it_is_written_then_this_is_its_log() {
    let mut session = session(&[
        json!({"custom_type": "context", "data": {"cwd": "/repo/a", "sources": [
            {"kind": "project_instructions", "path": "/repo/AGENTS.md", "hash": "ab12", "truncated": false}]}}),
        user("explain this repo"),
        assistant(
            json!([{"type": "thinking", "text": "hm"}, {"type": "text", "text": "Let me look."}, call("c1"), call("c2")]),
            "function_call",
        ),
        result("c1", "fn main() {}"),
        assistant(json!([{"type": "text", "text": "One"}, {"type": "text", "text": "Two"}]), "end"),
        user("and now?"),
        json!({"role": "assistant", "content": [], "model": "m-1", "provider": "p", "stop_reason": "error",
            "error_kind": "rate_limited", "error_message": "Too many requests", "usage": {"input": 7, "output": 0}}),
    ]);
    let SessionEntry::Message(entry) = &mut session.entries[3] else { panic!("a message") };
    (entry.revision, entry.origin) = (Revision(2), json!({"by": "agent"}).as_object().cloned().map(Into::into));
    let mut branch = session.entries[2].clone();
    let SessionEntry::Message(entry) = &mut branch else { panic!("a message") };
    (entry.id, entry.message) =
        ("b0".into(), Raw::of(&AgentMessage::User(UserMessage { content: vec![], timestamp: 5 })).unwrap());
    session.entries.insert(3, branch);

    let expected = r#"
{"schema_version":1,"seq":0,"time":"2024-06-07T22:40:00.000Z","type":"session_meta","session_id":"s_1","cwd":"/repo","title":"A title","app":"banyan","app_version":"0.1.0","banyan":{"meta":{"session_id":"s_1","title":"A title","description":"","status":"idle","metadata":{"cwd":"/repo"},"message_count":0,"created_at":1717800000000,"updated_at":1717800009000},"active_leaf":"e6","attachments":[]}}
{"schema_version":1,"seq":1,"time":"2024-06-07T22:40:00.000Z","type":"context","message_id":"e0","cwd":"/repo/a","sources":[{"kind":"project_instructions","path":"/repo/AGENTS.md","hash":"ab12","truncated":false}],"banyan":{}}
{"schema_version":1,"seq":2,"time":"2024-06-07T22:40:01.000Z","type":"user","turn_id":"e1","message_id":"e1","text":"explain this repo","banyan":{}}
{"schema_version":1,"seq":3,"time":"2024-06-07T22:40:02.000Z","type":"assistant_started","turn_id":"e1","message_id":"e2","model":"m-1","provider":"p"}
{"schema_version":1,"seq":4,"time":"2024-06-07T22:40:02.000Z","type":"reasoning_finished","turn_id":"e1","message_id":"e2","text":"hm"}
{"schema_version":1,"seq":5,"time":"2024-06-07T22:40:02.000Z","type":"tool_started","turn_id":"e1","message_id":"e2","call_id":"c1","name":"read","input":{"path":"a.rs"}}
{"schema_version":1,"seq":6,"time":"2024-06-07T22:40:02.000Z","type":"tool_started","turn_id":"e1","message_id":"e2","call_id":"c2","name":"read","input":{"path":"a.rs"}}
{"schema_version":1,"seq":7,"time":"2024-06-07T22:40:02.000Z","type":"assistant_finished","turn_id":"e1","message_id":"e2","text":"Let me look.","finish_reason":"function_call","banyan":{}}
{"schema_version":1,"seq":8,"time":"2024-06-07T22:40:02.000Z","type":"banyan_entry","entry":{"kind":"message","id":"b0","parent_id":"e1","timestamp":1717800002000,"revision":0,"message":{"role":"user","content":[],"timestamp":5}}}
{"schema_version":1,"seq":9,"time":"2024-06-07T22:40:03.000Z","type":"tool_finished","turn_id":"e1","message_id":"e3","call_id":"c1","name":"read","status":"ok","duration_ms":1000,"output":{"text":"fn main() {}"},"banyan":{"revision":2,"origin":{"by":"agent"}}}
{"schema_version":1,"seq":10,"time":"2024-06-07T22:40:04.000Z","type":"assistant_started","turn_id":"e1","message_id":"e4","model":"m-1","provider":"p"}
{"schema_version":1,"seq":11,"time":"2024-06-07T22:40:04.000Z","type":"assistant_finished","turn_id":"e1","message_id":"e4","text":"One\nTwo","finish_reason":"end","banyan":{"message":{"role":"assistant","content":[{"type":"text","text":"One"},{"type":"text","text":"Two"}],"model":"m-1","provider":"p","stop_reason":"end","timestamp":1717800004000}}}
{"schema_version":1,"seq":12,"time":"2024-06-07T22:40:04.000Z","type":"tool_finished","turn_id":"e1","message_id":"e2","call_id":"c2","name":"read","status":"skipped","banyan":{"derived":true}}
{"schema_version":1,"seq":13,"time":"2024-06-07T22:40:05.000Z","type":"user","turn_id":"e5","message_id":"e5","text":"and now?","banyan":{}}
{"schema_version":1,"seq":14,"time":"2024-06-07T22:40:06.000Z","type":"assistant_started","turn_id":"e5","message_id":"e6","model":"m-1","provider":"p"}
{"schema_version":1,"seq":15,"time":"2024-06-07T22:40:06.000Z","type":"assistant_finished","turn_id":"e5","message_id":"e6","text":"","finish_reason":"error","usage":{"input":7,"output":0},"error_kind":"rate_limited","error":"Too many requests","banyan":{}}
{"schema_version":1,"seq":16,"time":"2024-06-07T22:40:06.000Z","type":"failed","turn_id":"e5","reason":"failed","message":"Too many requests","banyan":{"derived":true}}
"#;
    let (log, expected) = (session.log(), expected.trim_start());
    for (line, expected) in log.lines().zip(expected.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(log, expected);
    assert_eq!(crate::given::Session::of(crate::given::taken(&log)), session);
}
