// One message on the page. Only parts that changed are touched.

import { element, named } from "./dom";
import { type Message, type Part, shownParts } from "./history";
import { viewOf } from "./parts";
import type { PartView, Surroundings } from "./parts/view";
import { date, duration } from "./time";

const STATUS: Record<string, string> = {
  streaming: "Writing…",
  cancelled: "Stopped before the end",
  error: "Failed",
  interrupted: "Cut off: its writer went away",
};

export class TurnView {
  readonly element = named("article", "turn");
  #body = named("div", "body");
  #foot = named("footer", "");
  #shown: { part: Part; view: PartView }[] = [];
  #status = "";
  // What the foot is made of.
  #said = "";
  #around: Surroundings;

  constructor(around: Surroundings) {
    this.#around = around;
    this.element.append(this.#body, this.#foot);
  }

  show(message: Message): void {
    const status = message.status ?? "complete";
    const whole = status !== "streaming";
    const parts = shownParts(message);
    const ended = whole && this.#status === "streaming";
    parts.forEach((part, at) => this.#part(at, part, whole, ended));
    for (const { view } of this.#shown.splice(parts.length)) view.element.remove();
    const said = [status, message.timestamp, message.model_used, message.processing_time_ms].join();
    if (said === this.#said) return;
    this.#said = said;
    this.#status = status;
    this.#foot.replaceChildren(...foot(message, status));
    this.element.dataset.role = message.role;
    this.element.dataset.status = status;
    this.element.dataset.interaction = message.interaction_id;
    this.element.ariaLabel = message.role === "user" ? "Question" : "Answer";
    this.element.ariaBusy = String(!whole);
  }

  #part(at: number, part: Part, whole: boolean, ended: boolean): void {
    const shown = this.#shown[at];
    if (shown && shown.part === part && !ended) return;
    if (shown && shown.part.type === part.type && (shown.part === part || shown.view.show)) {
      shown.view.show?.(part, whole);
      shown.part = part;
      return;
    }
    const view = viewOf(part, this.#around);
    if (shown) shown.view.element.replaceWith(view.element);
    else this.#body.append(view.element);
    this.#shown[at] = { part, view };
  }
}

const foot = (message: Message, status: string): Node[] => {
  const state = STATUS[status];
  const said = [
    state ? element("span", { className: "state", textContent: state }) : null,
    date(message.timestamp),
    message.model_used ? named("span", "", message.model_used) : null,
    typeof message.processing_time_ms === "number" ? named("span", "", duration(message.processing_time_ms)) : null,
  ];
  return said.filter((one) => one !== null);
};
