import { element, named } from "../dom";
import { listOf, type Part, words } from "../history";

export const table = (part: Part): HTMLElement => {
  const headers = listOf(part.headers);
  const rows = listOf(part.rows).map(listOf);
  // A column of numbers stands to the right, as its heading does.
  const width = Math.max(headers.length, ...rows.map((row) => row.length));
  const numbers = Array.from({ length: width }, (_, at) => {
    const values = rows.map((row) => row[at]).filter((value) => value !== null && value !== undefined);
    return values.length > 0 && values.every((value) => typeof value === "number");
  });
  const cells = (tag: "th" | "td", values: unknown[]) =>
    values.map((value, at) => named(tag, numbers[at] ? "align-right" : "", words(value)));
  const made = element("table");
  if (words(part.caption)) made.append(named("caption", "", words(part.caption)));
  if (headers.length > 0) made.append(named("thead", "", named("tr", "", ...cells("th", headers))));
  made.append(named("tbody", "", ...rows.map((row) => named("tr", "", ...cells("td", row)))));
  return named("div", "scroll", made);
};
