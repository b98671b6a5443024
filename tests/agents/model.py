"""A model that says one sentence, in whatever protocol it is asked: OpenAI Responses and Chat Completions, Anthropic Messages, Gemini.

It listens on loopback only. The first part of a request's path is a label that the caller chose; everything that was asked under a
label is kept, so that a test can look at what an agent sent.
"""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REPLY = "Understood, and carried on."
USAGE = 12


class Model:
    """The server, and what it was asked."""

    def __init__(self):
        self.asked = {}
        self.lock = threading.Lock()
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                models = [{"id": name, "object": "model"} for name in ("gpt-5", "gpt-4o", "fake-model")]
                self.answer({"object": "list", "data": models, "models": []})

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                try:
                    body = json.loads(body)
                except ValueError:
                    body = {}
                path = self.path.split("?")[0]
                with model.lock:
                    model.asked.setdefault(path.split("/")[1], []).append(body)
                if path.endswith("count_tokens") or path.endswith(":countTokens"):
                    self.answer({"input_tokens": USAGE, "totalTokens": USAGE})
                elif path.endswith("/responses"):
                    self.tell(responses(), body)
                elif path.endswith("/chat/completions"):
                    self.tell(chat() if body.get("stream") else [(None, chat_whole())], body)
                elif path.endswith("/messages"):
                    self.tell(messages() if body.get("stream") else [(None, messages_whole())], body)
                elif "enerateContent" in path:
                    whole = gemini(body)
                    self.tell([(None, whole)], {"stream": "stream" in path})
                else:
                    self.answer({})

            def tell(self, events, body):
                if not body.get("stream"):
                    return self.answer(events[-1][1])
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                for name, data in events:
                    named = f"event: {name}\n" if name else ""
                    text = data if isinstance(data, str) else json.dumps(data)
                    self.wfile.write(f"{named}data: {text}\n\n".encode())
                self.close_connection = True

            def answer(self, value):
                text = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def asked_under(self, label):
        with self.lock:
            return list(self.asked.get(label, []))


def responses():
    item = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": REPLY, "annotations": []}]}
    usage = {"input_tokens": USAGE, "output_tokens": USAGE, "total_tokens": 2 * USAGE,
             "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    whole = {"id": "resp_1", "object": "response", "created_at": int(time.time()), "status": "completed",
             "model": "gpt-5", "output": [item], "usage": usage}
    events = [
        ("response.created", {"response": {**whole, "status": "in_progress", "output": [], "usage": None}}),
        ("response.output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress", "content": []}}),
        ("response.content_part.added", {"item_id": "msg_1", "output_index": 0, "content_index": 0,
                                         "part": {"type": "output_text", "text": "", "annotations": []}}),
        ("response.output_text.delta", {"item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": REPLY}),
        ("response.output_text.done", {"item_id": "msg_1", "output_index": 0, "content_index": 0, "text": REPLY}),
        ("response.content_part.done", {"item_id": "msg_1", "output_index": 0, "content_index": 0,
                                        "part": item["content"][0]}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": whole}),
    ]
    return [(name, {"type": name, "sequence_number": at, **data}) for at, (name, data) in enumerate(events)]


def chat():
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": int(time.time()), "model": "fake-model"}
    chunk = lambda delta, reason=None: {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    usage = {"prompt_tokens": USAGE, "completion_tokens": USAGE, "total_tokens": 2 * USAGE}
    return [(None, chunk({"role": "assistant", "content": ""})), (None, chunk({"content": REPLY})),
            (None, chunk({}, "stop")), (None, {**base, "choices": [], "usage": usage}), (None, "[DONE]")]


def chat_whole():
    message = {"role": "assistant", "content": REPLY}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": int(time.time()), "model": "fake-model",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": USAGE, "completion_tokens": USAGE, "total_tokens": 2 * USAGE}}


def messages_whole():
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": REPLY}], "stop_reason": "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": USAGE, "output_tokens": USAGE}}


def messages():
    begun = {**messages_whole(), "content": [], "stop_reason": None}
    events = [
        ("message_start", {"message": begun}),
        ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": REPLY}}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": "end_turn", "stop_sequence": None},
                           "usage": {"output_tokens": USAGE}}),
        ("message_stop", {}),
    ]
    return [(name, {"type": name, **data}) for name, data in events]


def gemini(body):
    settings = body.get("generationConfig") or {}
    wants_json = settings.get("responseMimeType") == "application/json"
    text = json.dumps({"next_speaker": "user", "reasoning": REPLY, "summary": REPLY}) if wants_json else REPLY
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": USAGE, "candidatesTokenCount": USAGE, "totalTokenCount": 2 * USAGE},
            "modelVersion": "gemini-2.5-pro"}
