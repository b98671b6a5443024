import assert from "node:assert/strict";
import { test } from "node:test";
import { FrameReader } from "../src/sse";

const STREAM = [
  ": a comment\n\n",
  "event: history::message\ndata: {\"a\":\ndata: 1}\n\n",
  "id: 7-0\nevent:history::ready\ndata: {}\n\n",
  "id: 8-0\r\nevent: x\r\ndata: carriage\r\n\r\n",
  "event: no data\n\n",
  "data: é😀\n\n",
].join("");
const FRAMES = [
  { id: null, event: "history::message", data: '{"a":\n1}' },
  { id: "7-0", event: "history::ready", data: "{}" },
  { id: "8-0", event: "x", data: "carriage" },
  { id: null, event: "message", data: "é😀" },
];

test("a stream is read the same wherever it is cut", () => {
  assert.deepEqual(new FrameReader().read(STREAM), FRAMES);
  for (let size = 1; size < 40; size++) {
    const reader = new FrameReader();
    const frames = [];
    for (let at = 0; at < STREAM.length; at += size) frames.push(...reader.read(STREAM.slice(at, at + size)));
    assert.deepEqual(frames, FRAMES, `pieces of ${size}`);
  }
});

test("a frame that is not complete is not told", () => {
  assert.deepEqual(new FrameReader().read("data: half\n"), []);
});
