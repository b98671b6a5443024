// Files, to be saved. They are never opened here, so nothing in them can run.

import { element, link, named } from "../dom";
import { type Part, words } from "../history";
import { isLink } from "../markdown";
import type { Surroundings } from "./view";

// A file whose bytes are in the part.
export const includedFile = (part: Part): HTMLElement => {
  const encoded = words(part.content_base64 ?? part.content).replace(/^data:[^,]*,/, "");
  const size = Math.floor((encoded.replace(/[=\s]+/g, "").length * 3) / 4);
  return saved(words(part.filename ?? part.name), words(part.mime_type), size, async () => bytesOf(encoded));
};

// A file that is kept somewhere: by this server, or elsewhere.
export const keptFile = (part: Part, around: Surroundings): HTMLElement => {
  const id = words(part.file_id);
  const name = words(part.label ?? part.filename ?? part.name) || id;
  const kind = words(part.mime_type);
  const size = typeof part.size_bytes === "number" ? part.size_bytes : null;
  const given = words(part.download_url ?? part.url);
  const address = given || (id.startsWith("a_") ? around.attachments + encodeURIComponent(id) : "");
  if (address.startsWith(around.attachments)) return saved(name, kind, size, () => around.load(address));
  const where = isLink(address) ? link(address, "on another server") : element("span", { textContent: "not kept here", title: id });
  return named("div", "file", named("span", "icon", "📄"), about(name, kind, size), named("span", "where", where));
};

const saved = (name: string, kind: string, size: number | null, read: () => Promise<Blob>): HTMLElement => {
  const button = element("button", { type: "button", textContent: "Save" });
  const row = named("div", "file", named("span", "icon", "📄"), about(name || "file", kind, size), button);
  button.addEventListener("click", async () => {
    try {
      const url = URL.createObjectURL(new Blob([await read()], { type: "application/octet-stream" }));
      element("a", { href: url, download: name || "file" }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    } catch {
      button.replaceWith(named("span", "where", "could not be read"));
    }
  });
  return row;
};

const about = (name: string, kind: string, size: number | null): HTMLElement => {
  const details = [kind, size === null ? "" : bytes(size)].filter(Boolean).join(", ");
  return named("span", "about", named("span", "name", name), details ? named("small", "", details) : null);
};

const bytes = (count: number): string => {
  if (count < 1000) return `${count} bytes`;
  if (count < 1_000_000) return `${(count / 1000).toFixed(1)} kB`;
  return `${(count / 1_000_000).toFixed(1)} MB`;
};

const bytesOf = (encoded: string): Blob => {
  const binary = atob(encoded.replace(/\s+/g, ""));
  return new Blob([Uint8Array.from(binary, (character) => character.charCodeAt(0))]);
};
