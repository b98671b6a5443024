// Every type of part is shown.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { EVERY_PART } from "./every_part.mjs";
import { open, picture, shown, unfold, Writer } from "./support.mjs";

const writer = await new Writer().create("Trip to Paris");
await writer.ask("What is the weather in Paris,\nand how was the year so far?");
for (const part of Object.values(EVERY_PART)) await writer.part(part);
const names = Object.keys(EVERY_PART);

const all = async (scheme) => {
  const page = await open(writer.id, { scheme });
  await page.waitForFunction((count) => document.querySelectorAll('[data-role="assistant"] .part').length === count, names.length);
  await unfold(page);
  return page;
};

test("every part is where it was said, and nothing is missing", async () => {
  const page = await all("light");
  const texts = await shown(page, '[data-role="assistant"] .part');
  const said = Object.fromEntries(names.map((name, at) => [name, texts[at]]));
  const has = (name, ...words) => words.forEach((word) => assert.ok(said[name].includes(word), `${name}: ${word} in ${said[name]}`));
  has("text", "The weather", "18 °C", "the forecast", "umbrella", "It never rains", "Tue", 'println!("Bonjour, {}", "Paris");', "a map");
  has("thought", "Thought", "They want two things", "from llamaindex_agent");
  has("request", "Recherche web", "search_web", "weather Paris", '"lang": "fr"');
  has("result", "Résultat", "Weather in Paris: 18°C, partly cloudy");
  has("failure", "❌", "read_file failed", '"error": "no such file"');
  has("error", "Error", "The model was asked too often.");
  has("other", "🎓", "Skill", "Loading charts");
  has("options", "Que souhaitez-vous faire ?", "📊 Créer un graphique", "📄 Générer un PDF");
  has("diagram", "Source of the diagram", "D[Search the web]");
  has("diagram that is wrong", "This diagram cannot be drawn", "Parse error");
  has("chart", "Data of the chart", "Visitors");
  has("chart that is wrong", "This chart cannot be drawn", "no such kind");
  has("table", "Visitors by month", "Month", "15310", '{"fashion":"week"}');
  has("form", "Book a table", "We need a little more.", "Your name *", "Terrace", "vegetarian", "Remind me", "As you like", "Book");
  has("picture", "In the conversation");
  has("picture elsewhere", "Picture on another server, not loaded", "Somewhere else");
  has("file", "notes.txt", "text/plain, 5 bytes", "Save");
  has("file elsewhere", "report.pdf", "481.2 kB", "on another server");
  has("link", "Your invoice");
  has("media", "clip.mp3", "audio/mpeg");
  has("json", '"c": "d"');
  has("yaml", "b.yaml", '"b": 1');
  has("unknown", "Part of the type hologram", "kept");
  assert.deepEqual(page.wrong, []);
});

test("options and forms are to look at only", async () => {
  const page = await all("light");
  const controls = await page.$$eval('[data-type="form"] :is(input, select, textarea, button)', (found) =>
    found.map((one) => one.matches(":disabled")),
  );
  assert.deepEqual(controls, Array(8).fill(true));
  assert.equal(await page.$('[data-type="options_block"] :is(button, a, input)'), null);
});

test("diagrams are drawn as pictures and charts on a canvas", async () => {
  const page = await all("dark");
  const sizes = await page.$$eval(".drawing img", (found) => found.map((image) => [image.naturalWidth > 100, image.naturalHeight > 100]));
  assert.deepEqual(sizes, [[true, true], [true, true]]);
  assert.deepEqual(await page.$$eval(".picture img", (found) => found.map((image) => image.naturalWidth)), [320]);
  const colours = await page.$eval("canvas", (canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  });
  assert.ok(colours > 10, `${colours} colours`);
  assert.deepEqual(page.wrong, []);
});

test("a file is saved as it was", async () => {
  const page = await all("light");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click('[data-type="file_content_output"] button')]);
  assert.equal(download.suggestedFilename(), "notes.txt");
  assert.equal(readFileSync(await download.path(), "utf8"), "hello");
});

test("pictures of the page, light and dark", { skip: !process.env.BANYAN_SCREENSHOTS }, async () => {
  for (const scheme of ["light", "dark"]) {
    const page = await all(scheme);
    const height = await page.evaluate(() => document.documentElement.scrollHeight);
    await page.setViewportSize({ width: 1000, height });
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    await picture(page, `parts-${scheme}`);
  }
});
