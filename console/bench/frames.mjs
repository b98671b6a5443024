// How much of a frame the page needs while an answer is streamed into a session of 500 turns. Prints one line of JSON.
//
// node frames.mjs SERVER CHROMIUM SECONDS

import { chromium } from "playwright-core";

const [server, executablePath, seconds] = process.argv.slice(2);
const TURNS = 500;
const EVERY = 20;
const session_id = "s_page_frames";

const call = async (name, request) => {
  const response = await fetch(`${server}/v1/call/session::${name}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ session_id, ...request }),
  });
  if (!response.ok) throw new Error(`${name}: ${await response.text()}`);
  return response.json();
};
const said = (role, content, more) => call("append", { message: { role, content, timestamp: 1, ...more } });
const model = { model: "m", provider: "p", stop_reason: "end" };

// An answer as agents give them: a call, its result, and a screen of Markdown.
const answer = async (n) => {
  const id = `call_${n}`;
  const asked = { type: "function_call", id, function_id: "search_web", arguments: { query: `figures of ${n}` } };
  await said("assistant", [asked], { ...model, stop_reason: "function_call" });
  await said("function_result", [{ type: "text", text: `found ${n}` }], { function_call_id: id, function_id: "search_web", is_error: false });
  const words = "Words of an answer that is not short. ".repeat(12);
  const code = "```rust\nfn main() {\n    println!(\"{}\", 1);\n}\n```";
  const text = `## Part ${n}\n\nIt is **${n}**, with \`code\` and a [link](https://example.org). ${words}\n\n- one\n- two\n\n${code}\n\n| a | b |\n|---|---|\n| 1 | 2 |`;
  return (await said("assistant", [{ type: "text", text }], model)).entry_id;
};

await call("ensure", {});
let entry_id;
for (let n = 0; n < TURNS; n++) {
  await said("user", [{ type: "text", text: `Question ${n}` }]);
  entry_id = await answer(n);
}
await call("set-status", { status: "working" });

const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
const begun = performance.now();
await page.goto(`${server}/sessions/${session_id}`);
await page.waitForFunction(() => document.querySelector(".turn:last-child .prose table"));
const shown = performance.now() - begun;
// All turns are on the page, and none is left to be rendered.
for (;;) {
  const count = await page.locator(".turn").count();
  if (count >= 2 * TURNS) break;
  await page.click("#earlier");
  await page.waitForFunction((before) => document.querySelectorAll(".turn").length > before, count);
}
await page.waitForFunction(() => [...document.querySelectorAll(".turn .body")].every((body) => body.childElementCount > 0));
await page.click("#newest");
await page.evaluate(() => {
  window.work = [];
  window.apart = [];
  let last = 0;
  let start = 0;
  // A message that is sent at the start of a frame arrives when the frame is laid out and painted.
  const channel = new MessageChannel();
  channel.port1.onmessage = () => window.work.push(performance.now() - start);
  const frame = (now) => {
    if (last) window.apart.push(now - last);
    last = now;
    start = performance.now();
    channel.port2.postMessage(null);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
});

// The browser's own account of each frame. It counts what the main thread computed, whoever else wanted the processor meanwhile.
await browser.startTracing(page, { categories: ["cc"] });
const words = "Lorem ipsum dolor sit amet, **consectetur** adipiscing elit, `sed` do eiusmod tempor incididunt ut labore.".split(" ");
let updates = 0;
const first = performance.now();
while (performance.now() - first < seconds * 1000) {
  const text = `${updates % 60 === 0 ? "\n\n" : " "}${words[updates % words.length]}`;
  await call("extend-message", { entry_id, block: 0, text });
  updates += 1;
  const rest = first + updates * EVERY - performance.now();
  if (rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
}
const elapsed = (performance.now() - first) / 1000;
const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
const computed = traceEvents.filter(({ name, ph }) => name === "ProxyMain::BeginMainFrame" && ph === "X").map(({ tdur }) => tdur / 1000);
const { work, apart } = await page.evaluate(() => ({ work: window.work, apart: window.apart }));
const spread = (values) => {
  const sorted = [...values].sort((one, other) => one - other);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
};
const late = apart.filter((between) => between > 25).length;
const found = { frames: work.length, computed: spread(computed), work: spread(work), late };
console.log(JSON.stringify({ turns: TURNS, updates, seconds: elapsed, shown, ...found }));
await browser.close();
