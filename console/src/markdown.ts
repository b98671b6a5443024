// Markdown as HTML, block by block, so that a text that grows costs what its last blocks cost and not what all of it does.
//
// HTML within Markdown is shown as the text that it is. What comes out still goes through the sanitiser (safe.ts).

import MarkdownIt from "markdown-it";

const markdown = new MarkdownIt({ html: false, linkify: true });
// Addresses are found by `https://`; otherwise every file name with a country's ending would be one.
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
markdown.validateLink = (address) => isLink(address) || isOwnPicture(address);

const escape = markdown.utils.escapeHtml;

// Only these are followed. An address without a scheme would lead to a page of this server, which no answer means.
export const isLink = (address: string): boolean => /^(?:https?:\/\/|mailto:)/i.test(address);

// A picture that is all in its address.
export const isOwnPicture = (address: string): boolean => /^data:image\/(?:png|jpeg|gif|webp|avif|bmp|svg\+xml)[;,]/i.test(address);

// Pictures elsewhere are not loaded: whoever put them there would learn who reads this. They are links.
markdown.renderer.rules.image = (tokens, at) => {
  const token = tokens[at];
  const address = String(token?.attrGet("src") ?? "");
  const name = token?.content || address;
  if (isOwnPicture(address)) return `<img src="${escape(address)}" alt="${escape(token?.content ?? "")}">`;
  return `<a href="${escape(address)}">🖼 ${escape(name)}</a>`;
};

markdown.renderer.rules.fence = (tokens, at) => {
  const token = tokens[at];
  const language = (token?.info ?? "").trim().split(/\s+/)[0] ?? "";
  const label = language ? ` data-language="${escape(language)}"` : "";
  return `<pre${label}><code>${escape(token?.content ?? "")}</code></pre>\n`;
};

// Columns are aligned by a class: the page allows no style in attributes.
for (const name of ["th_open", "td_open"]) {
  markdown.renderer.rules[name] = (tokens, at, options, _env, renderer) => {
    const token = tokens[at];
    const side = /text-align:(left|center|right)/.exec(String(token?.attrGet("style") ?? ""))?.[1];
    if (token && side) token.attrs = [["class", `align-${side}`]];
    return renderer.renderToken(tokens, at, options);
  };
}
markdown.renderer.rules.table_open = () => '<div class="scroll"><table>\n';
markdown.renderer.rules.table_close = () => "</table></div>\n";

export interface Grown {
  // The HTML of each block that cannot change any more, since the last time.
  settled: string[];
  // The HTML of each block after those.
  open: string[];
}

// A text that grows at its end.
export class GrowingMarkdown {
  text = "";
  // Up to here the text is settled.
  #settled = 0;
  // Addresses that the text defined by name so far.
  #names = {};

  // More text at the end. The blocks before the last two are settled: the last one is still written, and its first line may yet
  // make it a part of the one before, as `2` becomes `2.` of a list.
  grow(more: string): Grown {
    this.text += more;
    const tail = this.text.slice(this.#settled);
    const tokens = markdown.parse(tail, this.#names);
    const starts = tokens.flatMap((token, at) => (token.level === 0 && token.nesting >= 0 ? [at] : []));
    const html = starts.map((from, n) =>
      markdown.renderer.render(tokens.slice(from, starts[n + 1]), markdown.options, this.#names),
    );
    const open = Math.max(0, html.length - 2);
    const line = tokens[starts[open] ?? 0]?.map?.[0] ?? 0;
    if (open > 0) this.#settled += offsetOfLine(tail, line);
    return { settled: html.slice(0, open), open: html.slice(open) };
  }

  // Whether a name is defined after its use, so that blocks that are settled would look different now.
  get names(): boolean {
    return /^ {0,3}\[[^\]]+\]:/m.test(this.text);
  }
}

const offsetOfLine = (text: string, line: number): number => {
  const ends = /\r\n|\n|\r/g;
  for (let n = 0; n < line; n++) ends.exec(text);
  return ends.lastIndex;
};
