// Builds the unit tests and runs them.
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

const tests = readdirSync("tests").filter((name) => name.endsWith(".test.ts"));
const built = "tests/.built";
rmSync(built, { recursive: true, force: true });
await build({
  entryPoints: tests.map((name) => `tests/${name}`),
  bundle: true,
  platform: "node",
  format: "esm",
  outdir: built,
  outExtension: { ".js": ".mjs" },
});
const files = tests.map((name) => `${built}/${name.replace(/\.ts$/, ".mjs")}`);
process.exit(spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status ?? 1);
