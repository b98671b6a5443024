// All messages on the page. Whatever changed is shown with the next frame, and a frame does no more than fits into it: the message that
// is being written first, then the others from the newest to the oldest.

import { named } from "./dom";
import type { Surroundings } from "./parts/view";
import type { Session, Touched } from "./session";
import { TurnView } from "./turn";

// A frame has 16 ms, and the browser needs some of them.
const BUDGET = 8;
// Browsers look at each element that is left out of view with every frame, so messages are left out in groups.
const GROUP = 20;
// This far from the end still counts as the end.
const NEAR_END = 120;

export class Conversation {
  #session: Session;
  #around: Surroundings;
  #place: HTMLElement;
  #newest: HTMLElement;
  #turns = new Map<string, TurnView>();
  #stale = new Set<string>();
  #listed = true;
  #asked = false;
  #following = true;

  constructor(session: Session, around: Surroundings, place: HTMLElement, newest: HTMLElement) {
    this.#session = session;
    this.#around = around;
    this.#place = place;
    this.#newest = newest;
    addEventListener("scroll", () => this.#scrolled(), { passive: true });
    // This is told after the browser has laid out a frame, when it costs nothing to ask how long the page is.
    new ResizeObserver(() => this.#follow()).observe(place);
    // Who opens a row wants to read it, and it stays where it is.
    place.addEventListener("click", ({ target }) => {
      if (target instanceof Element && target.closest("summary")) this.#following = false;
    });
    newest.addEventListener("click", () => {
      this.#following = true;
      this.#follow();
    });
  }

  touched(what: Touched): void {
    if (what === "nothing") return;
    if (what === "list") this.#listed = false;
    else this.#stale.add(what.message);
    this.#ask();
  }

  // As `touched`, for messages that come before the others. What is being read stays where it is.
  keepingPlace(what: Touched): void {
    this.#following = false;
    const first = this.#turns.get(this.#session.order.find((key) => this.#turns.has(key)) ?? "")?.element;
    const top = first?.getBoundingClientRect().top ?? 0;
    this.touched(what);
    if (!this.#listed) this.#list();
    if (first) scrollBy({ top: first.getBoundingClientRect().top - top, behavior: "instant" });
  }

  #ask(): void {
    if (this.#asked) return;
    this.#asked = true;
    requestAnimationFrame(() => this.#frame());
  }

  #frame(): void {
    this.#asked = false;
    const end = performance.now() + BUDGET;
    if (!this.#listed) this.#list();
    const { order, messages } = this.#session;
    for (let at = order.length - 1; at >= 0 && this.#stale.size > 0; at--) {
      const key = order[at] ?? "";
      const message = messages.get(key);
      if (!this.#stale.delete(key) || !message) continue;
      this.#turns.get(key)?.show(message);
      if (performance.now() > end) break;
    }
    if (this.#stale.size > 0) this.#ask();
  }

  // Makes the elements on the page those of the session, in its order.
  #list(): void {
    this.#listed = true;
    const { order, messages } = this.#session;
    for (const [key, turn] of this.#turns) {
      if (messages.has(key)) continue;
      turn.element.remove();
      this.#turns.delete(key);
      this.#stale.delete(key);
    }
    for (const key of order) {
      if (this.#turns.has(key)) continue;
      this.#turns.set(key, new TurnView(this.#around));
      this.#stale.add(key);
    }
    const count = Math.ceil(order.length / GROUP);
    for (let at = 0; at < count; at++) {
      const group = this.#place.children[at] ?? this.#place.appendChild(named("div", "group"));
      fill(group, order.slice(at * GROUP, (at + 1) * GROUP).map((key) => this.#turns.get(key)?.element));
    }
    while (this.#place.children.length > count) this.#place.lastElementChild?.remove();
  }

  #scrolled(): void {
    const { scrollHeight, scrollTop, clientHeight } = document.documentElement;
    this.#following = scrollHeight - scrollTop - clientHeight < NEAR_END;
    this.#newest.hidden = this.#following;
  }

  #follow(): void {
    if (this.#following) scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
  }
}

// Makes these the children of the element, and moves only what is not in its place.
const fill = (parent: Element, children: (Element | undefined)[]): void => {
  let next = parent.firstElementChild;
  for (const child of children) {
    if (!child) continue;
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
  }
  while (next) {
    const rest: Element = next;
    next = next.nextElementSibling;
    rest.remove();
  }
};
