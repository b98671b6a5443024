// Data that nobody laid out, as JSON.

import { folded, named } from "../dom";
import { spelled } from "../history";

export const data = (title: string, value: unknown, open = false): HTMLElement =>
  folded("data", [named("span", "name", title)], () => [named("pre", "", spelled(value))], open);
