// Content that tries to run something, in every part type and every field. Nothing of it runs, and nothing of it leaves.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { EVERY_PART } from "./every_part.mjs";
import { open, shown, unfold, Writer } from "./support.mjs";

// Whoever is reached here was let out.
const reached = [];
const outside = createServer((request, response) => {
  reached.push(request.url);
  response.end();
});
await new Promise((resolve) => outside.listen(0, "127.0.0.1", resolve));
after(() => outside.close());
const OUT = `http://127.0.0.1:${outside.address().port}`;
const RUN = `window.ran=1;top.ran=1;alert(1);new Image().src='${OUT}/ran'`;
const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="${RUN}"><script>${RUN}</script><image href="${OUT}/svg"/><foreignObject><body xmlns="http://www.w3.org/1999/xhtml" onload="${RUN}"/></foreignObject></svg>`;

const PAYLOADS = {
  script: `<script>${RUN}</script>`,
  closing: `</script></style></title></textarea></pre></svg><script>${RUN}</script>`,
  handler: `"><img src=x onerror="${RUN}"><body onload="${RUN}">`,
  svg,
  mathml: `<math><mtext><table><mglyph><style><img src=x onerror="${RUN}"></style></mglyph></table></mtext></math>`,
  frame: `<iframe srcdoc="<script>${RUN}</script>"></iframe><iframe src="javascript:${RUN}"></iframe><object data="${OUT}/object"></object><embed src="${OUT}/embed">`,
  loads: `<img src="${OUT}/img"><link rel="stylesheet" href="${OUT}/css"><style>@import url(${OUT}/import)</style><base href="${OUT}/"><meta http-equiv="refresh" content="0;url=${OUT}/meta"><video src="${OUT}/video" autoplay></video><form action="${OUT}/form"><button autofocus>x</button></form>`,
  address: `${OUT}/address.png`,
  "address without a scheme": `//${OUT.slice(7)}/address.png`,
  javascript: `javascript:${RUN}`,
  shouted: `JaVa\tScRiPt:${RUN}`,
  data: `data:text/html,<script>${RUN}</script>`,
  picture: `data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`,
  "picture that breaks out": `data:image/png;base64,x" onerror="${RUN}`,
  links: `[a](javascript:${RUN}) [b](data:text/html,x) <javascript:alert(1)> ![c](${OUT}/md.png) ![d](javascript:alert(1)) [e](https://example.org "x\\" onmouseover=\\"${RUN}")`,
  reference: `[x]\n\n[x]: javascript:${RUN}\n\n[y](  javascript&colon;alert(1))`,
  fence: `\`\`\`"><img src=x onerror=${RUN}>\n<script>${RUN}</script>\n\`\`\``,
  template: "{{constructor.constructor('window.ran=1')()}}${window.ran=1}",
  prototype: '__proto__',
};

// The part with this in place of each text, the names of fields included where the writer chooses them.
const poisoned = (value, payload, key = "") => {
  if (key === "type" && value !== undefined && typeof value === "string") return value;
  if (key === "activity_type") return value;
  if (typeof value === "string") return payload;
  if (Array.isArray(value)) return value.map((one) => poisoned(one, payload));
  if (value === null || typeof value !== "object") return value;
  const copy = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, poisoned(one, payload, name)]));
  if (key === "arguments" || key === "data") Object.defineProperty(copy, payload, { value: payload, enumerable: true });
  return copy;
};

