// Who may see a session, and what is said when there is nothing to see.

import assert from "node:assert/strict";
import { test } from "node:test";
import { connection, open, picture, shown, Writer } from "./support.mjs";

const KEY = process.env.BANYAN_KEY;
const says = (page, words) => page.waitForSelector(`#notice :text("${words}")`);

test("a server with keys asks for one, keeps it for the tab, and forgets it with the tab", { skip: !KEY }, async () => {
  const writer = await new Writer(undefined, KEY).create("Secret plans");
  await writer.ask("hello");
  const page = await open(writer.id);
  await says(page, "This server needs a key");
  assert.equal(await page.textContent("#title"), writer.id, "nothing is told without a key");
  await picture(page, "key");
  await page.fill("#notice input", "wrong");
  await page.click("#notice button");
  await says(page, "It does not know the one that you gave.");
  await page.fill("#notice input", KEY);
  await page.click("#notice button");
  await page.waitForSelector('.turn:has-text("hello")');
  await page.reload();
  await page.waitForSelector('.turn:has-text("hello")');
  await page.waitForSelector('#title:text("Secret plans")');
  const another = await open(writer.id);
  await says(another, "This server needs a key");
  assert.deepEqual(page.wrong, []);
});

test("attachments are fetched with the key", { skip: !KEY }, async () => {
  const writer = await new Writer(undefined, KEY).create();
  const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGNgYPiPBw1maQYGAGRPYp7ryiVnAAAAAElFTkSuQmCC";
  const response = await fetch(`${process.env.BANYAN_URL}/v1/sessions/${writer.id}/attachments?name=a.png`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "image/png" },
    body: Buffer.from(pixel, "base64"),
  });
  const answer = await response.json();
  assert.equal(response.status, 201, JSON.stringify(answer));
  await writer.part({ type: "image", url: response.headers.get("location"), alt: "kept here" });
  await writer.part({ type: "file_reference_output", file_id: "x", filename: "a.png", download_url: response.headers.get("location") });
  const page = await open(writer.id);
  await page.fill("#notice input", KEY);
  await page.click("#notice button");
  await page.waitForFunction(() => document.querySelector("figure img")?.naturalWidth === 10);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(".file button")]);
  assert.equal(download.suggestedFilename(), "a.png");
  assert.deepEqual(page.wrong, []);
});

test("a session that is not there is said not to be", { skip: KEY }, async () => {
  const page = await open("s_made_up");
  await says(page, "There is no such session");
  await picture(page, "missing");
  assert.deepEqual(page.wrong, []);
});

test("a session with nothing in it says so, until there is something", { skip: KEY }, async () => {
  const writer = await new Writer("a name/with %20 & <b>signs</b>").create();
  const page = await open(writer.id);
  await says(page, "Nothing was said yet");
  await writer.ask("first");
  await page.waitForFunction(() => document.querySelector(".turn")?.textContent.includes("first"));
  assert.deepEqual(await shown(page, "#notice"), [""]);
  assert.equal(await page.textContent("#title"), writer.id);
  assert.deepEqual(page.wrong, []);
});

test("a session that is deleted under the page stays to be read, and says so", { skip: KEY }, async () => {
  const writer = await new Writer().create();
  await writer.ask("remember me");
  const page = await open(writer.id);
  await page.waitForFunction(() => document.querySelector(".turn")?.textContent.includes("remember me"));
  await writer.call("delete", {});
  await says(page, "This session was deleted");
  await connection(page, "ended");
  assert.deepEqual(await shown(page), ["remember me"]);
  assert.deepEqual(page.wrong, []);
});
