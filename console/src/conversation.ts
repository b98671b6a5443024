// All messages on the page. Whatever changed is shown with the next frame, and a frame does no more than fits into it: the message that
// is being written first, then the others from the newest to the oldest.

import type { Surroundings } from "./parts/view";
import type { Session, Touched } from "./session";
import { TurnView } from "./turn";

// A frame has 16 ms, and the browser needs some of them.
const BUDGET = 6;
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
    // What grows after it was put there, as pictures do, does not push the end out of sight.
    new ResizeObserver(() => this.#follow()).observe(place);
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
    this.#follow();
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
    let next = this.#place.firstElementChild;
    for (const key of order) {
      let turn = this.#turns.get(key);
      if (!turn) {
        turn = new TurnView(this.#around);
        this.#turns.set(key, turn);
        this.#stale.add(key);
      }
      if (turn.element === next) next = next.nextElementSibling;
      else this.#place.insertBefore(turn.element, next);
    }
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