// Diagrams that Mermaid understands, and that ask for more than they may.
const DIAGRAMS = {
  labels: `graph TD\n  A["<img src=${OUT}/label onerror=${RUN}><script>${RUN}</script><b onclick=${RUN}>bold</b>"]-->B\n  B["<a href='javascript:${RUN}'>x</a>"]-->C`,
  clicks: `graph TD\n  A-->B\n  click A "javascript:window.ran=1" _self\n  click B call alert("x")\n  click A href "${OUT}/href" _top`,
  directives: `%%{init: {"securityLevel": "loose", "htmlLabels": true, "flowchart": {"htmlLabels": true}, "themeCSS": "@import url(${OUT}/import); * { background: url(${OUT}/css) }", "fontFamily": "x; } * { background: url(${OUT}/font) }"}}%%\ngraph TD\n  A["<img src=${OUT}/loose onerror=${RUN}>"]-->B`,
  styles: `graph TD\n  A-->B\n  style A fill:#fff,background-image:url('${OUT}/style')\n  classDef x fill:#f00,stroke:url(${OUT}/class)\n  class B x`,
  pictures: `flowchart TD\n  A@{ img: "${OUT}/node.png", label: "x", w: 60, h: 60 }\n  A-->B`,
  sequence: "sequenceDiagram\n  participant A as <img src=x onerror=window.ran=1>\n  links A: {\"go\": \"javascript:window.ran=1\"}\n  A->>A: <script>window.ran=1</script>",
  classes: `classDiagram\n  class A["<img src=x onerror=window.ran=1>"]\n  click A href "javascript:window.ran=1"\n  note for A "<img src=${OUT}/note onerror=window.ran=1>"`,
  pie: `pie title <img src=${OUT}/pie onerror=${RUN}>\n  "<script>${RUN}</script>" : 3`,
  "front matter": `---\ntitle: <img src=${OUT}/title onerror=${RUN}>\nconfig:\n  securityLevel: loose\n  htmlLabels: true\n  themeCSS: "* { background: url(${OUT}/matter) }"\n---\ngraph TD\n  A-->B`,
};

// Nothing has run, nothing can run when it is clicked, and nothing was asked for elsewhere.
const check = async (page, name) => {
  for (const frame of page.frames()) assert.equal(await frame.evaluate(() => window.ran), undefined, `${name} ran`);
  const found = await page.evaluate(() => ({
    handlers: [...document.querySelectorAll("*")].flatMap((one) => one.getAttributeNames().filter((attribute) => /^on|^style$/.test(attribute) && !one.matches("canvas, .activity"))),
    links: [...document.querySelectorAll("a")].filter((one) => !/^(?:https?|mailto):/.test(one.href) || !/noopener noreferrer/.test(one.rel)).length,
    strange: document.querySelectorAll("#conversation :is(script, style, link, meta, base, iframe, object, embed, svg, math, video, audio, form)").length,
    scripts: document.scripts.length,
    frames: [...document.querySelectorAll("iframe")].filter((one) => one.className !== "drawer" || one.getAttribute("sandbox") !== "allow-scripts").length,
    polluted: {}.polluted,
  }));
  assert.deepEqual(found, { handlers: [], links: 0, strange: 0, scripts: 1, frames: 0, polluted: undefined }, name);
  assert.deepEqual(reached, [], name);
  // In the frame that draws diagrams the policy is what stops them: Mermaid itself tries to load the pictures that they name.
  const wrong = page.wrong.filter((one) => !one.startsWith("policy: /console/diagram-"));
  assert.deepEqual(wrong, [], name);
};

// A few at a time, for opening a page takes longest.
const names = Object.keys(PAYLOADS);
for (const some of [names.slice(0, 7), names.slice(7, 13), names.slice(13)]) {
  test(`in every part type and field: ${some.join(", ")}`, async () => {
    const writer = await new Writer().create(PAYLOADS[some[0]]);
    for (const name of some) {
      const payload = PAYLOADS[name];
      await writer.ask(payload);
      for (const part of Object.values(EVERY_PART)) await writer.part(poisoned(part, payload));
      const failed = { model: payload, agent: payload, error_message: payload, stop_reason: "error" };
      await writer.answer([{ type: "thinking", text: payload }, { type: "text", text: payload }], failed);
    }
    const page = await open(writer.id);
    const count = some.length * (Object.keys(EVERY_PART).length + 3);
    await page.waitForFunction((parts) => document.querySelectorAll('[data-role="assistant"] .part').length === parts, count);
    await unfold(page);
    await check(page, some.join(", "));
  });
}

test("diagrams that ask for more than they may", async () => {
  const writer = await new Writer().create();
  await writer.ask("draw");
  for (const definition of Object.values(DIAGRAMS)) await writer.part({ type: "mermaid_diagram", definition });
  const page = await open(writer.id);
  await page.waitForFunction((count) => document.querySelectorAll(".diagram").length === count, Object.keys(DIAGRAMS).length);
  await unfold(page);
  await check(page, "diagrams");
  const drawn = await page.$$eval(".drawing", (found) => found.map((place) => (place.querySelector("img")?.naturalWidth ?? 0) > 0));
  const refused = Object.keys(DIAGRAMS).filter((_, at) => !drawn[at]);
  // Of the others we would not know whether they were stopped or only not understood.
  assert.deepEqual(refused, ["styles", "pictures"]);
});

