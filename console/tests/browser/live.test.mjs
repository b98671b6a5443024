// A session that is written while the page is open.

import assert from "node:assert/strict";
import { test } from "node:test";
import { connection, cuttable, open, shown, Writer } from "./support.mjs";

const tidy = (text) => text.replace(/\s+/g, " ").trim();
// What the store has, as the page should show it. The texts of these tests have no markup in them.
const stored = async (writer) =>
  (await writer.history()).map(({ parts, text_content }) =>
    tidy(parts.length > 0 ? parts.map((part) => part.text).join(" ") : text_content),
  );
const caughtUp = (page, text) =>
  page.waitForFunction((end) => document.querySelector("#conversation")?.textContent.includes(end), text);
// The answer so far, in pieces that are cut anywhere.
const pieces = (from, to) =>
  Array.from({ length: to - from }, (_, n) => ` word${from + n}${(from + n) % 9 === 8 ? ".\n\nParagraph" : ""}`);

test("an answer is shown as it is written, over a reload, to its end", async () => {
  const writer = await new Writer().create("A long talk");
  for (let n = 0; n < 20; n++) {
    await writer.ask(`question ${n}`);
    await writer.answer([{ type: "text", text: `answer ${n}` }]);
  }
  const page = await open(writer.id);
  await connection(page, "live");
  await caughtUp(page, "answer 19");
  await writer.ask("tell me more");
  await writer.call("set-status", { status: "working" });
  const entry = await writer.answer([{ type: "text", text: "It begins." }]);
  const extend = async (text) => writer.call("extend-message", { entry_id: entry, block: 0, text });
  await page.waitForSelector('.turn[data-status="streaming"]');
  for (const piece of pieces(0, 60)) await extend(piece);
  await caughtUp(page, "word59");
  assert.deepEqual(await shown(page), await stored(writer));

  // In the middle of it the page is loaded anew, and nobody waits for it.
  const going = (async () => {
    for (const piece of pieces(60, 160)) await extend(piece);
  })();
  await page.reload();
  await going;
  await caughtUp(page, "word159");
  await extend(" The end.");
  await writer.call("set-status", { status: "done" });
  await page.waitForSelector('.turn:last-child[data-status="complete"]');
  await caughtUp(page, "The end.");
  assert.deepEqual(await shown(page), await stored(writer));
  assert.equal(await page.textContent("#title"), "A long talk");
  assert.deepEqual(page.wrong, []);
});

test("what is shown already is not touched while an answer grows", async () => {
  const writer = await new Writer().create();
  for (let n = 0; n < 30; n++) {
    await writer.ask(`question ${n}`);
    await writer.answer([{ type: "text", text: `answer ${n}` }]);
  }
  await writer.ask("and?");
  await writer.call("set-status", { status: "working" });
  const entry = await writer.answer([{ type: "thinking", text: "hm" }, { type: "text", text: "First paragraph." }]);
  const page = await open(writer.id);
  await caughtUp(page, "First paragraph.");
  await page.waitForFunction(() => [...document.querySelectorAll(".turn .body")].every((body) => body.childElementCount > 0));
  await page.evaluate(() => {
    window.touched = 0;
    const turns = [...document.querySelectorAll(".turn")];
    const watch = new MutationObserver((changes) => (window.touched += changes.length));
    const watched = { subtree: true, childList: true, characterData: true, attributes: true };
    for (const turn of turns.slice(0, -1)) watch.observe(turn, watched);
    watch.observe(turns.at(-1).querySelector(".activity"), watched);
    window.first = turns.at(-1).querySelector(".prose p");
  });
  for (const piece of pieces(0, 50)) await writer.call("extend-message", { entry_id: entry, block: 1, text: piece });
  await caughtUp(page, "word49");
  assert.equal(await page.evaluate(() => window.touched), 0);
  // Its first paragraph is new once, when the second one begins, and the same element ever after.
  const kept = () => page.evaluate(() => (window.kept ??= document.querySelector(".turn:last-child .prose p")).isConnected);
  assert.equal(await kept(), true);
  for (const piece of pieces(50, 80)) await writer.call("extend-message", { entry_id: entry, block: 1, text: piece });
  await caughtUp(page, "word79");
  assert.equal(await kept(), true);
  assert.deepEqual(page.wrong, []);
});

test("a connection that is lost is made again, with nothing lost and nothing doubled", async () => {
  const way = await cuttable();
  const writer = await new Writer().create();
  await writer.ask("go on");
  await writer.call("set-status", { status: "working" });
  const entry = await writer.answer([{ type: "text", text: "It begins." }]);
  const page = await open(writer.id, { at: way.url });
  await caughtUp(page, "It begins.");
  for (let round = 0; round < 3; round++) {
    way.cut();
    await connection(page, "lost");
    for (const piece of pieces(round * 20, round * 20 + 20)) {
      await writer.call("extend-message", { entry_id: entry, block: 0, text: piece });
    }
    way.mend();
    await connection(page, "live");
    await caughtUp(page, `word${round * 20 + 19}`);
    assert.deepEqual(await shown(page), await stored(writer));
  }
  assert.deepEqual(page.wrong, []);
});

test("another branch takes the place of the one before", async () => {
  const writer = await new Writer().create();
  await writer.ask("which way?");
  const fork = await writer.answer([{ type: "text", text: "Choose." }]);
  await writer.ask("left");
  await writer.answer([{ type: "text", text: "So it is left." }]);
  const page = await open(writer.id);
  await caughtUp(page, "So it is left.");
  await writer.call("set-active-leaf", { entry_id: fork });
  await writer.ask("right");
  await writer.answer([{ type: "text", text: "So it is right." }]);
  await caughtUp(page, "So it is right.");
  await page.waitForFunction(() => !document.querySelector("#conversation").textContent.includes("left"));
  assert.deepEqual(await shown(page), await stored(writer));
  assert.deepEqual(page.wrong, []);
});

test("a long session begins at its end, and what is earlier comes when it is asked for", async () => {
  const writer = await new Writer().create();
  for (let n = 0; n < 250; n++) {
    await writer.ask(`question ${n}.`);
    await writer.answer([{ type: "text", text: `answer ${n}.` }]);
  }
  const page = await open(writer.id);
  await caughtUp(page, "answer 249.");
  await page.waitForSelector("#earlier:not([hidden])");
  assert.equal(await page.locator(".turn").count(), 400);
  await page.click("#earlier");
  await page.waitForFunction(() => [...document.querySelectorAll(".turn")].filter((turn) => turn.textContent).length === 500);
  assert.equal(await page.isHidden("#earlier"), true);
  assert.deepEqual(await shown(page), await stored(writer));
  await writer.ask("one more.");
  await caughtUp(page, "one more.");
  assert.deepEqual(await shown(page), await stored(writer));
  assert.deepEqual(page.wrong, []);
});

test("how a turn ended is said in words", async () => {
  const writer = await new Writer().create();
  await writer.ask("one");
  await writer.answer([{ type: "text", text: "half of it" }], { stop_reason: "aborted" });
  await writer.ask("two");
  await writer.answer([{ type: "text", text: "a bit" }], { stop_reason: "error", error_message: "The model is gone." });
  const page = await open(writer.id);
  await caughtUp(page, "The model is gone.");
  assert.deepEqual(await shown(page, ".turn footer .state"), ["Stopped before the end", "Failed"]);
  assert.deepEqual(page.wrong, []);
});
