// Markdown on the page, which grows at its end without the rest being touched.

import { named } from "../dom";
import { GrowingMarkdown } from "../markdown";
import { safe } from "../safe";

export class MarkdownView {
  readonly element = named("div", "prose");
  #markdown = new GrowingMarkdown();
  // The blocks that may still change.
  #open: { html: string; element: Element | undefined }[] = [];

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
    const blocks = settled.concat(open);
    let same = 0;
    while (same < this.#open.length && this.#open[same]?.html === blocks[same]) same += 1;
    let changed: ChildNode | null | undefined = this.#open[same]?.element;
    while (changed) {
      const next: ChildNode | null = changed.nextSibling;
      changed.remove();
      changed = next;
    }
    const fragment = safe(blocks.slice(same).join(""));
    // Each block is one element.
    const elements = [...this.#open.slice(0, same).map(({ element }) => element), ...fragment.children];
    this.#open = open.map((html, at) => ({ html, element: elements[settled.length + at] }));
    this.element.append(fragment);
  }
}
