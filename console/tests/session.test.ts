import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message, Part } from "../src/history";
import { keyOf, Session } from "../src/session";

const message = (id: string, role: string, ...parts: Part[]): Message => ({
  role,
  interaction_id: id,
  text_content: null,
  parts,
  response_text_main: null,
  timestamp: "2026-01-22T21:47:29.763430",
  processing_time_ms: null,
  model_used: null,
});
const text = (words: string): Part => ({ type: "text_output", text: words });
const thought = (words: string): Part => ({ type: "activity", activity_type: "thought", content: words });
const said = (session: Session): unknown =>
  session.order.map((key) => session.messages.get(key)?.parts.map((part) => part.text ?? part.content));

const loaded = (...messages: Message[]): Session => {
  const session = new Session();
  session.begin();
  for (const one of messages) session.take("history::message", one);
  session.take("history::ready", {});
  return session;
};

test("messages come in order, and a question and its answer are two", () => {
  const session = loaded(message("1", "user", text("why")), message("1", "assistant", text("because")));
  assert.deepEqual(said(session), [["why"], ["because"]]);
  assert.equal(session.ready, true);
});

test("a message that is sent again keeps the parts that did not change", () => {
  const session = loaded(message("1", "assistant", thought("hm"), text("a")), message("2", "user", text("b")));
  const key = keyOf({ interaction_id: "1", role: "assistant" });
  const before = session.messages.get(key)?.parts ?? [];
  const touched = session.take("history::message", message("1", "assistant", thought("hm"), text("a b"), text("c")));
  const after = session.messages.get(key)?.parts ?? [];
  assert.deepEqual(touched, { message: key });
  assert.equal(after[0], before[0]);
  assert.notEqual(after[1], before[1]);
  assert.deepEqual(said(session), [["hm", "a b", "c"], ["b"]]);
});

test("a delta adds to the end of one part and leaves the others the same objects", () => {
  const session = loaded(message("1", "assistant", thought("h"), text("a")));
  const key = session.order[0] ?? "";
  const before = session.messages.get(key)?.parts ?? [];
  session.take("history::delta", { interaction_id: "1", role: "assistant", part: 1, text: " b", main: true });
  const after = session.messages.get(key);
  assert.equal(after?.parts[0], before[0]);
  session.take("history::delta", { interaction_id: "1", role: "assistant", part: 0, text: "m" });
  assert.deepEqual(said(session), [["hm", "a b"]]);
  assert.equal(session.messages.get(key)?.response_text_main, " b");
});

test("a delta for what is not there changes nothing", () => {
  const session = loaded(message("1", "assistant", text("a")));
  for (const delta of [
    { interaction_id: "2", role: "assistant", part: 0, text: "x" },
    { interaction_id: "1", role: "assistant", part: 5, text: "x" },
  ]) {
    assert.equal(session.take("history::delta", delta), "nothing");
  }
  assert.deepEqual(said(session), [["a"]]);
});

test("when the path changes, what does not come again is gone and the new order holds", () => {
  const session = loaded(message("1", "user", text("a")), message("2", "user", text("b")), message("3", "user", text("c")));
  const kept = session.messages.get("user 3")?.parts[0];
  session.take("history::reset", {});
  for (const one of [message("3", "user", text("c")), message("1", "user", text("a")), message("4", "user", text("d"))]) {
    session.take("history::message", one);
  }
  assert.equal(session.take("history::ready", {}), "list");
  assert.deepEqual(said(session), [["c"], ["a"], ["d"]]);
  assert.equal(session.messages.get("user 3")?.parts[0], kept);
});

test("who comes back with a position keeps what is there", () => {
  const session = loaded(message("1", "user", text("a")));
  session.take("history::message", message("2", "user", text("b")));
  session.take("history::ready", {});
  assert.deepEqual(said(session), [["a"], ["b"]]);
});

test("earlier messages come before the others, and each is there once", () => {
  const session = loaded(message("3", "user", text("c")), message("4", "user", text("d")));
  const earlier = [message("1", "user", text("a")), message("2", "user", text("b")), message("3", "user", text("old"))];
  assert.equal(session.precede(earlier), "list");
  assert.deepEqual(said(session), [["a"], ["b"], ["c"], ["d"]]);
  assert.equal(session.precede(earlier), "nothing");
});

test("parts that are no parts keep their place, and messages that are no messages are passed over", () => {
  const session = loaded(message("1", "assistant", 7 as never, text("a")));
  session.take("history::delta", { interaction_id: "1", role: "assistant", part: 1, text: "b" });
  assert.equal(session.take("history::message", null), "nothing");
  assert.equal(session.take("history::message", { role: 1 }), "nothing");
  session.take("history::message", { ...message("2", "assistant"), parts: null });
  assert.deepEqual(said(session), [[undefined, "ab"], []]);
});

test("a session that is deleted says so", () => {
  const session = loaded(message("1", "user", text("a")));
  session.take("history::deleted", {});
  assert.equal(session.deleted, true);
});
