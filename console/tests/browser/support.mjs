// What the tests in a browser share: the browser, calls to the server, and a page that is watched.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { connect, createServer } from "node:net";
import { after } from "node:test";
import { chromium } from "playwright-core";

export const SERVER = process.env.BANYAN_URL;
const PICTURES = process.env.BANYAN_SCREENSHOTS;
const PATIENCE = 60_000;

const browser = await chromium.launch({
  executablePath: process.env.BANYAN_CHROMIUM,
  args: [
    ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
    ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
  ],
});
after(() => browser.close());

// Calls a function of the server.
export const call = async (name, request, key) => {
  const headers = { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) };
  const response = await fetch(`${SERVER}/v1/call/session::${name}`, { method: "POST", headers, body: JSON.stringify(request) });
  const answer = await response.json();
  assert.equal(response.status, 200, `${name}: ${JSON.stringify(answer)}`);
  return answer;
};

let sessions = 0;

// A new session, and what is said in it.
export class Writer {
  constructor(id = `s_${process.pid}_${++sessions}`, key) {
    this.id = id;
    this.key = key;
  }

  async create(title = "") {
    await this.call("ensure", { title });
    return this;
  }

  call(name, request) {
    return call(name, { session_id: this.id, ...request }, this.key);
  }

  async ask(text) {
    const message = { role: "user", content: [{ type: "text", text }], timestamp: Date.now() };
    return (await this.call("append", { message })).entry_id;
  }

  async answer(content, more = {}) {
    const message = { role: "assistant", content, timestamp: Date.now(), model: "test-model", provider: "test", stop_reason: "end", ...more };
    return (await this.call("append", { message })).entry_id;
  }

  // A part of any type, as front ends show it.
  async part(part) {
    const message = { role: "custom", custom_type: "history.part", content: [], details: part, timestamp: Date.now() };
    return (await this.call("append", { message })).entry_id;
  }

  // What front ends read of it.
  async history() {
    const headers = this.key ? { authorization: `Bearer ${this.key}` } : {};
    const response = await fetch(`${SERVER}/sessions/${encodeURIComponent(this.id)}/history`, { headers });
    assert.equal(response.status, 200);
    return response.json();
  }
}

// A browser's page, and everything about it that should not be.
export const open = async (session, { at = SERVER, scheme = "light", viewport = { width: 1000, height: 900 } } = {}) => {
  const context = await browser.newContext({ colorScheme: scheme, viewport });
  const page = await context.newPage();
  const wrong = [];
  page.setDefaultTimeout(PATIENCE);
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    if (message.text().startsWith("policy: ")) wrong.push(message.text());
  });
  // Requests that the policy of the frame for diagrams stops are told by that policy.
  const outside = (address) => !address.startsWith(`${at}/`) && !/^(?:data|blob):/.test(address);
  const told = (request) => request.frame() !== page.mainFrame() && request.failure()?.errorText === "csp";
  const noticed = (request) => outside(request.url()) && !told(request) && wrong.push(`request: ${request.url()}`);
  page.on("requestfinished", noticed);
  page.on("requestfailed", noticed);
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", ({ violatedDirective, sample, blockedURI }) => {
      console.error(`policy: ${location.pathname} ${violatedDirective} ${blockedURI} ${sample}`);
    });
  });
  await page.goto(`${at}/sessions/${encodeURIComponent(session)}`);
  return Object.assign(page, { wrong });
};

// What stands on the page, without how it is spaced.
export const shown = (page, selector = ".turn .body") =>
  page.$$eval(selector, (found) => found.map((one) => one.textContent.replace(/\s+/g, " ").trim()));

// Opens every row, and looks at everything that waits to be seen until it is there.
export const unfold = async (page) => {
  const waiting = await page.evaluate(async (patience) => {
    for (const row of document.querySelectorAll("#conversation details")) row.open = true;
    const end = performance.now() + patience;
    const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    const waits = (figure) =>
      figure.textContent.includes("Drawing the diagram") ||
      figure.querySelector(".canvas:empty") !== null ||
      [...figure.querySelectorAll("img")].some((image) => !image.complete);
    for (const figure of document.querySelectorAll("#conversation figure")) {
      while (waits(figure)) {
        if (performance.now() > end) return figure.textContent;
        figure.scrollIntoView({ block: "center" });
        await frame();
      }
    }
    // Rows are filled after they were opened.
    await frame();
    return null;
  }, PATIENCE);
  assert.equal(waiting, null);
};

// Waits until the page says this about its connection.
export const connection = (page, state) => page.waitForSelector(`#connection[data-is="${state}"]`);

// A picture of the page, for people, when they ask for one.
export const picture = async (page, name) => {
  if (!PICTURES) return;
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: `${PICTURES}/${name}.png` });
};

// A way to the server that can be cut.
export const cuttable = async () => {
  const { hostname, port } = new URL(SERVER);
  const open = new Set();
  let cut = false;
  const door = createServer((near) => {
    if (cut) return near.destroy();
    const far = connect(Number(port), hostname);
    for (const [one, other] of [[near, far], [far, near]]) {
      open.add(one);
      one.pipe(other);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
    }
  });
  await new Promise((resolve) => door.listen(0, "127.0.0.1", resolve));
  after(() => {
    for (const socket of open) socket.destroy();
    door.close();
  });
  return {
    url: `http://127.0.0.1:${door.address().port}`,
    cut() {
      cut = true;
      for (const socket of open) socket.destroy();
    },
    mend() {
      cut = false;
    },
  };
};
