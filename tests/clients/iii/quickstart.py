"""The quickstart of session-manager, on the SDK for Python: a conversation, and a reply that is heard as it grows.

python quickstart.py <url>
"""

import json
import os
import sys
import threading
import warnings

from iii import InitOptions, register_worker

warnings.simplefilter("ignore", DeprecationWarning)
iii = register_worker(sys.argv[1], InitOptions(worker_name="quickstart"))


def call(function_id, payload):
    return iii.trigger({"function_id": function_id, "payload": payload, "timeout_ms": 20000})


def content(text):
    return [{"type": "text", "text": text}]


session_id = call("session::create", {"title": "Weather question", "metadata": {"owner": "u_1"}})["session_id"]
question = {"role": "user", "content": content("What's the weather?"), "timestamp": 1717800000000}
call("session::append", {"session_id": session_id, "message": question})

revisions, last, done = [], [], threading.Event()


async def on_message_updated(event):
    revisions.append(event["revision"])
    if event["revision"] == 3:
        last.append(event["message"]["content"][0]["text"])
        done.set()
    return {"ok": True}


iii.register_function("my-ui::on-message-updated", on_message_updated)
iii.register_trigger({
    "type": "session::message-updated",
    "function_id": "my-ui::on-message-updated",
    "config": {"session_id": session_id, "roles": ["assistant"]},
})

reply = {
    "role": "assistant", "content": content(""), "model": "m", "provider": "p", "stop_reason": "end",
    "timestamp": 1717800000001,
}
entry_id = call("session::append", {"session_id": session_id, "message": reply})["entry_id"]
text = ""
for token in ["It ", "will ", "rain."]:
    text += token
    call("session::update-message", {"session_id": session_id, "entry_id": entry_id, "content": content(text)})
done.wait(60)
messages = call("session::messages", {"session_id": session_id})["messages"]
texts = [it["message"]["content"][0]["text"] for it in messages]
try:
    call("session::append", {"session_id": "nobody", "message": reply})
    refused = False
except Exception as error:
    refused = "session/not_found: " in str(error)
print(json.dumps({"texts": texts, "revisions": revisions, "last": last[0] if last else None, "refused": refused}))
sys.stdout.flush()
os._exit(0)
