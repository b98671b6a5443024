// What an agent did: calls, results, thoughts, failures. A row that opens.

import { element, named } from "../dom";
import { isObject, listOf, type Part, spelled, words } from "../history";
import { time } from "../time";
import { MarkdownView } from "./text";
import type { PartView } from "./view";

const ICONS: Record<string, string> = {
  activity: "🧠",
  tool_request: "🔧",
  tool_result: "✅",
  tool_call: "🔧",
  thought: "💭",
  error: "❌",
};
const NAMES: Record<string, string> = {
  activity: "Reasoning",
  tool_request: "Tool call",
  tool_result: "Result",
  tool_call: "Tool call",
  thought: "Thought",
  error: "Error",
};
// Of these the content is what a program said, and is shown to the letter. That of others is prose.
const LITERAL = ["tool_request", "tool_result", "tool_call", "error"];

export class ActivityView implements PartView {
  readonly element = named("details", "activity");
  #summary = named("summary", "");
  #inside = named("div", "inside");
  #prose: MarkdownView | null = null;
  #part: Part;
  #filled = false;

  constructor(part: Part) {
    this.#part = part;
    this.element.append(this.#summary, this.#inside);
    this.#summarise();
    this.element.addEventListener("toggle", () => this.#fill(), { once: true });
    this.element.open = kindOf(part) === "error";
  }

  show(part: Part, whole: boolean): void {
    const before = this.#part;
    this.#part = part;
    this.#summarise();
    const grew = this.#prose !== null && before.tools === part.tools && before.results === part.results;
    if (grew) this.#prose?.show(words(part.content), whole);
    else if (this.#filled) this.#fill();
  }

  #summarise(): void {
    const part = this.#part;
    const kind = kindOf(part);
    const shown = isObject(part.display_info) ? part.display_info : {};
    const failed = kind === "error" || results(part).some((result) => result.is_error === true);
    const icon = words(shown.icon) || (failed ? "❌" : (ICONS[kind] ?? "⚙️"));
    const name = words(shown.friendly_name) || NAMES[kind] || kind.replaceAll("_", " ") || "Activity";
    this.element.classList.toggle("failed", failed);
    this.element.dataset.kind = kind;
    this.#summary.title = words(shown.description);
    if (typeof shown.color === "string") this.element.style.borderInlineStartColor = shown.color;
    const when = time(words(part.timestamp));
    this.#summary.replaceChildren(
      element("span", { className: "icon", textContent: icon, ariaHidden: "true" }),
      // Many friendly names begin with the icon.
      named("span", "name", name.startsWith(icon) ? name.slice(icon.length).trim() : name),
      named("span", "hint", hint(part)),
      ...(when ? [when] : []),
    );
  }

  #fill(): void {
    this.#filled = true;
    const part = this.#part;
    const content = words(part.content);
    const prose = !LITERAL.includes(kindOf(part)) && content !== "";
    this.#prose = prose ? new MarkdownView(content) : null;
    const source = words(part.source);
    this.#inside.replaceChildren(
      ...(this.#prose ? [this.#prose.element] : []),
      ...listOf(part.tools).filter(isObject).flatMap(call),
      ...results(part).flatMap(result),
      // Results often say the content once more.
      ...(prose || content === "" || results(part).some((one) => one.content === content) ? [] : [named("pre", "", content)]),
      ...(source ? [named("p", "source", "from ", named("code", "", source))] : []),
    );
  }
}

const kindOf = (part: Part): string => words(part.activity_type);

const results = (part: Part) => listOf(part.results).filter(isObject);

// What can be said in a line.
const hint = (part: Part): string => {
  const calls = listOf(part.tools).filter(isObject);
  if (calls.length > 1) return calls.map((tool) => words(tool.name)).join(", ");
  const [tool] = calls;
  const [first] = results(part);
  const said = first ? words(first.content) : words(part.content);
  const text = tool && !first ? `${words(tool.name)} ${briefly(tool.arguments)}` : said;
  return text.slice(0, 200).replace(/\s+/g, " ").trim();
};

const briefly = (value: unknown): string => {
  if (!isObject(value)) return words(value);
  return Object.entries(value)
    .map(([key, one]) => `${key}: ${words(one).slice(0, 100)}`)
    .join(", ");
};

const call = (tool: Record<string, unknown>): HTMLElement[] => {
  const given = tool.arguments;
  const title = named("p", "call", named("code", "", words(tool.name)));
  if (!isObject(given)) return [title, ...(words(given) ? [named("pre", "", words(given))] : [])];
  const list = named("dl", "arguments");
  for (const [key, value] of Object.entries(given)) {
    list.append(named("dt", "", key), named("dd", "", named("pre", "", spelled(value))));
  }
  return [title, list];
};

const result = (one: Record<string, unknown>): HTMLElement[] => [
  named("p", one.is_error === true ? "call failed" : "call", named("code", "", words(one.name)), one.is_error === true ? " failed" : ""),
  named("pre", "result", readable(one.content)),
];

// JSON in a text is laid out.
const readable = (content: unknown): string => {
  if (typeof content !== "string" || !/^\s*[[{]/.test(content) || content.length > 200_000) return spelled(content);
  try {
    return JSON.stringify(JSON.parse(content), null, 2);
  } catch {
    return content;
  }
};
