// Markdown on the page, which grows at its end without the rest being touched.

import { named } from "../dom";
import { GrowingMarkdown } from "../markdown";
import { safe } from "../safe";

export class MarkdownView {
  readonly element = named("div", "prose");
  #markdown = new GrowingMarkdown();
  // The nodes of blocks that may still change.
  #open: Node[] = [];

  constructor(text: string) {
    this.#grow(text);
  }

  // Shows this text, which is mostly the one before with more at its end.
  show(text: string, whole: boolean): void {
    const shown = this.#markdown.text;
    const grows = text.startsWith(shown);
    if (grows && text.length > shown.length) this.#grow(text.slice(shown.length));
    // A name that is defined at the end changes what stands before it. That is made right once, when there is no more to come.
    if (!grows || (whole && this.#markdown.names)) {
      this.#markdown = new GrowingMarkdown();
      this.#open = [];
      this.element.replaceChildren();
      this.#grow(text);
    }
  }

  #grow(more: string): void {
    const { settled, open } = this.#markdown.grow(more);
    const fragment = safe(settled.concat(open).join(""));
    const nodes = [...fragment.childNodes];
    // Each block is one element, so the last ones are the open ones.
    const elements = nodes.filter((node) => node.nodeType === Node.ELEMENT_NODE);
    const first = elements[settled.length];
    for (const node of this.#open) (node as ChildNode).remove();
    this.#open = first ? nodes.slice(nodes.indexOf(first)) : [];
    this.element.append(fragment);
  }
}
