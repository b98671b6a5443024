import assert from "node:assert/strict";
import { test } from "node:test";
import { GrowingMarkdown, isLink } from "../src/markdown";

// What is shown after the text came in these pieces.
const shown = (pieces: string[]): string => {
  const text = new GrowingMarkdown();
  let settled = "";
  let open = "";
  for (const piece of pieces) {
    const grown = text.grow(piece);
    settled += grown.settled.join("");
    open = grown.open.join("");
  }
  return settled + open;
};
const whole = (text: string): string => shown([text]);

const TEXT = `# Title

A paragraph with **bold**, \`code\` and
a second line.

1. one

2. two

   inside

- a
  - b
- c

| a | b |
|---|--:|
| 1 | 2 |

> quoted
> # deep

\`\`\`rust
fn main() {

    // a line
}
\`\`\`
Setext
======

    indented

* * *

end with [a link](https://example.org) and https://example.org/x.
`;

test("a text that grows by one character at a time looks like the whole", () => {
  for (let end = 1; end <= TEXT.length; end++) {
    const part = TEXT.slice(0, end);
    assert.equal(shown([...part]), whole(part), JSON.stringify(part.slice(-40)));
  }
});

test("a text that grows in pieces of any size looks like the whole", () => {
  for (let size = 2; size < 60; size++) {
    const pieces = [];
    for (let at = 0; at < TEXT.length; at += size) pieces.push(TEXT.slice(at, at + size));
    assert.equal(shown(pieces), whole(TEXT), `pieces of ${size}`);
  }
});

test("lines may end in any way", () => {
  for (const end of ["\r\n", "\r"]) {
    const text = TEXT.replaceAll("\n", end);
    assert.equal(shown([...text]), whole(TEXT), JSON.stringify(end));
  }
});

test("what is settled is not rendered again", () => {
  const text = new GrowingMarkdown();
  text.grow("one\n\ntwo\n\nthree\n\n");
  const { settled, open } = text.grow("four");
  assert.deepEqual(settled, ["<p>two</p>\n"]);
  assert.deepEqual(open, ["<p>three</p>\n", "<p>four</p>\n"]);
});

test("HTML is text, and addresses of other kinds are no links", () => {
  assert.equal(whole("<script>x</script>"), "<p>&lt;script&gt;x&lt;/script&gt;</p>\n");
  for (const address of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "/v1/sessions", "//evil.example"]) {
    assert.equal(isLink(address), false, address);
    assert.doesNotMatch(whole(`[a](${address})`), /href/, address);
  }
  assert.match(whole("[a](https://example.org)"), /href="https:\/\/example.org"/);
  assert.match(whole("![a](https://example.org/a.png)"), /^<p><a href/);
});
