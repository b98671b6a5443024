// What the page says about itself: how it is connected, what went wrong, and which key it needs.

import { element, named } from "./dom";
import type { Connection } from "./stream";

export class Notice {
  #state: HTMLElement;
  #place: HTMLElement;

  constructor(state: HTMLElement, place: HTMLElement) {
    this.#state = state;
    this.#place = place;
  }

  connection(state: Connection): void {
    const [name, text] = said(state);
    this.#state.dataset.is = name;
    this.#state.textContent = text;
    this.#state.title = state.is === "lost" ? state.why : "";
  }

  none(): void {
    this.#place.replaceChildren();
  }

  tell(title: string, ...more: (string | HTMLElement)[]): void {
    const said = more.map((one) => (typeof one === "string" ? named("p", "", one) : one));
    this.#place.replaceChildren(named("section", "notice", named("h2", "", title), ...said));
  }

  // Asks for a key, which is kept for as long as this tab is open.
  askForKey(why: string, given: (key: string) => void): void {
    const input = element("input", { type: "password", autocomplete: "off", required: true, placeholder: "Key", ariaLabel: "Key" });
    const form = named("form", "key", input, element("button", { textContent: "Open" }));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (input.value.trim()) given(input.value.trim());
    });
    this.tell("This server needs a key", why, form, "The key stays in this tab and is forgotten when you close it.");
    input.focus();
  }
}

const said = (state: Connection): [string, string] => {
  switch (state.is) {
    case "connecting":
      return ["connecting", "Connecting…"];
    case "live":
      return ["live", "Live"];
    case "lost":
      return ["lost", "Connecting again…"];
    case "refused":
      return ["ended", "Not connected"];
    case "ended":
      return ["ended", "Deleted"];
  }
};
