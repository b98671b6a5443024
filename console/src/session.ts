// What is known of a session: its messages in order, taken from the frames of the history stream. Nothing here touches the page.
//
// A part that did not change stays the same object, however often its message is sent, so whoever shows a message only has to look at
// parts that are another object than before.

import type { Delta, Message, Part } from "./history";
import { isObject } from "./history";

// What a frame changed: one message, the list of messages, or nothing that is shown.
export type Touched = { message: string } | "list" | "nothing";

export const keyOf = (message: { interaction_id: string; role: string }): string =>
  `${message.role} ${message.interaction_id}`;

export class Session {
  // The keys of all messages, oldest first.
  order: string[] = [];
  messages = new Map<string, Message>();
  // Whether everything that there was at the beginning has arrived.
  ready = false;
  deleted = false;
  // While all messages are sent anew: the keys of those that came. What did not come again is gone.
  #arrived: Set<string> | null = null;

  // From here on all messages are sent anew.
  begin(): void {
    this.#arrived = new Set();
  }

  take(event: string, data: unknown): Touched {
    switch (event) {
      case "history::message":
        return isMessage(data) ? this.#message(data) : "nothing";
      case "history::delta":
        return this.#grow(data as Delta);
      case "history::reset":
        this.begin();
        return "nothing";
      case "history::ready":
        return this.#complete();
      case "history::deleted":
        this.deleted = true;
        return "list";
      default:
        return "nothing";
    }
  }

  // Messages from before all others. Those that are known already are not taken again.
  precede(messages: Message[]): Touched {
    const unknown = messages.filter(isMessage).filter((message) => !this.messages.has(keyOf(message)));
    for (const message of unknown) {
      message.parts = kept([], Array.isArray(message.parts) ? message.parts : []);
      this.messages.set(keyOf(message), message);
    }
    this.order = [...unknown.map(keyOf), ...this.order];
    return unknown.length > 0 ? "list" : "nothing";
  }

  #message(message: Message): Touched {
    const key = keyOf(message);
    const known = this.messages.get(key);
    message.parts = kept(known?.parts ?? [], Array.isArray(message.parts) ? message.parts : []);
    this.messages.set(key, message);
    this.#arrived?.add(key);
    if (known) return { message: key };
    this.order.push(key);
    return "list";
  }

  #grow(delta: Delta): Touched {
    const key = keyOf(delta);
    const message = this.messages.get(key);
    const part = message?.parts[delta.part];
    if (!message || !part) return "nothing";
    const field = part.type === "activity" ? "content" : "text";
    message.parts = message.parts.with(delta.part, { ...part, [field]: `${part[field] ?? ""}${delta.text}` });
    if (delta.main) message.response_text_main = (message.response_text_main ?? "") + delta.text;
    return { message: key };
  }

  // All messages are there: those that did not come again are gone, and the order is the one in which they came.
  #complete(): Touched {
    this.ready = true;
    const arrived = this.#arrived;
    this.#arrived = null;
    if (!arrived) return "nothing";
    for (const key of this.order) {
      if (!arrived.has(key)) this.messages.delete(key);
    }
    this.order = [...arrived];
    return "list";
  }
}

const isMessage = (data: unknown): data is Message =>
  isObject(data) && typeof data.role === "string" && typeof data.interaction_id === "string";

// The new parts, with the old object in place of each one that says the same. Deltas count parts, so what is no part keeps its place.
const kept = (old: Part[], parts: unknown[]): Part[] =>
  parts.map((given, at) => {
    const part = isObject(given) ? (given as Part) : { type: "", value: given };
    const before = old[at];
    return before && same(before, part) ? before : part;
  });

const same = (one: unknown, other: unknown): boolean => {
  if (one === other) return true;
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((value, at) => same(value, other[at]));
  }
  if (!isObject(one) || !isObject(other)) return false;
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && same(one[key], other[key]))
  );
};
