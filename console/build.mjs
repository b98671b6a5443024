// Builds the page into dist: files whose names change with their content, and index.html, which names them. Everything is also there
// compressed, for servers that are far away.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const DIST = "dist";
const common = { bundle: true, minify: true, target: "es2022", legalComments: "eof", logLevel: "warning", charset: "utf8" };

for (const name of readdirSync(DIST)) {
  if (name !== ".gitignore") rmSync(`${DIST}/${name}`);
}

// The frame that draws diagrams has its script inside, since it may load nothing.
const frame = await build({ ...common, entryPoints: ["src/diagram/frame.ts"], format: "iife", write: false });
const page = readFileSync("src/diagram/frame.html", "utf8").replace("{script}", () => frame.outputFiles[0].text);
const diagrams = `diagram-${hash(page)}.html`;
writeFileSync(`${DIST}/${diagrams}`, page);

const made = await build({
  ...common,
  entryPoints: { page: "src/main.ts", style: "src/style/style.css" },
  format: "esm",
  splitting: true,
  outdir: DIST,
  entryNames: "[name]-[hash]",
  chunkNames: "chunk-[hash]",
  define: { DIAGRAM_PAGE: JSON.stringify(`/console/${diagrams}`) },
  metafile: true,
});
const named = (start, end) => {
  const found = Object.keys(made.metafile.outputs).find((file) => file.startsWith(`${DIST}/${start}`) && file.endsWith(end));
  return `/console/${found.slice(DIST.length + 1)}`;
};
const index = readFileSync("src/index.html", "utf8");
writeFileSync(`${DIST}/index.html`, index.replace("{style}", named("style-", ".css")).replace("{script}", named("page-", ".js")));

for (const name of readdirSync(DIST)) {
  if (name === ".gitignore" || name === "index.html") continue;
  const bytes = readFileSync(`${DIST}/${name}`);
  const packed = gzipSync(bytes, { level: 9 });
  writeFileSync(`${DIST}/${name}.gz`, packed);
  console.log(`${name}: ${kilo(bytes)} kB, ${kilo(packed)} kB compressed`);
}

function hash(text) {
  return createHash("sha256").update(text).digest("hex").slice(0, 8).toUpperCase();
}

function kilo(bytes) {
  return Math.ceil(bytes.length / 1000);
}
