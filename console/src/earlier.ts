// Messages from before those that the stream began with. A long session is not shown whole until somebody wants to see that much of it.

import type { Message } from "./history";

// With so many messages the page begins, and so many more come each time.
export const PAGE = 400;

export class Earlier {
  #history: string;
  #headers: () => Record<string, string>;
  // The address of the next page; null when there is none, undefined when it was not asked for yet.
  #next: string | null | undefined;

  constructor(history: string, headers: () => Record<string, string>) {
    this.#history = history;
    this.#headers = headers;
  }

  // The stream begins anew, and with it what is earlier.
  begin(): void {
    this.#next = undefined;
  }

  // Whether there may be more.
  get more(): boolean {
    return this.#next !== null;
  }

  // The next messages, oldest first.
  async page(): Promise<Message[]> {
    if (this.#next === undefined) this.#next = before(await this.#ask(`${this.#history}?limit=${PAGE}`, "HEAD"));
    if (this.#next === null) return [];
    const response = await this.#ask(this.#next, "GET");
    this.#next = before(response);
    return response.json();
  }

  async #ask(address: string, method: string): Promise<Response> {
    const response = await fetch(address, { method, headers: this.#headers() });
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return response;
  }
}

// The address of the page before this one, on this server.
const before = (response: Response): string | null => {
  const found = /<([^>]*)>\s*;\s*rel="?prev"?/.exec(response.headers.get("link") ?? "")?.[1];
  const address = found ? new URL(found, location.href) : null;
  return address && address.origin === location.origin ? address.href : null;
};