test("objects that would change all others", async () => {
  const writer = await new Writer().create();
  await writer.ask("draw");
  const evil = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}';
  const config = JSON.parse(`{"type":"bar","__proto__":{"polluted":1},"data":{"labels":["a"],"datasets":[{"data":[1]}],"__proto__":{"polluted":1}},"options":${evil}}`);
  await writer.part({ ...EVERY_PART.chart, chartConfig: config });
  await writer.part({ ...EVERY_PART.request, tools: [{ name: "x", arguments: JSON.parse(evil) }], display_info: JSON.parse(evil) });
  await writer.part({ ...EVERY_PART.form, definition: JSON.parse(evil) });
  const page = await open(writer.id);
  await page.waitForSelector(".chart");
  await unfold(page);
  await check(page, "prototypes");
});

test("text that becomes a tag only when it has grown", async () => {
  const writer = await new Writer().create();
  await writer.ask("go on");
  await writer.call("set-status", { status: "working" });
  const entry = await writer.answer([{ type: "text", text: "It begins. " }]);
  const page = await open(writer.id);
  await page.waitForFunction(() => document.querySelector("#conversation").textContent.includes("It begins."));
  for (const piece of ["<scr", "ipt>", RUN, "</scr", "ipt>\n\n<img src=x on", `error="${RUN}">`, "[a](java", `script:${RUN})`, "\n\nThe end."]) {
    await writer.call("extend-message", { entry_id: entry, block: 0, text: piece });
  }
  await page.waitForFunction(() => document.querySelector("#conversation").textContent.includes("The end."));
  const [, answer] = await shown(page);
  assert.ok(answer.includes("<script>") && answer.includes("<img src=x onerror="), "it is shown as the text that it is");
  await check(page, "grown");
});

test("a session's id", async () => {
  const writer = await new Writer(`"><img src=x onerror=${RUN}><script>${RUN}</script>`).create();
  await writer.ask("hello");
  const page = await open(writer.id);
  await page.waitForFunction(() => document.querySelector(".turn")?.textContent.includes("hello"));
  assert.equal(await page.textContent("#title"), writer.id);
  await check(page, "id");
});

test("the page's policy stops what the sanitiser would have missed", async () => {
  const writer = await new Writer().create();
  await writer.ask("hello");
  const page = await open(writer.id);
  await page.waitForSelector(".turn .prose p");
  const stopped = await page.evaluate(async (run) => {
    const seen = [];
    addEventListener("securitypolicyviolation", ({ effectiveDirective }) => seen.push(effectiveDirective));
    const place = document.querySelector(".prose");
    const attempt = (name, act) => {
      try {
        act();
      } catch {
        seen.push(name);
      }
    };
    attempt("markup", () => (place.innerHTML = `<img src=x onerror="${run}">`));
    attempt("handler", () => place.setAttribute("onclick", run));
    attempt("text of a script", () => (document.createElement("script").text = run));
    attempt("address of a script", () => (document.createElement("script").src = "data:,window.ran=1"));
    attempt("text to run later", () => setTimeout("window.ran = 1"));
    const link = Object.assign(document.createElement("a"), { href: "javascript:window.ran=1" });
    place.append(link);
    link.click();
    await fetch("https://elsewhere.example/").catch(() => seen.push("fetch"));
    const image = new Image();
    const failed = new Promise((resolve) => image.addEventListener("error", resolve));
    image.src = "https://elsewhere.example/a.png";
    await failed;
    return { ran: window.ran, seen };
  }, RUN);
  assert.equal(stopped.ran, undefined);
  const expected = ["markup", "handler", "text of a script", "address of a script", "text to run later", "fetch", "connect-src", "img-src"];
  for (const one of expected) assert.ok(stopped.seen.includes(one), `${one} is not among ${stopped.seen}`);
  assert.deepEqual(reached, []);
});
